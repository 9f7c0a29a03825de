"""Kernels from C, C++ or CUDA source: compiled into the build cache, then opened as a library."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..core.dtypes import dtype
from ..core.errors import ArgumentValueError
from .base import Accepts
from .c_parameters import check_source
from .library import LibraryKernel
from .opencl import kernel as opencl

if TYPE_CHECKING:
    from pathlib import Path

    from ..build.options import BuildOptions

SUFFIXES = {".c": "cpu", ".cc": "cpu", ".cpp": "cpu", ".cxx": "cpu", ".cu": "cuda", ".hip": "cuda"}


class SourceKernel(LibraryKernel):
    """A kernel whose library polyop has built; it knows the recipe: ``files``, ``code`` and ``options``."""

    def __init__(
        self,
        library: str,
        name: str,
        accepts: Accepts,
        label: str,
        recipe: tuple[tuple[str, ...], str | None, str, BuildOptions],
    ) -> None:
        super().__init__(library, name, accepts, label)
        self.files, self.code, self.language, self.options = recipe

    def check_declared(self, subject: str) -> None:
        """Raise ``ArgumentTypeError`` if a source declares other parameters than polyop calls it with."""
        sources = [(path, "c" if _suffix(path) == ".c" else "c++", _text(path)) for path in self.files]
        if self.code is not None:
            sources.append(("code", self.language, self.code))
        check_source(self.name, sources, subject)


def is_source(path: str | Path) -> bool:
    """Whether the file name is that of a C, C++ or CUDA source."""
    return _suffix(path).lower() in SUFFIXES


def _text(path: str) -> str:
    """Return the text of a source; nothing if it was removed since it was built."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _suffix(path: str | Path) -> str:
    return os.path.splitext(path)[1]


def source(
    *paths: str | Path,
    function: str,
    code: str | None = None,
    language: str = "c++",
    flags: Sequence[str] = (),
    file_flags: Mapping[str | Path, Sequence[str]] | None = None,
    link_flags: Sequence[str] = (),
    include_paths: Sequence[str | Path] = (),
    debug: bool = False,
    cuda_architectures: Sequence[str] | None = None,
    device: str | None = None,
    dtypes: Sequence[Any] | None = None,
) -> SourceKernel | opencl.OpenCLKernel:
    """Return the kernel ``function`` compiled from files, or from ``code`` itself.

    A file ``.cl`` and the language ``"opencl"`` are OpenCL C: ``function`` is a kernel of devices, which
    ``grid=`` of :func:`polyop.operator` launches. It is built at its first call on a device.

    The kernel is built here, unless the build cache has a library from the same sources, headers, flags
    and compiler. ``file_flags`` are for the compiler of one source, as ``{"wide.cc": ["-mavx2"]}``.
    ``device`` is ``"cuda"`` if any source is CUDA or HIP: PyTorch calls AMD's GPUs so too.

    Raises ``BuildError`` with the compiler's own message, ``ArgumentTypeError`` for a file that
    POLYOP_LIBRARY_PATHS does not allow.

    >>> kernel = source(function="ok", language="c", code="int ok(void) { return 0; }")
    >>> kernel.name
    'ok'
    """
    from ..build.compile import build_in_cache
    from ..build.options import BuildOptions
    from ..build.paths import absolute

    options = BuildOptions.of(
        flags=flags,
        link_flags=link_flags,
        include_paths=include_paths,
        debug=debug,
        cuda_architectures=cuda_architectures,
        file_flags=file_flags,
    )
    accepted = None if dtypes is None else tuple(dtype(value) for value in dtypes)
    if language == "opencl" if code else any(map(opencl.is_opencl, paths)):
        others = {"link_flags": link_flags, "file_flags": file_flags, "debug": debug}
        _check_opencl(device, {**others, "cuda_architectures": cuda_architectures})
        return opencl.source(paths, code, function, flags, include_paths, Accepts(opencl.DEVICE, accepted))
    library = build_in_cache(paths, code, language, options)
    cuda = language in ("cuda", "hip") if code else any(SUFFIXES[_suffix(path)] == "cuda" for path in paths)
    label = f"{os.path.basename(paths[0]) if paths else 'code'}:{function}"
    files = tuple(map(absolute, paths))
    accepts = Accepts(device or ("cuda" if cuda else "cpu"), accepted)
    return SourceKernel(library, function, accepts, label, (files, code, language, options))


def _check_opencl(device: str | None, options: Mapping[str, Any]) -> None:
    """Raise ``ArgumentValueError`` for what a kernel in OpenCL C cannot have."""
    if device not in (None, opencl.DEVICE):
        raise ArgumentValueError("source", "OpenCL C runs on the device 'opencl'", repr(device))
    for name, value in options.items():
        if value:
            raise ArgumentValueError("source", f"{name}= is not for OpenCL C", repr(value))
