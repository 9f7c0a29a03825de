"""PyTorch operators: a schema, a CPU kernel and a Meta kernel each, registered without Python."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.schema import Argument
from ..literal import literal
from ..operator import ExportedOperator

_ATTRIBUTES = frozenset({"int", "SymInt", "float", "bool", "str"})

_SOURCE = """\
#include "polyop/export/torch.h"

namespace polyop {{
namespace exported {{

const TorchOperator kTorchOperators[] = {{
{entries}
}};

int register_in_torch() noexcept;
int register_in_torch() noexcept {{ return register_torch({count}); }}

}}  // namespace exported
}}  // namespace polyop

__attribute__((constructor)) static void register_at_load() {{ polyop::exported::register_in_torch(); }}
"""


def source(operators: Sequence[ExportedOperator]) -> str:
    """Return the C++ that registers every operator that PyTorch can call.

    Registration happens when the library is loaded, if the process has libtorch, and otherwise when
    the library's C function ``NAME_register_torch()`` is called.
    """
    numbered = [(number, one.schema) for number, one in enumerate(operators) if refused(one) is None]
    entries = []
    for entry, (number, schema) in enumerate(numbered):
        codes = "".join(_code(argument) for argument in schema.arguments)
        text = literal(str(schema.without_written_returns()))
        entries.append(f'    {{{number}, {text}, "{codes}", torch_cpu<{entry}>, torch_meta<{entry}>}},')
    entries = entries or ['    {0, "", "", nullptr, nullptr},']  # C++ has no empty array
    return _SOURCE.format(entries="\n".join(entries), count=len(numbered))


def refused(operator: ExportedOperator) -> str | None:
    """Return why PyTorch cannot call an operator, or None if it can."""
    schema = operator.schema
    if not schema.tensor_positions:
        return "it has no tensor argument, and PyTorch chooses a kernel by the device of one"
    for argument in schema.arguments:
        kind = argument.type
        if kind.is_tensor and kind.is_list:
            return f"the argument {argument.name} is a list of tensors"
        lists = [suffix for suffix in kind.suffixes if suffix != "?"]
        if kind.is_tensor:
            continue
        if kind.base not in _ATTRIBUTES:
            return f"PyTorch's stable interface does not pass {kind.base}, the type of {argument.name}"
        if len(lists) > 1 or (lists and "?" in kind.suffixes[:-1]) or (lists and kind.base == "str"):
            return f"the attribute {argument.name} is {kind}: only lists of int, float and bool are passed"
    if any(result.type.is_list for result in schema.returns):
        return "it returns a list of tensors"
    return None


def _code(argument: Argument) -> str:
    code = "t" if argument.type.is_tensor else "a"
    return code.upper() if argument.type.is_optional else code
