"""``Tensor``: PyTorch's tensor with MindSpore's constructor, attributes and printing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ..core.errors import ArgumentTypeError
from ..hosts.torch import tensors
from . import context, interpose, printing
from .dtype import Type, from_torch, to_torch
from .interpose import for_script, plain_attributes
from .methods import Methods
from .offered import withdraw


class Tensor(Methods, torch.Tensor):  # type: ignore[misc]
    """A tensor of MindSpore, made of a number, a list, a NumPy array or another tensor.

    Python floats and lists of floats become Float32, ints become Int64; arrays keep their dtype. The
    data are copied. PyTorch's functions, called with a ``Tensor``, return one.

    >>> Tensor(6.0)
    Tensor(shape=[], dtype=Float32, value= 6)
    >>> print(Tensor([[1, 2], [3, 4]], dtype=from_torch(torch.float32)) * 2)
    [[2. 4.]
     [6. 8.]]

    Without data it stands for an input in ``set_inputs``: unknown sizes in ``shape`` are None, and without
    ``shape`` the number of dimensions is unknown too.

    Raises ``ArgumentTypeError`` for data other than numbers, or a shape beside data.
    """

    def __new__(cls, input_data: Any = None, dtype: Any = None, shape: Any = None) -> Any:
        """Return the tensor."""
        if input_data is None and dtype is not None:
            sizes = [0 if n is None else n for n in shape or ()]
            data = torch.empty(sizes, dtype=to_torch(dtype), device="meta")
            placeholder = torch.Tensor._make_subclass(cls, data, False)  # noqa: SLF001
            # -2 is MindSpore's for an unknown number of dimensions
            placeholder.unknown_shape = (
                (-2,) if shape is None else tuple(-1 if n is None else n for n in shape)
            )
            return placeholder
        if shape is not None:
            rule = "shape is for an input of unknown sizes: Tensor(shape=[None, 3], dtype=...), without data"
            raise ArgumentTypeError("Tensor", rule, shape)
        return torch.Tensor._make_subclass(cls, data_of(input_data, to_torch(dtype)), False)  # noqa: SLF001

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run a PyTorch function that was called with a ``Tensor``."""
        own = _ATTRIBUTES.get(func)
        if torch.compiler.is_dynamo_compiling():
            return interpose.run_traced(func, args, kwargs or {}) if own is None else own(*args)
        if own is not None and for_script(1):
            return own(*args)
        return interpose.run(func, args, kwargs or {})

    def __str__(self) -> str:
        return str(self.asnumpy())

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        del tensor_contents  # PyTorch's own printing passes it
        return self._described()

    def _described(self) -> str:
        if _no_data(self):
            return f"Tensor(shape={list(_shape(self))}, dtype={self.dtype}, value= <uninitialized>)"
        return printing.describe(self.asnumpy(), str(self.dtype))

    def __format__(self, form: str) -> str:
        return format(self.item(), form) if form else str(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self)
        return memo[id(self)]

    @property
    def size(self) -> Any:
        """The number of elements."""
        if torch.compiler.is_dynamo_compiling() or for_script(1):
            return self.numel()
        return torch.Tensor.size.__get__(self)


interpose.tensor_class.append(Tensor)
withdraw(Tensor)


def _dtype(tensor: Any) -> Type:
    with plain_attributes():
        kind = tensor.dtype
    return from_torch(kind)


def _shape(tensor: Any) -> tuple[int, ...]:
    unknown: tuple[int, ...] | None = getattr(tensor, "unknown_shape", None)
    with plain_attributes():
        return tuple(tensor.shape) if unknown is None else unknown


def _device(tensor: Any) -> str:
    with plain_attributes():
        device = tensor.device
    return "CPU" if device.type in ("cpu", "meta") else f"GPU:{device.index or 0}"


def _transposed(tensor: Any) -> Any:
    return tensor.permute(tuple(range(tensor.dim()))[::-1])


# getter of torch.Tensor: the function that a script gets instead
_ATTRIBUTES: dict[Any, Callable[[Any], Any]] = {
    torch.Tensor.dtype.__get__: _dtype,
    torch.Tensor.shape.__get__: _shape,
    torch.Tensor.T.__get__: _transposed,
    torch.Tensor.device.__get__: _device,
}


_NUMBERS = {bool: torch.bool, int: torch.int64, float: torch.float32}


def _no_data(tensor: Any) -> bool:
    with plain_attributes():
        fake = tensor.device.type == "meta" or torch._C._functorch.is_functorch_wrapped_tensor(tensor)  # noqa: SLF001
        return bool(fake)


def data_of(value: Any, kind: Any) -> Any:
    """Return a new plain tensor on the context's device, from a number, list, array or tensor.

    Raises ``ArgumentTypeError`` for anything else.
    """
    if isinstance(value, torch.Tensor):
        with plain_attributes():
            return value.detach().to(device=context.device(), dtype=kind, copy=True)
    if type(value) in _NUMBERS:
        return torch.tensor(value, dtype=kind or _NUMBERS[type(value)], device=context.device())
    if torch.compiler.is_dynamo_compiling() and isinstance(value, (list, tuple)):
        return torch.tensor(value, dtype=kind, device=context.device())  # NumPy is not traced
    array = _array(value)
    data = tensors.copied(array, context.device())
    return data.to(dtype=kind) if kind is not None else data


def _array(value: Any) -> np.ndarray[Any, Any]:
    listed = isinstance(value, (list, tuple))
    try:
        array = np.array(_without_tensors(value)) if listed else np.asarray(value)
    except ValueError as problem:  # rows of different lengths
        raise ArgumentTypeError("Tensor", f"the data are not rectangular ({problem})") from None
    if array.dtype.kind in "OSUMmV" and array.dtype.isbuiltin != 2:
        rule = "input_data must be a number, a list of numbers, a NumPy array or a Tensor"
        raise ArgumentTypeError("Tensor", rule, f"{type(value).__name__} of dtype {array.dtype}")
    if listed and array.dtype == np.float64:
        return array.astype(np.float32)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _without_tensors(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return tensors.over(value)
    return [_without_tensors(item) for item in value] if isinstance(value, (list, tuple)) else value


def tensor(input_data: Any, dtype: Any = None) -> Any:
    """Return ``Tensor(input_data, dtype)``."""
    return Tensor(input_data, dtype)


def is_tensor(value: Any) -> bool:
    """Whether a value is a tensor."""
    return isinstance(value, torch.Tensor)
