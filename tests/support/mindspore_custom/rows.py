"""A row: a program with a custom operator, and what comes out by NumPy.

A program is a function of a ``World``: the package and the class ``Custom`` under test. It returns what is called with
the inputs: an operator, a function or a ``Cell``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

X = np.array([1.0, 4.0, 9.0], np.float32)
Y = np.array([3.0, -4.0, 5.0], np.float32)
SQUARE = np.arange(6, dtype=np.float32).reshape(2, 3)
ROWS: list[Row] = []


@dataclasses.dataclass
class Row:
    """A program.

    ``expected``  a function of the inputs as NumPy arrays: an array, or a tuple where a call returns one.
    ``gradient``  a function of them, for ``ms.grad`` of all inputs of floats: a tuple.
    ``again``     other inputs, for the same network.
    ``error``     words of the error, in the way ``error_in``, such as "mindspore graph", or in all.
    ``own``       where MindSpore's own ``Custom`` gives the expected values: "both", "pynative", "graph" or "";
                  None where running it is undefined behaviour.
    """

    group: str
    make: Callable[[World], Any]
    inputs: tuple[Any, ...]
    expected: Callable[..., Any] | None
    gradient: Callable[..., Any] | None
    again: tuple[Any, ...]
    error: str
    error_in: str
    own: str | None

    @property
    def name(self) -> str:
        """The name of the program."""
        return self.make.__name__

    def fails(self, way: str) -> bool:
        """Whether an error is expected."""
        return bool(self.error) and self.error_in in ("", way)


@dataclasses.dataclass
class World:
    """What a program is written with: ``Custom`` is polyop's or MindSpore's own."""

    ms: Any
    Custom: Any
    kernels: str
    library: str

    def __getattr__(self, name: str) -> Any:
        """Return ``ops``, ``nn`` or another name of the package."""
        return getattr(self.ms, name)

    def source(self, function: str) -> str:
        """Return ``func`` for a function of kernels.cc."""
        return f"{self.kernels}:{function}"

    def information(self, inputs: int = 2, outputs: int = 1, target: str = "CPU") -> Any:
        """Return a ``CustomRegOp`` with these tensors, of any dtype."""
        made = self.ops.CustomRegOp()
        for i in range(inputs):
            made.input(i, f"x{i}")
        for i in range(outputs):
            made.output(i, f"y{i}")
        return made.dtype_format(*[self.ops.DataType.None_None] * (inputs + outputs)).target(target)


def program(
    group: str,
    inputs: Any,
    expected: Any = None,
    *,
    gradient: Any = None,
    again: Any = (),
    error: str = "",
    error_in: str = "",
    own: str | None = "both",
) -> Callable[[Callable[[World], Any]], Callable[[World], Any]]:
    """Return a decorator that adds a program to the table."""

    def add(make: Callable[[World], Any]) -> Callable[[World], Any]:
        ROWS.append(Row(group, make, inputs, expected, gradient, again, error, error_in, own))
        return make

    return add
