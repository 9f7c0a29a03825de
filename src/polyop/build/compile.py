"""``build``: compile and link sources, and return the path of the shared library."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ..core.errors import ArgumentTypeError, BuildError
from ..core.limits import is_text, shown
from . import atomic, lookup
from .commands import make_plan
from .options import BuildOptions
from .sources import gather

if TYPE_CHECKING:
    from pathlib import Path


def build(
    sources: Sequence[str | Path] = (),
    *,
    code: str | None = None,
    language: str = "c++",
    flags: Sequence[str] = (),
    file_flags: Mapping[str | Path, Sequence[str]] | None = None,
    link_flags: Sequence[str] = (),
    include_paths: Sequence[str | Path] = (),
    debug: bool = False,
    cuda_architectures: Sequence[str] | None = None,
    torch: bool | None = None,
    run_path: str | None = None,
    output: str | Path | None = None,
) -> Path:
    """Return the path of the library built from sources: in the cache, or at ``output``.

    ``code`` is one more source, passed as text in ``language`` ("c", "c++", "cuda" or "hip"). Nothing is
    compiled if the cache has a library for the same sources, headers, flags, compiler and ABI of polyop.
    ``flags`` are for every source, ``file_flags`` for one of them, as ``{"wide.cc": ["-mavx2"]}``; they come
    last, and the linker does not get them. ``torch`` and ``run_path``: see :class:`BuildOptions`.

    >>> build(code="int seven(void) { return 7; }", language="c").suffix
    '.so'

    Raises ``BuildError`` with the compiler's message, and ``CacheError``.
    """
    from pathlib import Path

    options = BuildOptions.of(
        flags=flags,
        link_flags=link_flags,
        include_paths=include_paths,
        debug=debug,
        cuda_architectures=cuda_architectures,
        torch=torch,
        file_flags=file_flags,
        run_path=run_path,
    )
    if output is None:
        return Path(build_in_cache(sources, code, language, options))
    target = Path(output)
    return _copy(build_in_cache(sources, code, language, options, target.name), target)


def build_in_cache(
    paths: Sequence[str | os.PathLike[str]],
    code: str | None,
    language: str,
    options: BuildOptions,
    name: str = "",
) -> str:
    """Return the path of the library in the cache. Its file is named ``name``, or after the first source.

    Raises what :func:`build` raises.
    """
    if code is not None and not (isinstance(code, str) and is_text(code)):
        seen = f"{shown(code)} ({type(code).__name__})"
        raise ArgumentTypeError("build: code", "must be a text without NUL, in UTF-8", seen)
    if not isinstance(language, str):
        raise ArgumentTypeError("build: language", "must be a text such as 'c++'", shown(language))
    sources = gather(paths, code, language, options.include_paths)
    name = (name or sources[0].name).partition(".")[0]
    plan = make_plan(sources, options, name)
    cached = lookup.cached_path(plan.request)
    if cached is not None:
        return cached
    from .make import make

    return make(plan, sources, options, name)


def _copy(library: str, target: Path) -> Path:
    try:
        atomic.copy(library, target)
    except OSError as problem:
        rule = "must be a path that can be written"
        raise BuildError(f"output {target}", rule, problem.strerror or problem) from None
    return target
