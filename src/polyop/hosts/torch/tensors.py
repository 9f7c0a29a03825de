"""Tensors to specs, to dense data, to NumPy, and back."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ...core.dtypes import DTYPES, TAKEN, DType, dtype
from ...core.errors import ArgumentTypeError, NoDtypeError
from ...core.schema import Schema
from ...core.spec import Spec

TORCH_DTYPES: dict[str, torch.dtype] = {
    row.name: getattr(torch, row.name) for row in DTYPES if hasattr(torch, row.name)
}
_ROWS: dict[torch.dtype, DType] = {kind: dtype(name) for name, kind in TORCH_DTYPES.items()}
_UNSIGNED = {1: torch.uint8, 2: torch.uint16}
_INTERFACE: dict[torch.dtype, tuple[str, np.dtype[Any] | None]] = {
    kind: (row.numpy.str, None) if row.numpy.isbuiltin == 1 else (f"|V{row.itemsize}", row.numpy)
    for kind, row in _ROWS.items()
}
"""The type in NumPy's array interface, and the dtype to view it as where that has no name for it."""
_CPU = torch.device("cpu")


def spec(tensor: torch.Tensor) -> Spec:
    """Return a tensor's spec; raises ``ArgumentTypeError`` for sparse and quantised ones."""
    if tensor.layout is not torch.strided:
        rule = "must be a strided tensor"
        raise ArgumentTypeError("tensor", rule, tensor.layout, hint="convert it: .to_dense()")
    row = _ROWS.get(tensor.dtype)
    if row is None and tensor.is_quantized:
        rule = f"must be one that kernels take: {TAKEN}"
        raise ArgumentTypeError("dtype", rule, tensor.dtype, hint="convert it: .dequantize()")
    return Spec(tuple(tensor.shape), row or dtype(tensor.dtype), tensor.device.type)


def empty(spec: Spec, device: torch.device) -> torch.Tensor:
    """Return an uninitialised dense tensor of a spec; raises ``ArgumentTypeError``."""
    return torch.empty(spec.shape, dtype=_kind(spec.dtype, "output"), device=device)


def _kind(row: DType, subject: str) -> torch.dtype:
    """Return PyTorch's dtype; raise ``NoDtypeError`` if this version has none."""
    kind = TORCH_DTYPES.get(row.name)
    if kind is None:
        raise NoDtypeError(subject, f"must have a dtype of PyTorch {torch.__version__}", row)
    return kind


def dense(tensor: torch.Tensor) -> torch.Tensor:
    """Return a plain row-major tensor of the same values: no conjugate or negative bit."""
    return tensor.detach().resolve_conj().resolve_neg().contiguous()


def to_numpy(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """Return a CPU array of the values; dtypes that PyTorch cannot export go by their bytes.

    The array may be kept: PyTorch does not resize its storage from then on.
    """
    plain = dense(tensor).cpu()
    row = _ROWS[tensor.dtype]
    if row.numpy.isbuiltin == 1:
        shared: np.ndarray[Any, Any] = plain.numpy()
        return shared
    array: np.ndarray[Any, Any] = plain.view(_UNSIGNED[row.itemsize]).numpy()
    return array.view(row.numpy)


class _Memory:
    """What NumPy's array interface says of a dense CPU tensor's memory. It owns the tensor."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor
        typestr, self.kind = _INTERFACE[tensor.dtype]
        self.__array_interface__ = {
            "version": 3,
            "shape": tuple(tensor.shape),
            "typestr": typestr,
            "data": (tensor.data_ptr(), False),
        }


def _array(memory: _Memory) -> np.ndarray[Any, Any]:
    array = np.asarray(memory)
    return array if memory.kind is None else array.view(memory.kind)


def over(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """Return a writeable array over the memory of a tensor, or over a dense copy on the CPU.

    The storage stays resizable, as FSDP2 needs it, so the array must not outlive the call.
    """
    return over_dense(dense(tensor).cpu())


def over_dense(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """Return what ``over`` does, in less time, for what is a dense CPU tensor already."""
    return _array(_Memory(tensor))


class Loan:
    """Arrays over tensors' memory, lent to a Python function for one call.

    ``Tensor.numpy()`` forbids for ever that the storage is resized, as the array may be kept.
    FSDP2 resizes the storages of parameters to free them. So the arrays are made over the
    pointers, and :meth:`end` forbids it only where the function keeps an array.
    """

    def __init__(self) -> None:
        self._memories: list[weakref.ref[_Memory]] = []

    def array(self, tensor: torch.Tensor) -> np.ndarray[Any, Any]:
        """Return what ``over`` does for a dense tensor on any device, and remember it."""
        memory = _Memory(tensor if tensor.is_cpu else tensor.cpu())
        self._memories.append(weakref.ref(memory))
        return _array(memory)

    def end(self) -> None:
        """Keep the memory of arrays that still exist; the caller has dropped its own."""
        if self._kept():
            gc.collect(1)  # reference cycles of the call
        for memory in self._kept():
            to_numpy(memory.tensor)

    def _kept(self) -> list[_Memory]:
        return [memory for memory in (reference() for reference in self._memories) if memory is not None]


def from_numpy(array: np.ndarray[Any, Any], device: torch.device) -> torch.Tensor:
    """Return a tensor on ``device`` that shares or copies the data; raises ``ArgumentTypeError``."""
    row = dtype(array.dtype)
    if row.numpy.isbuiltin == 1:
        return torch.from_numpy(array).to(device)
    kind = _kind(row, "array")
    raw = torch.from_numpy(array.view(np.dtype(f"u{row.itemsize}")))
    return raw.view(kind).to(device)


def copied(array: np.ndarray[Any, Any], device: torch.device) -> torch.Tensor:
    """Return a tensor on ``device`` that owns a copy of the array's values."""
    tensor = empty(Spec(array.shape, dtype(array.dtype)), _CPU)
    over_dense(tensor)[...] = array
    return tensor.to(device)


def for_torch(schema: Schema, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments with dtypes and devices as PyTorch's own objects."""
    convert = {"ScalarType": TORCH_DTYPES.get, "Device": torch.device}
    return tuple(
        convert[a.type.base](value) if a.type.base in convert and isinstance(value, str) else value
        for a, value in zip(schema.arguments, arguments, strict=True)
    )


def is_traced(tensor: torch.Tensor) -> bool:
    """Whether a tensor stands for others: a compiler or a functional transform follows what is done."""
    wrapped = torch._C._functorch.is_functorch_wrapped_tensor
    faked = isinstance(tensor, torch._subclasses.FakeTensor)
    return faked or type(tensor).__name__ == "FunctionalTensor" or wrapped(tensor)


def is_distributed(tensor: Any) -> bool:
    """Whether a tensor is a DTensor, without importing them."""
    return type(tensor).__name__ == "DTensor"


def zeros_of(spec: Any) -> torch.Tensor:
    """Return a DTensor of zeros, laid out as the gradient of one with this spec."""
    from torch.distributed.tensor import Replicate, zeros  # the program has imported it

    shape, _, kind = spec.tensor_meta
    placements = [Replicate() if p.is_partial() else p for p in spec.placements]
    result: torch.Tensor = zeros(shape, dtype=kind, device_mesh=spec.mesh, placements=placements)
    return result


def as_outputs(result: Any) -> tuple[Any, ...]:
    """Return what an overload gave as a tuple of tensors."""
    if isinstance(result, (tuple, list)):
        return tuple(result)
    return () if result is None else (result,)


def device_of(arguments: tuple[Any, ...]) -> torch.device:
    """Return the device of the first tensor among arguments."""
    for value in arguments:
        items = value if isinstance(value, (list, tuple)) else (value,)
        for item in items:
            if isinstance(item, torch.Tensor):
                return item.device
    return torch.device("cpu")


def map_arguments(function: Callable[[torch.Tensor], Any], arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments with ``function`` applied to each tensor, lists opened."""
    return tuple(
        type(value)(map_arguments(function, tuple(value)))
        if isinstance(value, (list, tuple))
        else function(value)
        if isinstance(value, torch.Tensor)
        else value
        for value in arguments
    )
