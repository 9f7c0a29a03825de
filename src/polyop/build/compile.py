"""``build``: sources in, the path of a shared library out."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..core.errors import ArgumentTypeError, BuildError
from ..core.limits import is_text, shown
from . import atomic, lookup
from .options import BuildOptions
from .plan import make_plan
from .sources import gather

if TYPE_CHECKING:
    from pathlib import Path


def build(
    sources: Sequence[str | Path] = (),
    *,
    code: str | None = None,
    language: str = "c++",
    flags: Sequence[str] = (),
    link_flags: Sequence[str] = (),
    include_paths: Sequence[str | Path] = (),
    debug: bool = False,
    cuda_architectures: Sequence[str] | None = None,
    torch: bool | None = None,
    output: str | Path | None = None,
) -> Path:
    """Return the path of the library built from sources, in the cache or at ``output``.

    ``code`` is one more source, given as text in ``language`` ("c", "c++" or "cuda"). Sources,
    the headers they read, flags, compiler and polyop's ABI version decide: where none of them
    has changed, nothing is compiled. ``torch``: see :class:`BuildOptions`.

    >>> build(code="int seven(void) { return 7; }", language="c").suffix
    '.so'

    Raises ``BuildError`` with the compiler's own message, and ``CacheError``.
    """
    from pathlib import Path

    options = BuildOptions.of(
        flags=flags,
        link_flags=link_flags,
        include_paths=include_paths,
        debug=debug,
        cuda_architectures=cuda_architectures,
        torch=torch,
    )
    if output is None:
        return Path(built(sources, code, language, options))
    target = Path(output)
    return _deliver(built(sources, code, language, options, target.name), target)


def built(
    paths: Sequence[str | os.PathLike[str]],
    code: str | None,
    language: str,
    options: BuildOptions,
    name: str = "",
) -> str:
    """Return the path of the library in the cache as text; ``name`` is its file's, else the first source's.

    Raises as :func:`build`.
    """
    if code is not None and not (isinstance(code, str) and is_text(code)):
        seen = f"{shown(code)} ({type(code).__name__})"
        raise ArgumentTypeError("build: code", "must be a text without NUL, in UTF-8", seen)
    if not isinstance(language, str):
        raise ArgumentTypeError("build: language", "must be a text such as 'c++'", shown(language))
    sources = gather(paths, code, language, options.include_paths)
    name = (name or sources[0].name).partition(".")[0]
    plan = make_plan(sources, options, name)
    found = lookup.cached_path(plan.request)
    if found is not None:
        return found
    from .make import make

    return make(plan, sources, options, name)


def _deliver(made: str, target: Path) -> Path:
    try:
        atomic.copy(made, target)
    except OSError as problem:
        rule = "must be a path that can be written"
        raise BuildError(f"output {target}", rule, problem.strerror or problem) from None
    return target
