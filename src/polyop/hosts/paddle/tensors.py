"""Paddle's tensors: their specs, and arrays of NumPy over the same memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import paddle

from ...call.operator import Operator
from ...core.dtypes import DTYPES, DType, dtype
from ...core.errors import ArgumentTypeError, HostError, NoDtypeError
from ...core.spec import Spec

_LACKING = ("uint16", "uint32", "uint64")  # its uint16 is another name of bfloat16; it cannot copy the others
TAKEN = tuple(
    row
    for row in DTYPES
    if row.name not in _LACKING and isinstance(getattr(paddle, row.name, None), paddle.dtype)
)
"""The dtypes that Paddle's tensors share with polyop."""
_AS_INTEGERS = {row.name: f"int{8 * row.itemsize}" for row in TAKEN if row.numpy.isbuiltin != 1}
"""Dtypes that DLPack does not pass between Paddle and NumPy: an integer of the same size stands for them."""


def is_traced(tensor: Any) -> bool:
    """Whether it is a value of a program that Paddle traces, which has no data."""
    return isinstance(tensor, paddle.pir.Value)


def row_of(tensor: Any) -> DType:
    """Return the dtype; raises ``ArgumentTypeError`` for one that no kernel accepts."""
    name = str(tensor.dtype).rpartition(".")[2].lower()
    for row in TAKEN:
        if row.name == name:
            return row
    raise ArgumentTypeError("dtype", f"must be one of {', '.join(row.name for row in TAKEN)}", name)


def spec(tensor: Any) -> Spec:
    """Return shape, dtype and device; raises ``ArgumentTypeError`` for a tensor that is not dense."""
    if is_traced(tensor):
        return Spec(tuple(tensor.shape), row_of(tensor))
    if not tensor.is_dense():
        seen = "a sparse one" if tensor.is_sparse() else "one of another layout"
        raise ArgumentTypeError("tensor", "must be dense: call to_dense() on it", seen)
    return Spec(tuple(tensor.shape), row_of(tensor), _device(tensor))


def _device(tensor: Any) -> str:
    place = tensor.place
    if place.is_cpu_place():
        return "cpu"
    return "cuda" if place.is_gpu_place() else str(place)


def array(operator: Operator, name: str, tensor: Any) -> Any:
    """Return an array over a tensor's memory; raises ``HostError`` if that is not on the CPU."""
    subject = f"{operator.name}: argument {name}"
    try:
        known = spec(tensor)
    except ArgumentTypeError as problem:
        raise ArgumentTypeError(subject, str(problem), where=operator.origin) from None
    if known.numel == 0:
        return np.zeros(known.shape, known.dtype.numpy)
    if known.device != "cpu":
        rule, hint = "must have its memory on the CPU", "call x.cpu() first"
        raise HostError(subject, rule, str(tensor.place), where=operator.origin, hint=hint)
    plain = tensor.detach()  # DLPack refuses tensors with a gradient
    integer = _AS_INTEGERS.get(known.dtype.name)
    if integer is None:
        return np.from_dlpack(plain)
    return np.from_dlpack(plain.view(integer)).view(known.dtype.numpy)


def held(row: DType, name: str) -> DType:
    """Return the row; raise ``NoDtypeError`` for the operator ``name`` if Paddle has no such dtype."""
    if row not in TAKEN:
        rule = f"gives a dtype that Paddle's tensors do not have: {', '.join(row.name for row in TAKEN)}"
        raise NoDtypeError(name, rule, row.name)
    return row


def tensor(array: Any, name: str) -> Any:
    """Return a tensor with the values of an array, in Paddle's own memory.

    NumPy's memory would do without a copy, but threads of Paddle free tensors, too. For NumPy's memory they
    need Python's lock, and hang if the thread that has it waits for them.

    ``name`` is the operator's, for the ``NoDtypeError`` if Paddle has no such dtype.
    """
    array = np.asarray(array)
    row = held(dtype(array.dtype), name)
    dense = np.require(array, row.numpy, ["C", "A", "W"])
    integer = _AS_INTEGERS.get(row.name)
    if integer is None:
        return paddle.from_dlpack(dense).clone()
    return paddle.from_dlpack(dense.view(integer)).clone().view(row.name)


def tensors_in(values: Sequence[Any]) -> list[Any]:
    """Return the tensors among the arguments of a call, those of lists too."""
    items = (x for v in values for x in (v if isinstance(v, (list, tuple)) else (v,)))
    return [x for x in items if isinstance(x, (paddle.Tensor, paddle.pir.Value))]


def needs_gradient(tensor: Any) -> bool:
    """Whether Paddle wants a gradient of a tensor."""
    return not tensor.stop_gradient and row_of(tensor).is_floating
