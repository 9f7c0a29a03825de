"""polyop: the kernel of each operator, which ``polyop.load_library`` calls for every host."""

from __future__ import annotations

from collections.abc import Sequence

from ...binary.export_manifest import kernel_symbol
from ..operator import ExportedOperator
from .functions import functions

_KERNEL = """
extern "C" __attribute__((visibility("default"))) int SYMBOL(int count, void** data, int* ndims,
    int64_t** sizes, const char** dtypes, void* stream, void* extra) {{
  return exported::call_kernel(*exported::kOperators[{number}], count, data, ndims, sizes, dtypes, stream,
                               extra);
}}
extern "C" __attribute__((visibility("default"))) int SYMBOLInit(int* ndims, int64_t** sizes,
    const char** dtypes, void* extra) {{
  return exported::init_kernel(*exported::kOperators[{number}], ndims, sizes, dtypes, extra);
}}
""".replace("SYMBOL", kernel_symbol("{c_name}"))


def refused(operator: ExportedOperator) -> str | None:
    """Return None: polyop calls every exported operator."""
    del operator
    return None


def source(operators: Sequence[ExportedOperator]) -> str:
    """Return the C++ of the kernels."""
    return functions("kernel.h", _KERNEL, operators, refused)
