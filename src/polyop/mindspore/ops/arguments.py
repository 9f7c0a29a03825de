"""What the functions of this folder do with their arguments before PyTorch gets them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from ..dtype import Type
from ..interpose import wrap, wrap_apart

Function = Callable[..., Any]


def for_torch(value: Any) -> Any:
    """Return an argument as PyTorch takes it: dtypes are PyTorch's."""
    return value.torch if isinstance(value, Type) else value


def passed_on(function: Function) -> Function:
    """Return a function of PyTorch whose arguments mean the same here; its results are ``Tensor``."""

    @functools.wraps(function, assigned=("__name__", "__doc__"), updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        named = {name: for_torch(value) for name, value in kwargs.items()}
        return wrap_apart(function(*map(for_torch, args), **named), args)

    call.__doc__ = call.__doc__ or f"PyTorch's {call.__name__}."
    return call


def of_two(function: Function) -> Function:
    """Return a function of two tensors that takes a number for either."""

    @functools.wraps(function, assigned=("__name__", "__doc__"), updated=())
    def call(x: Any = None, y: Any = None, **named: Any) -> Any:
        # the names of the two differ from function to function
        given = [v for v in (x, y) if v is not None] + list(named.values())
        return wrap(function(*map(as_tensor, given)))

    return call


def as_tensor(value: Any) -> Any:
    """Return a number as a tensor of no dimensions, which leaves the other's dtype as it is."""
    return value if isinstance(value, torch.Tensor) else torch.tensor(value)


def axes_of(axis: Any) -> Any:
    """Return None for no axis and for an empty tuple, both of which mean all."""
    return None if isinstance(axis, (tuple, list)) and not axis else axis


def sizes(shape: Any) -> tuple[int, ...]:
    """Return a shape given as an int, a list, a tuple or a tensor as a tuple."""
    if isinstance(shape, torch.Tensor):
        shape = shape.tolist()
    return (shape,) if isinstance(shape, int) else tuple(shape)
