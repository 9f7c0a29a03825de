"""polyop: the kernel of each operator, which ``polyop.load_library`` calls for every host."""

from __future__ import annotations

from collections.abc import Sequence

from ...binary.manifest import kernel_symbol
from ..operator import ExportedOperator

_KERNEL = """
extern "C" __attribute__((visibility("default"))) int {symbol}(int count, void** data, int* ndims,
    int64_t** sizes, const char** dtypes, void* stream, void* extra) {{
  return exported::call_kernel(*exported::kOperators[{number}], count, data, ndims, sizes, dtypes, stream,
                               extra);
}}
extern "C" __attribute__((visibility("default"))) int {symbol}Init(int* ndims, int64_t** sizes,
    const char** dtypes, void* extra) {{
  return exported::init_kernel(*exported::kOperators[{number}], ndims, sizes, dtypes, extra);
}}
"""


def refused(operator: ExportedOperator) -> str | None:
    """Return None: polyop calls every exported operator."""
    del operator
    return None


def source(operators: Sequence[ExportedOperator]) -> str:
    """Return the C++ of the kernels. ``kOperators`` has the operators in this order."""
    kernels = [
        _KERNEL.format(symbol=kernel_symbol(operator.c_name), number=number)
        for number, operator in enumerate(operators)
    ]
    return '#include "polyop/export/kernel.h"\n\nusing namespace polyop;\n' + "".join(kernels)
