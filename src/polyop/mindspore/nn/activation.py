"""Activations as cells: one row of a table each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from ...core.errors import ArgumentTypeError
from ..cell import Cell
from ..interpose import wrap


def _gelu(x: Any, approximate: bool) -> Any:
    return functional.gelu(x, approximate="tanh" if approximate else "none")


# cell: (function, ((constructor's argument, the function's argument, default), ...))
ROWS: dict[str, tuple[Callable[..., Any], tuple[tuple[str, str, Any], ...]]] = {
    "ReLU": (torch.relu, ()),
    "ReLU6": (functional.relu6, ()),
    "Sigmoid": (torch.sigmoid, ()),
    "Tanh": (torch.tanh, ()),
    "SiLU": (functional.silu, ()),
    "Mish": (functional.mish, ()),
    "HSwish": (functional.hardswish, ()),
    "HSigmoid": (functional.hardsigmoid, ()),
    "LogSigmoid": (functional.logsigmoid, ()),
    "Softsign": (functional.softsign, ()),
    "LeakyReLU": (functional.leaky_relu, (("alpha", "negative_slope", 0.2),)),
    "ELU": (functional.elu, (("alpha", "alpha", 1.0),)),
    "Softmax": (torch.softmax, (("axis", "dim", -1),)),
    "LogSoftmax": (torch.log_softmax, (("axis", "dim", -1),)),
    "Identity": (wrap, ()),
    "GELU": (_gelu, (("approximate", "approximate", True),)),
}


class Activation(Cell):
    """A function of PyTorch as a cell."""

    _function: Callable[..., Any]
    _options: tuple[tuple[str, str, Any], ...] = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        names = [name for name, _, _ in self._options]
        if len(args) > len(names) or kwargs.keys() - set(names[len(args) :]):
            rule = f"takes {', '.join(names) or 'no arguments'}"
            raise ArgumentTypeError(f"nn.{type(self).__name__}", rule, f"{args} {kwargs}")
        values = {**dict(zip(names, args, strict=False)), **kwargs}
        self.settings = {torch_name: values.get(name, default) for name, torch_name, default in self._options}

    def construct(self, x: Any) -> Any:
        """Return the activation of ``x``."""
        return wrap(self._function(x, **self.settings))


def _make(name: str, function: Any, options: Any) -> type[Activation]:
    body = {
        "_function": staticmethod(function),
        "_options": options,
        "__doc__": f"The activation {name}.",
    }
    return type(name, (Activation,), body)


ACTIVATIONS: dict[str, type[Cell]] = {name: _make(name, *row) for name, row in ROWS.items()}


def activation(value: Any) -> Any:
    """Return the cell of a named activation, in any case of letters; a cell or None unchanged."""
    if not isinstance(value, str):
        return value
    by_name = {name.lower(): kind for name, kind in ACTIVATIONS.items()}
    if value.lower() not in by_name:
        raise ArgumentTypeError("activation", f"must be one of {', '.join(sorted(by_name))}", repr(value))
    return by_name[value.lower()]()
