"""The options of a build."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..core.errors import ArgumentTypeError, ArgumentValueError
from ..core.limits import is_text, shown
from .paths import absolute


class BuildOptions(NamedTuple):
    """The options of :func:`build`. Each of them is part of the cache's key.

    ``flags`` are passed to the compilers and to the linker, which needs ``-fopenmp`` and the like. They come
    after polyop's own flags, so they take precedence. ``torch`` says whether to compile and link against
    PyTorch; None means: if a source includes its headers. ``file_flags`` are for the compiler of one source
    alone, after ``flags``; they are pairs of an absolute path and its flags. ``run_path`` is where the loader
    looks for PyTorch's libraries, as ``$ORIGIN/../torch/lib``; None means: the folder of the PyTorch here.
    """

    flags: tuple[str, ...] = ()
    link_flags: tuple[str, ...] = ()
    include_paths: tuple[str, ...] = ()
    debug: bool = False
    cuda_architectures: tuple[str, ...] | None = None
    torch: bool | None = None
    file_flags: tuple[tuple[str, tuple[str, ...]], ...] = ()
    run_path: str | None = None

    def flags_of(self, path: str) -> tuple[str, ...]:
        """Return all flags for the compiler of a source.

        >>> BuildOptions.of(flags=["-O2"], file_flags={"/a.cc": ["-mavx2"]}).flags_of("/a.cc")
        ('-O2', '-mavx2')
        """
        return (*self.flags, *(flag for file, flags in self.file_flags if file == path for flag in flags))

    @classmethod
    def of(
        cls,
        *,
        flags: Sequence[str] = (),
        link_flags: Sequence[str] = (),
        include_paths: Sequence[str | os.PathLike[str]] = (),
        debug: bool = False,
        cuda_architectures: Sequence[str] | None = None,
        torch: bool | None = None,
        file_flags: Mapping[Any, Sequence[str]] | None = None,
        run_path: str | None = None,
    ) -> BuildOptions:
        """Return the options, with sequences as tuples and absolute paths.

        >>> BuildOptions.of(flags=["-O2"]).flags
        ('-O2',)

        Raises ``ArgumentTypeError`` for one string instead of a list, and for items of another type;
        ``ArgumentValueError`` for a string that no command line can hold.
        """
        lists = {
            "flags": flags,
            "link_flags": link_flags,
            "include_paths": include_paths,
            "cuda_architectures": cuda_architectures or (),
        }
        for name, value in lists.items():
            _check(name, value, (str, os.PathLike) if name == "include_paths" else (str,))
        return cls(
            tuple(flags),
            tuple(link_flags),
            tuple(map(absolute, include_paths)),
            debug,
            tuple(cuda_architectures) if cuda_architectures else None,
            torch,
            _by_file(file_flags),
            run_path,
        )


def _by_file(flags: Any) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if flags is None:
        return ()
    if not isinstance(flags, Mapping):
        rule = "must be a mapping from a source to a list of its flags"
        hint = "write {'a.cc': ['-mavx2']}"
        raise ArgumentTypeError("file_flags", rule, f"{shown(flags)} ({type(flags).__name__})", hint=hint)
    for path, own in flags.items():
        if not isinstance(path, (str, os.PathLike)):
            raise ArgumentTypeError("file_flags", "must name each source by its path", shown(path))
        _check(f"file_flags[{str(path)!r}]", own, (str,))
    return tuple((absolute(path), tuple(own)) for path, own in flags.items())


def _check(name: str, value: Any, kinds: tuple[type, ...]) -> None:
    """Raise ``ArgumentTypeError`` for no list of strings, ``ArgumentValueError`` for a string with a NUL."""
    if isinstance(value, (str, os.PathLike)):
        rule = "must be a list of strings"
        raise ArgumentTypeError(name, rule, repr(value), hint=f"write [{str(value)!r}]")
    if not isinstance(value, (list, tuple)):
        rule = "must be a list of strings"
        raise ArgumentTypeError(name, rule, f"{shown(value)} ({type(value).__name__})")
    for item in value:
        if not isinstance(item, kinds):
            rule = "must be a list of strings"
            raise ArgumentTypeError(name, rule, f"{shown(item)} ({type(item).__name__}) in it")
        if isinstance(item, str) and not is_text(item):
            raise ArgumentValueError(name, "must hold texts without NUL, in UTF-8", shown(item))
