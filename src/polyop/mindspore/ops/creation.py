"""Functions that create tensors, on the context's device."""

from __future__ import annotations

from typing import Any

import torch

from .. import context
from ..dtype import to_torch
from ..interpose import wrap
from .arguments import Function, sizes


def _filled(function: Any) -> Function:
    def call(size: Any, dtype: Any = None, *, shape: Any = None) -> Any:
        target = sizes(size if shape is None else shape)
        return wrap(function(target, dtype=to_torch(dtype) or torch.float32, device=context.device()))

    call.__name__, call.__doc__ = (
        function.__name__,
        f"Return {function.__name__} of a shape; Float32 by default.",
    )
    return call


def _filled_like(function: Any) -> Function:
    def call(input: Any, *, dtype: Any = None) -> Any:  # noqa: A002 - MindSpore's name
        return wrap(function(input, dtype=to_torch(dtype)))

    call.__name__, call.__doc__ = function.__name__, "Return a tensor of the input's shape and dtype."
    return call


def full(size: Any, fill_value: Any, *, dtype: Any = None) -> Any:
    """Return a tensor of one value; Int64 by default, also for a float, as MindSpore's."""
    kind = to_torch(dtype) or torch.int64
    return wrap(torch.full(sizes(size), fill_value, dtype=kind, device=context.device()))


def fill(type: Any, shape: Any, value: Any) -> Any:  # noqa: A002
    """Return a tensor of one value."""
    return full(shape, value, dtype=type)


def full_like(input: Any, fill_value: Any, *, dtype: Any = None) -> Any:  # noqa: A002
    """Return a tensor of one value, of the input's shape."""
    return wrap(torch.full_like(input, fill_value, dtype=to_torch(dtype)))


def arange(start: Any = 0, end: Any = None, step: Any = 1, *, dtype: Any = None) -> Any:
    """Return numbers from ``start`` to ``end``, without ``end``; one argument is the end."""
    first, last = (0, start) if end is None else (start, end)
    return wrap(torch.arange(first, last, step, dtype=to_torch(dtype), device=context.device()))


def eye(n: int, m: int | None = None, dtype: Any = None) -> Any:
    """Return a matrix with ones on the diagonal and zeros elsewhere."""
    return wrap(
        torch.eye(n, n if m is None else m, dtype=to_torch(dtype) or torch.float32, device=context.device())
    )


def linspace(start: Any, end: Any, steps: int, *, dtype: Any = None) -> Any:
    """Return evenly spaced numbers, both ends included."""
    return wrap(
        torch.linspace(start, end, steps, dtype=to_torch(dtype) or torch.float32, device=context.device())
    )


def _random(function: Any) -> Function:
    def call(*size: Any, dtype: Any = None) -> Any:
        shape = sizes(size[0]) if len(size) == 1 else size
        return wrap(function(shape, dtype=to_torch(dtype) or torch.float32, device=context.device()))

    call.__name__, call.__doc__ = function.__name__, "Return random numbers of a shape."
    return call


def standard_normal(shape: Any, seed: int | None = None) -> Any:
    """Return normally distributed random numbers; ``seed`` is ignored, ``ms.set_seed`` counts."""
    del seed
    return wrap(torch.randn(sizes(shape), dtype=torch.float32, device=context.device()))


def randint(low: int, high: int, size: Any, *, dtype: Any = None) -> Any:
    """Return random integers from ``low`` to ``high``, without ``high``."""
    kind = to_torch(dtype) or torch.int64
    return wrap(torch.randint(low, high, sizes(size), dtype=kind, device=context.device()))


FUNCTIONS: dict[str, Function] = {
    **{function.__name__: _filled(function) for function in (torch.zeros, torch.ones)},
    **{function.__name__: _filled_like(function) for function in (torch.zeros_like, torch.ones_like)},
    "rand": _random(torch.rand),
    "randn": _random(torch.randn),
    **{
        function.__name__: function
        for function in (full, fill, full_like, arange, eye, linspace, standard_normal, randint)
    },
}
