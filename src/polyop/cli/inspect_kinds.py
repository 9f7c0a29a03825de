"""Recognise what kinds of library a file is, and which of its functions belong to a runtime."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from ..binary.elf import AotFunction, LibraryFile, python_modules, tvm_ffi_functions
from ..kernels.module.function_table import ENTRY as MODULE
from ..kernels.module.registrations import ENTRY as LIBRARY
from ..providers.aten.registered import registers_in_torch


class LibraryKind(NamedTuple):
    """A kind: how it is recognised and used, and which functions are its runtime's."""

    name: str
    is_it: Callable[[LibraryFile], bool]
    use: str
    runtime: str = "$^"
    """A regular expression for function names."""


def _has_xla(file: LibraryFile) -> bool:
    """Whether the file has code of XLA's FFI headers, which exist in C++ only."""
    return any("N3xla3ffi" in name for name in (*file.cxx_functions, *file.undefined))


_EXPORTED = "polyop_exported_"
KINDS = (
    LibraryKind(
        "library of polyop export",
        lambda file: any(name.startswith(_EXPORTED) for name in file.functions),
        "polyop.load_library(...), and C, PyTorch, ONNX Runtime, XLA and tvm-ffi",
        r"RegisterCustomOps|\w+_error|\w+_register_torch|\w+_shapes",
    ),
    LibraryKind(
        "C++ module",
        lambda file: MODULE in file.functions,
        "made by polyop.CustomOpBuilder(name, sources).load()",
    ),
    LibraryKind(
        "operator library of polyop", lambda file: LIBRARY in file.functions, "polyop.load_library(...)"
    ),
    LibraryKind("library of PyTorch (TORCH_LIBRARY)", registers_in_torch, "polyop.load_library(...)"),
    LibraryKind(
        "library of tvm-ffi", lambda file: bool(tvm_ffi_functions(file)), '"this file:function" as a kernel'
    ),
    LibraryKind("library of XLA FFI handlers", _has_xla, 'polyop.xla_ffi("this file:Handler") as a kernel'),
    LibraryKind(
        "model of AOTInductor",
        lambda file: "AOTInductorModelContainerRun" in file.functions,
        "torch._inductor.aoti_load_package, as a package (.pt2); it has no operators for polyop",
        r"AOTInductor\w+|cpp_fused_\w+",
    ),
    LibraryKind(
        "custom operators of ONNX Runtime",
        lambda file: "RegisterCustomOps" in file.functions,
        "SessionOptions.register_custom_ops_library",
        "RegisterCustomOps",
    ),
    LibraryKind("Python extension module", lambda file: bool(python_modules(file)), "import"),
)
"""Kinds of library; a file may be of several."""


def kinds(file: LibraryFile) -> Iterator[str]:
    """Yield each kind that a file is, with how it is used."""
    for kind in KINDS:
        if kind.is_it(file):
            yield f"{kind.name}: {kind.use}" + (
                f" {', '.join(python_modules(file))}" if kind.use == "import" else ""
            )


def of_the_author(file: LibraryFile, operators: Iterable[AotFunction]) -> list[AotFunction]:
    """Return the functions that may be kernels: those of the runtimes of the file's kinds are left out."""
    patterns = [re.compile(kind.runtime) for kind in KINDS if kind.is_it(file)]
    return [one for one in operators if not any(pattern.fullmatch(one.name) for pattern in patterns)]
