"""What a build is asked for besides its sources."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from ...core.errors import ArgumentTypeError
from .paths import absolute


class BuildOptions(NamedTuple):
    """The options of :func:`build`; every one is part of the cache's key.

    ``flags`` go to the compilers (and, for ``-fopenmp`` and its like, to the linker), after
    polyop's own, so they win. ``torch``: True and False switch the PyTorch toolkit on and off;
    None looks whether a source includes its headers.
    """

    flags: tuple[str, ...] = ()
    link_flags: tuple[str, ...] = ()
    include_paths: tuple[str, ...] = ()
    debug: bool = False
    cuda_architectures: tuple[str, ...] | None = None
    torch: bool | None = None

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
    ) -> BuildOptions:
        """Return the options with every sequence a tuple and every path absolute.

        >>> BuildOptions.of(flags=["-O2"]).flags
        ('-O2',)

        Raises ``ArgumentTypeError`` for one string where a list is meant.
        """
        given = {
            "flags": flags,
            "link_flags": link_flags,
            "include_paths": include_paths,
            "cuda_architectures": cuda_architectures or (),
        }
        for name, value in given.items():
            if isinstance(value, (str, os.PathLike)):
                raise ArgumentTypeError(
                    name, "must be a list of strings", repr(value), hint=f"write [{str(value)!r}]"
                )
        return cls(
            tuple(flags),
            tuple(link_flags),
            tuple(map(absolute, include_paths)),
            debug,
            tuple(cuda_architectures) if cuda_architectures else None,
            torch,
        )
