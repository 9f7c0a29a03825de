"""Operators of aclnn that PyTorch has under the same name: its operator runs them on the CPU.

The two libraries name most operators alike, and list the arguments in the same order. The prototype follows
PyTorch's schema: CANN's own is what its documents say.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ...core.errors import ArgumentValueError, UnsupportedError
from ...core.late import load
from ...core.schema import MISSING, Argument
from .row import HOW_TO_REGISTER, Row

_OTHER_NAMES = {  # aclnn's name: PyTorch's, where the arguments are the same
    "LeftShift": "bitwise_left_shift.Tensor", "RightShift": "bitwise_right_shift.Tensor",
    "PowScalarTensor": "pow.Scalar", "GeluBackwardV2": "gelu_backward", "Sort": "sort.stable",
    "FloorDivides": "floor_divide.Scalar", "Lerps": "lerp.Scalar", "Norm": "norm.ScalarOpt_dim",
    "ProdDim": "prod.dim_int", "ReduceNansum": "nansum",
    "RemainderTensorScalar": "remainder.Scalar", "RemainderTensorTensor": "remainder.Tensor",
    "Var": "var.dim",
}  # fmt: skip
_PLACES = ("Layout", "MemoryFormat", "Device")
"""Types of keyword arguments that aclnn does not have: they say where a result lies, not what is in it."""

_NAMES_OF_PLACES = ("pin_memory", "non_blocking", "sparse_grad", "side", "implicit")
"""The same by name. ``side`` of ``searchsorted`` is a form of ``right``; ``implicit`` changes no value."""


@lru_cache(maxsize=512)
def row_of(name: str) -> Row | None:
    """Return the row of ``aclnnSelu`` or ``aclnnInplaceSelu``; None if PyTorch has no such operator.

    Raises ``HostError`` without PyTorch, and ``UnsupportedError`` for an operator that draws random numbers.
    """
    short = name.removeprefix("aclnn")
    if short.startswith("Inplace"):
        row = row_of(f"aclnn{short.removeprefix('Inplace')}")
        return row.in_place() if row is not None and row.inplace else None
    aten = load("provider", "aten")
    try:
        written = _OTHER_NAMES.get(short) or aten.spelled(short)
        operator = None if written is None else aten.aten(written)
    except (ArgumentValueError, UnsupportedError):  # several overloads, or a type that only PyTorch has
        return None
    return None if operator is None else _row(name, operator)


def _row(name: str, operator: Any) -> Row | None:
    schema = operator.operator.schema
    if schema.mutates or not schema.tensor_positions or not all(r.type.is_tensor for r in schema.returns):
        return None
    if operator.function.seeded:
        rule = "draws random numbers, by a seed in aclnn, and PyTorch's operator takes a generator"
        raise UnsupportedError(name, rule, hint=HOW_TO_REGISTER)
    taken = [argument for argument in schema.arguments if not _is_place(argument)]
    names = [argument.name for argument in taken if argument.keyword_only]
    outputs = ["out"] if len(schema.returns) == 1 else [f"out{i}" for i in range(len(schema.returns))]
    parts = [f"{argument.type} {argument.name}" for argument in taken]
    parts += [
        f"Tensor({chr(ord('a') + i)}!){''.join(result.type.suffixes)} {out}"
        for i, (out, result) in enumerate(zip(outputs, schema.returns, strict=True))
    ]

    def function(_: Any, *values: Any) -> Any:
        first = len(values) - len(names)
        return operator(*values[:first], **dict(zip(names, values[first:], strict=True)))

    alone = outputs == ["out"] and not schema.returns[0].type.is_list and parts[0].startswith("Tensor self")
    return Row(f"{name}({', '.join(parts)}) -> ()", function, inplace=alone, of_pytorch=True)


def _is_place(argument: Argument) -> bool:
    is_place = argument.type.base in _PLACES or argument.name in _NAMES_OF_PLACES
    return is_place and argument.keyword_only and argument.default is not MISSING
