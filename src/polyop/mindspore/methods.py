"""The methods of MindSpore's tensors that PyTorch's lack, or have with other arguments.

PyTorch accepts ``axis`` and ``keepdims`` for ``dim`` and ``keepdim`` nearly everywhere. The methods
here also accept ``keep_dims`` and empty axes, and have MindSpore's defaults. PyTorch's own code
gets PyTorch's method of the same name (``unlike_torch``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from ..hosts.torch import tensors
from .dtype import Type, from_torch, to_torch
from .interpose import plain, set_requires_grad, unlike_torch
from .reduce import T, promoted, reduce


def reduction(name: str) -> Callable[..., Any]:
    """Return a method ``(axis, keepdims or dtype, keepdims)`` that calls ``ops``'s function of this name."""

    def method(self: Any, axis: Any = None, keep: Any = False, keepdims: bool = False, **named: Any) -> Any:
        from .ops.functions import FUNCTIONS

        if not isinstance(keep, bool):  # Tensor.sum(axis, dtype, keepdims)
            keep, named = False, {"dtype": keep, **named}
        return FUNCTIONS[name](self, axis, keepdims=keep or keepdims, **named)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"Return the {name} over ``axis``: an int, a tuple, or None for all."
    return method


def of_ops(name: str) -> Callable[..., Any]:
    """Return a method that calls the function of this name in ``ops`` with the tensor first."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        from .ops.primitives import FUNCTIONS

        return FUNCTIONS[name](self, *args, **kwargs)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"Return ``ops.{name}`` of the tensor."
    return unlike_torch(method)


class Methods:
    """The methods that a ``Tensor`` adds to PyTorch's; they return a ``Tensor`` unless noted."""

    sum = reduction("sum")
    mean = reduction("mean")

    @unlike_torch
    def requires_grad_(self, requires_grad: Any = True, /) -> None:
        """Set whether gradients are recorded; integers have none. Return None, as MindSpore does."""
        set_requires_grad(self, bool(requires_grad))

    def asnumpy(self) -> Any:
        """Return a NumPy array; it shares the memory of a dense CPU tensor."""
        return tensors.to_numpy(plain(self))

    def astype(self, dtype: Any, copy: bool = True) -> Any:
        """Return the values as another dtype: MindSpore's, NumPy's or a name."""
        return T.to(self, to_torch(dtype), copy=copy)

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """Return the values as another dtype, or on another device."""
        args = tuple(value.torch if isinstance(value, Type) else value for value in args)
        if isinstance(kwargs.get("dtype"), Type):
            kwargs["dtype"] = kwargs["dtype"].torch
        return T.to(self, *args, **kwargs)

    def value(self) -> Any:
        """Return the tensor; of a ``Parameter``, its value as a ``Tensor`` with its history."""
        return self

    def init_data(self, *args: Any, **kwargs: Any) -> Any:
        """Return the tensor, whose data always exist here."""
        del args, kwargs
        return self

    def copy(self) -> Any:
        """Return a copy."""
        return T.clone(self)

    def move_to(self, to: str, blocking: bool = True) -> Any:
        """Return the tensor on "CPU" or on the context's device ("GPU", "Ascend")."""
        from . import context

        return T.to(self, context.device_of(to), non_blocking=not blocking)

    def assign_value(self, value: Any) -> Any:
        """Copy another tensor's values into this one, without a gradient; return this tensor."""
        with torch.no_grad():
            T.copy_(self, value)
        return self

    @property
    def strides(self) -> tuple[int, ...]:
        """The bytes from one entry to the next, for each dimension."""
        return tuple(step * T.element_size(self) for step in T.stride(self))

    @property
    def has_init(self) -> bool:
        """Whether the data are not initialised yet: always False here."""
        return False

    def expand_dims(self, axis: int) -> Any:
        """Return the tensor with a dimension of 1 at ``axis``."""
        return T.unsqueeze(self, axis)

    def flatten(self, order: Any = "C", start_dim: int = 0, end_dim: int = -1) -> Any:
        """Return the tensor with ``start_dim`` to ``end_dim`` merged; order "F" is column-major."""
        if isinstance(order, int):  # PyTorch's flatten(start_dim, end_dim)
            order, start_dim, end_dim = "C", order, start_dim or end_dim
        from .ops import functions

        return functions.flatten(self, order, start_dim=start_dim, end_dim=end_dim)

    @unlike_torch
    def __add__(self, other: Any) -> Any:
        return T.__add__(*promoted(self, other))

    @unlike_torch
    def __sub__(self, other: Any) -> Any:
        return T.__sub__(*promoted(self, other))

    @unlike_torch
    def __floordiv__(self, other: Any) -> Any:
        return T.div(self, other, rounding_mode="floor")

    @unlike_torch
    def __invert__(self) -> Any:
        return T.logical_not(self)

    @unlike_torch
    def cumsum(self, dim: Any = None, dtype: Any = None, *, axis: Any = None) -> Any:
        """Return the running sum along a dimension, in this dtype or ``dtype``."""
        from .ops import functions

        total = functions.cumsum(self, dim if axis is None else axis)
        return total if dtype is None else total.astype(dtype)

    def type(self) -> str:
        """Return the name of the dtype."""
        return str(from_torch(to_torch(T.dtype.__get__(self))))

    @unlike_torch
    def transpose(self, *axes: Any) -> Any:
        """Return the tensor with its dimensions in the order of ``axes``, or reversed; two change places."""
        if len(axes) == 2 and all(isinstance(axis, int) for axis in axes):
            return T.transpose(self, *axes)
        if len(axes) == 1 and isinstance(axes[0], (tuple, list)):
            axes = tuple(axes[0])
        return T.permute(self, axes or _reversed(self))

    @unlike_torch
    def max(self, *dim: Any, **named: Any) -> Any:
        """Return the largest values over ``axis=``, or with their indices over ``dim``, or of all."""
        return _extreme(T.amax, T.max, self, *dim, **named)

    @unlike_torch
    def min(self, *dim: Any, **named: Any) -> Any:
        """Return the smallest values over ``axis=``, or with their indices over ``dim``, or of all."""
        return _extreme(T.amin, T.min, self, *dim, **named)

    @unlike_torch
    def prod(self, axis: Any = None, keep_dims: bool = False, dtype: Any = None) -> Any:
        """Return the product over one axis, or of all entries."""
        return reduce(T.prod, self, axis, keep_dims, dtype=to_torch(dtype))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Return a NumPy array, for NumPy."""
        del copy
        return self.asnumpy() if dtype is None else self.asnumpy().astype(dtype)

    def __float__(self) -> float:
        """Return the one entry."""
        return float(T.item(self))

    def __int__(self) -> int:
        """Return the one entry, rounded towards zero."""
        return int(T.item(self))

    def __iter__(self) -> Iterator[Any]:
        """Yield the entries of the first dimension."""
        return iter(T.unbind(self, 0))


_OF_OPS = (
    "add", "all", "any", "argmin", "argsort", "equal", "floor_divide", "gather", "maximum", "minimum", "sort",
    "split", "std", "sub", "topk", "var",
)  # fmt: skip
for _name in _OF_OPS:
    setattr(Methods, _name, of_ops(_name))


def _reversed(tensor: Any) -> tuple[int, ...]:
    return tuple(range(T.dim(tensor)))[::-1]


def _extreme(
    values: Any,
    both: Any,
    tensor: Any,
    dim: Any = None,
    keepdim: bool = False,
    *,
    axis: Any = None,
    keepdims: bool = False,
    return_indices: bool = False,
) -> Any:
    if dim is not None or (return_indices and axis is not None):
        return tuple(both(tensor, dim=axis if dim is None else dim, keepdim=keepdim or keepdims))
    return reduce(values, tensor, axis, keepdim or keepdims)
