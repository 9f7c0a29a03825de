"""Kernels from C, C++ or CUDA source: compiled into the build cache, then opened as a library."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..core.dtypes import dtype
from .allowed import check_allowed
from .base import Accepts
from .library import LibraryKernel

SUFFIXES = {".c": "cpu", ".cc": "cpu", ".cpp": "cpu", ".cxx": "cpu", ".cu": "cuda"}


def is_source(path: str | Path) -> bool:
    """Whether the file name is that of a C, C++ or CUDA source."""
    return Path(path).suffix.lower() in SUFFIXES


def source(
    *paths: str | Path,
    function: str,
    code: str | None = None,
    language: str = "c++",
    flags: Sequence[str] = (),
    link_flags: Sequence[str] = (),
    include_paths: Sequence[str | Path] = (),
    debug: bool = False,
    cuda_architectures: Sequence[str] | None = None,
    device: str | None = None,
    dtypes: Sequence[Any] | None = None,
) -> LibraryKernel:
    """Return the kernel ``function`` compiled from files, or from ``code`` itself.

    Built at once and kept in the build cache; the same sources, headers, flags and compiler
    give the same library. ``device`` is ``"cuda"`` when any source is CUDA. Raises
    ``BuildError`` with the compiler's own message.

    >>> kernel = source(function="ok", language="c", code="int ok(void) { return 0; }")
    >>> kernel.name
    'ok'
    """
    from .build import build

    for path in paths:
        check_allowed(Path(path).resolve())
    built = build(
        list(paths),
        code=code,
        language=language,
        flags=flags,
        link_flags=link_flags,
        include_paths=include_paths,
        debug=debug,
        cuda_architectures=cuda_architectures,
    )
    cuda = language == "cuda" if code else any(Path(path).suffix == ".cu" for path in paths)
    kept = None if dtypes is None else tuple(dtype(value) for value in dtypes)
    label = f"{Path(paths[0]).name if paths else 'code'}:{function}"
    return LibraryKernel(built, function, Accepts(device or ("cuda" if cuda else "cpu"), kept), True, label)
