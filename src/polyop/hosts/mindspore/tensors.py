"""MindSpore tensors as NumPy arrays over the same memory, and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
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
from ...core.errors import ArgumentTypeError, HostError, NoDtypeError
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
    """Give the native call what it needs to recognise and read MindSpore's tensors."""
    functions = (
        TensorPy._data_ptr,  # noqa: SLF001 - data_ptr() calls it
        TensorPy.is_contiguous,
        TensorPy.stride,
        TensorPy.from_numpy,
        EXECUTOR.requires_grad,
        tracing,
    )
    rows = tuple(MS_DTYPES.get(row.name) for row in DTYPES)
    probe = TensorPy.from_numpy(np.zeros((2, 3), np.int16))
    library = str(Path(mindspore.__file__).parent / "lib" / "libmindspore_common.so")
    # MindSpore makes the class of its parameters, a subclass of Parameter, when a program makes the first one
    types = (mindspore.Tensor, type(mindspore.Parameter(probe, name="probe")))
    _core.start_mindspore(types, rows, functions, _other_devices(), library, probe)


def _other_devices() -> bool:
    """Whether this MindSpore can have tensors on a device other than the CPU."""
    try:
        supports = MSContext.get_instance().is_pkg_support_device
        return any(supports(name) for name in DEVICES if name != "CPU")
    except (AttributeError, RuntimeError):
        return True


def spec(tensor: Any) -> Spec:
    """Return shape, dtype and device; raises ``ArgumentTypeError`` for a dtype that no kernel accepts."""
    try:
        row = dtype(tensor.dtype)
    except ArgumentTypeError:
        row = None
    if row is None or row.name not in MS_DTYPES:
        raise ArgumentTypeError("dtype", f"must be one of {', '.join(MS_DTYPES)}", str(tensor.dtype))
    device = str(tensor.device).partition(":")[0]
    return Spec(tuple(tensor.shape), row, "meta" if is_meta(tensor) else DEVICES.get(device, device.lower()))


def is_meta(tensor: Any) -> bool:
    """Whether a tensor has a shape and a dtype only."""
    return bool(getattr(tensor, "is_meta", False))


def array(operator: Operator, name: str, tensor: Any) -> Any:
    """Return an array over a tensor's memory. Waits for operations on the tensor that are still running.

    Raises ``HostError`` if the tensor has no memory on the CPU.
    """
    subject = f"{operator.name}: argument {name}"
    if is_meta(tensor):
        rule, hint = "has no data: a meta tensor", "make a real one: mint.empty(..., device='CPU')"
        raise HostError(subject, rule, where=operator.origin, hint=hint)
    if tensor.has_init:
        tensor.init_data()
    view = _core.mindspore_array(tensor)
    if view is None:
        spec(tensor)
        rule = "must have its memory on the CPU"
        seen = f"a tensor on {tensor.device}" if tensor.device != "CPU" else "a tensor without memory"
        raise HostError(subject, rule, seen, where=operator.origin)
    return view


def tensor(array: Any, name: str) -> Any:
    """Return a tensor over the memory of an array, or of its copy if it is not contiguous.

    ``name`` is the operator's, for the ``NoDtypeError`` if MindSpore has no such dtype.
    """
    array = np.asarray(array)
    row = dtype(array.dtype)
    if row.name not in MS_DTYPES:
        rule = f"gives a dtype that MindSpore's tensors do not have: {', '.join(MS_DTYPES)}"
        raise NoDtypeError(name, rule, row.name)
    return TensorPy.from_numpy(np.ascontiguousarray(array) if array.ndim else array)


def map_each(arguments: Sequence[Any], function: Callable[[Any], Any]) -> tuple[Any, ...]:
    """Return the arguments with ``function(tensor)`` in place of each tensor, in lists too."""
    return tuple(
        tuple(function(item) if isinstance(item, TensorPy) else item for item in value)
        if isinstance(value, (list, tuple))
        else function(value)
        if isinstance(value, TensorPy)
        else value
        for value in arguments
    )


def recording(arguments: Sequence[Any]) -> bool:
    """Whether MindSpore records gradients now, and any of the tensors requires one."""
    return bool(EXECUTOR.requires_grad()) and any(require_grad(arguments))


def require_grad(arguments: Sequence[Any]) -> tuple[bool, ...]:
    """Return, for each tensor that is present, whether it requires a gradient."""
    return tuple(bool(x._requires_grad) for x in tensors_in(arguments))  # noqa: SLF001 - has no public name


def tensors_in(arguments: Sequence[Any]) -> list[Any]:
    """Return the tensors among the arguments, those in lists too."""
    tensors: list[Any] = []
    map_each(arguments, tensors.append)
    return tensors
