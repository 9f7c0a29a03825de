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
from .dtype import Type, to_torch
from .interpose import plain, unlike_torch
from .reduce import T, reduce


def reduction(name: str) -> Callable[..., Any]:
    """Return a method ``(axis, keepdims or dtype, ...)`` that calls PyTorch's reduction of this name."""
    function = getattr(T, name)

    def method(  # accepts the parameter names of both frameworks
        self: Any,
        axis: Any = None,
        keep: Any = False,
        keepdims: bool = False,
        *,
        keep_dims: bool = False,
        dtype: Any = None,
        dim: Any = None,
        keepdim: bool = False,
    ) -> Any:
        if not isinstance(keep, bool):  # Tensor.sum(axis, dtype, keepdims)
            keep, dtype = False, keep if dtype is None else dtype
        kind = to_torch(dtype)
        keep_any = keep or keepdims or keep_dims or keepdim
        return reduce(function, self, dim if axis is None else axis, keep_any, dtype=kind)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"Return the {name} over ``axis``: an int, a tuple, or None for all."
    return method


class Methods:
    """The methods that a ``Tensor`` adds to PyTorch's; they return a ``Tensor`` unless noted."""

    sum = reduction("sum")
    mean = reduction("mean")

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

    def set_dtype(self, dtype: Any) -> Any:
        """Return the values as another dtype."""
        return self.astype(dtype)

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
        if order == "F":
            return T.flatten(T.permute(self, _reversed(self)))
        return T.flatten(self, start_dim, end_dim)

    @unlike_torch
    def transpose(self, *axes: Any) -> Any:
        """Return the tensor with its dimensions in the order of ``axes``, or reversed."""
        if len(axes) == 1 and isinstance(axes[0], (tuple, list)):
            axes = tuple(axes[0])
        return T.permute(self, axes or _reversed(self))

    @unlike_torch
    def max(self, axis: Any = None, keepdims: bool = False, *, return_indices: bool = False) -> Any:
        """Return the largest values; with ``return_indices`` also their indices."""
        return _extreme(T.amax, T.max, self, axis, keepdims, return_indices)

    @unlike_torch
    def min(self, axis: Any = None, keepdims: bool = False, *, return_indices: bool = False) -> Any:
        """Return the smallest values; with ``return_indices`` also their indices."""
        return _extreme(T.amin, T.min, self, axis, keepdims, return_indices)

    @unlike_torch
    def std(self, axis: Any = None, ddof: int = 0, keepdims: bool = False) -> Any:
        """Return the standard deviation; ``ddof`` is subtracted from the count."""
        return reduce(T.std, self, axis, keepdims, correction=ddof)

    @unlike_torch
    def var(self, axis: Any = None, ddof: int = 0, keepdims: bool = False) -> Any:
        """Return the variance; ``ddof`` is subtracted from the count."""
        return reduce(T.var, self, axis, keepdims, correction=ddof)

    @unlike_torch
    def any(self, axis: Any = None, keep_dims: bool = False) -> Any:
        """Return whether any entry is true."""
        return reduce(T.any, self, axis, keep_dims)

    @unlike_torch
    def all(self, axis: Any = None, keep_dims: bool = False) -> Any:
        """Return whether all entries are true."""
        return reduce(T.all, self, axis, keep_dims)

    @unlike_torch
    def prod(self, axis: Any = None, keep_dims: bool = False, dtype: Any = None) -> Any:
        """Return the product over one axis, or of all entries."""
        return reduce(T.prod, self, axis, keep_dims, dtype=to_torch(dtype))

    @unlike_torch
    def split(self, split_size_or_sections: Any, axis: int = 0) -> Any:
        """Return a tuple of parts of this size, or of these sizes."""
        return torch.split(self, split_size_or_sections, axis)

    @unlike_torch
    def equal(self, other: Any) -> Any:
        """Return an elementwise comparison, as a tensor of bool."""
        return T.eq(self, other)

    @unlike_torch
    def gather(self, input_indices: Any, axis: Any, batch_dims: int = 0) -> Any:
        """Return the slices of ``axis`` with these indices."""
        from .ops import functions

        return functions.gather(self, input_indices, axis, batch_dims)

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


def _reversed(tensor: Any) -> tuple[int, ...]:
    return tuple(range(T.dim(tensor)))[::-1]


def _extreme(values: Any, both: Any, tensor: Any, axis: Any, keep: bool, indices: bool) -> Any:
    if indices and axis is not None:
        return tuple(both(tensor, dim=axis, keepdim=keep))
    return reduce(values, tensor, axis, keep)
