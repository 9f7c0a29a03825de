"""MindSpore tensors as NumPy arrays over the same memory, and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mindspore
import numpy as np
from mindspore._c_expression import MSContext, PyNativeExecutor_, TensorPy

try:
    from mindspore.graph.jit_context import jit_context as tracing
except ImportError:  # before 2.9
    from mindspore.common.jit_context import jit_context as tracing

from ... import _core
from ...call.operator import Operator
from ...core.dtypes import DTYPES, dtype
from ...core.errors import ArgumentTypeError, HostError
from ...core.spec import Spec

__all__ = ["tracing"]

EXECUTOR = PyNativeExecutor_.get_instance()
DEVICES = {"CPU": "cpu", "GPU": "cuda", "Ascend": "npu"}  # MindSpore's device name to a spec's

MS_DTYPES: dict[str, Any] = {
    row.name: getattr(mindspore, "bool_" if row.name == "bool" else row.name)
    for row in DTYPES
    if row.type_id and hasattr(mindspore, "bool_" if row.name == "bool" else row.name)
}
"""MindSpore's dtype of each name; tensors of its other dtypes (float8, packed ones) reach no kernel."""


def start() -> None:
    """Make the tensors known to the native call."""
    functions = (
        TensorPy._data_ptr,  # noqa: SLF001 - data_ptr() is this, through one more call
        TensorPy.is_contiguous,
        TensorPy.stride,
        TensorPy.from_numpy,
        EXECUTOR.requires_grad,
        tracing,
    )
    rows = tuple(MS_DTYPES.get(row.name) for row in DTYPES)
    _core.start_mindspore((mindspore.Tensor, mindspore.Parameter), rows, functions, _other_devices())


def _other_devices() -> bool:
    """Whether a tensor can be elsewhere than on the CPU."""
    try:
        supports = MSContext.get_instance().is_pkg_support_device
        return any(supports(name) for name in DEVICES if name != "CPU")
    except (AttributeError, RuntimeError):
        return True


def spec(tensor: Any) -> Spec:
    """Return shape, dtype and device; raises ``ArgumentTypeError`` for a dtype no kernel takes."""
    try:
        row = dtype(tensor.dtype)
    except ArgumentTypeError:
        row = None
    if row is None or row.name not in MS_DTYPES:
        raise ArgumentTypeError("dtype", f"must be one of {', '.join(MS_DTYPES)}", str(tensor.dtype))
    device = str(tensor.device).partition(":")[0]
    return Spec(tuple(tensor.shape), row, "meta" if is_meta(tensor) else DEVICES.get(device, device.lower()))


def is_meta(tensor: Any) -> bool:
    """Whether a tensor has no data and never will."""
    return bool(getattr(tensor, "is_meta", False))


def array(operator: Operator, name: str, tensor: Any) -> Any:
    """Return an array over a tensor's memory, after what is pending on it is done.

    Raises ``HostError`` for a tensor that has no memory on the CPU.
    """
    subject = f"{operator.name}: argument {name}"
    if is_meta(tensor):
        rule, hint = "has no data: a meta tensor", "make a real one: mint.empty(..., device='CPU')"
        raise HostError(subject, rule, where=operator.origin, hint=hint)
    if tensor.has_init:
        tensor.init_data()
    made = _core.mindspore_array(tensor)
    if made is None:
        spec(tensor)
        rule = "must have its memory on the CPU"
        seen = f"a tensor on {tensor.device}" if tensor.device != "CPU" else "a tensor without memory"
        raise HostError(subject, rule, seen, where=operator.origin)
    return made


def tensor(made: Any, name: str) -> Any:
    """Return a tensor over an array's memory; ``name`` is the operator's.

    Raises ``ArgumentTypeError`` for a dtype that MindSpore does not have.
    """
    made = np.asarray(made)
    row = dtype(made.dtype)
    if row.name not in MS_DTYPES:
        rule = f"gives a dtype that MindSpore's tensors do not have: {', '.join(MS_DTYPES)}"
        raise ArgumentTypeError(name, rule, row.name)
    return TensorPy.from_numpy(np.ascontiguousarray(made) if made.ndim else made)


def each(arguments: Sequence[Any], function: Callable[[Any], Any]) -> tuple[Any, ...]:
    """Return arguments with ``function(tensor)`` in place of each tensor; lists are opened."""
    return tuple(
        tuple(function(item) if isinstance(item, TensorPy) else item for item in value)
        if isinstance(value, (list, tuple))
        else function(value)
        if isinstance(value, TensorPy)
        else value
        for value in arguments
    )


def recording(arguments: Sequence[Any]) -> bool:
    """Whether gradients are being recorded, and any of the tensors takes part."""
    return bool(EXECUTOR.requires_grad()) and any(wanted(arguments))


def wanted(arguments: Sequence[Any]) -> tuple[bool, ...]:
    """Return, tensor by tensor, whether a gradient of it is wanted; an absent one has no place."""
    return tuple(bool(one._requires_grad) for one in every(arguments))  # noqa: SLF001 - has no other name


def every(arguments: Sequence[Any]) -> list[Any]:
    """Return the tensors among arguments; lists are opened."""
    found: list[Any] = []
    each(arguments, found.append)
    return found
