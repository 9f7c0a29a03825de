"""Kernels of C and C++ sources of an export."""

from __future__ import annotations

from collections.abc import Sequence

from ..build.sources import LANGUAGES, store_code
from ..core.dtypes import DType
from ..core.schema import Schema
from ..kernels.source import SourceKernel
from .operator import ExportedKernel, SourceFile

_HIDDEN = "-fvisibility=hidden"


def kernel_of(kernel: SourceKernel, schema: Schema, infer: Sequence[str]) -> ExportedKernel:
    """Return the kernel, for the dtypes that it declares; without any it checks them itself."""
    declared: tuple[DType, ...] = kernel.declared_dtypes
    dtypes = tuple(one.name for one in declared) or None
    count = len(schema.tensor_positions)
    init = f"{kernel.name}Init" if kernel.has_init else ""
    return ExportedKernel((dtypes,) * count, (None,) * count, tuple(infer), kernel.name, init)


def files_of(kernel: SourceKernel) -> list[SourceFile]:
    """Return the sources of the kernel, with the flags that it is built with."""
    files = [(path, LANGUAGES[f".{path.rpartition('.')[2]}"]) for path in kernel.files]
    if kernel.code is not None:
        files.append((store_code(kernel.code, kernel.language), kernel.language))
    options = kernel.options
    return [
        SourceFile(path, of, (*options.flags_of(path), _HIDDEN), options.include_paths, options.link_flags)
        for path, of in files
    ]
