"""Conversions of arguments for PyTorch, shared by the functions of this folder."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from ..dtype import Type
from ..interpose import wrap, wrap_new
from ..reduce import promoted

Function = Callable[..., Any]


def for_torch(value: Any) -> Any:
    """Return an argument for PyTorch: a dtype of MindSpore as PyTorch's, anything else unchanged."""
    return value.torch if isinstance(value, Type) else value


def wrapped(function: Function) -> Function:
    """Return a PyTorch function that has the same arguments in MindSpore, with ``Tensor`` results."""

    @functools.wraps(function, assigned=("__name__", "__doc__"), updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        named = {name: for_torch(value) for name, value in kwargs.items()}
        return wrap_new(function(*map(for_torch, args), **named), args)

    call.__doc__ = call.__doc__ or f"PyTorch's {call.__name__}."
    return call


PROMOTING = (torch.maximum, torch.minimum)
"""Functions of two whose result has the wider dtype, also for tensors without dimensions."""


def of_two(function: Function) -> Function:
    """Return a function of two tensors that also accepts a number for either."""

    @functools.wraps(function, assigned=("__name__", "__doc__"), updated=())
    def call(x: Any = None, y: Any = None, **named: Any) -> Any:
        # the parameter names differ from function to function, so any name is accepted
        operands = [v for v in (x, y) if v is not None] + list(named.values())
        if function in PROMOTING:
            operands = list(promoted(*operands))
        return wrap(function(*map(as_tensor, operands)))

    return call


def as_tensor(value: Any) -> Any:
    """Return a number as a 0-d tensor, which does not change the dtype of the other operand."""
    return value if isinstance(value, torch.Tensor) else torch.tensor(value)


def axes_of(axis: Any) -> Any:
    """Return the axis, or None (all axes) for an empty tuple or list."""
    return None if isinstance(axis, (tuple, list)) and not axis else axis


def sizes(shape: Any) -> tuple[int, ...]:
    """Return a shape as a tuple, from an int, a list, a tuple or a tensor."""
    if isinstance(shape, torch.Tensor):
        shape = shape.tolist()
    return (shape,) if isinstance(shape, int) else tuple(shape)
