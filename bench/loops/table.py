"""A row of the tables of loop kernels."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Literal

Kind = Literal["elementwise", "row reduction", "column reduction", "stencil", "contraction", "scan"]
# takes a compiler of functions (torch.compile, or the identity) and returns the peer
TorchPeer = Callable[[Callable[..., Any]], Callable[..., Any]]


@dataclasses.dataclass(frozen=True)
class Bound:
    """The least work of a call: ``amount(itemsize, **sizes)`` bytes, flops or transcendental calls.

    For bytes, ``level`` is the memory that the working set of the bench sizes fits in.
    """

    unit: Literal["bytes", "flops", "calls"]
    amount: Callable[..., float]
    level: Literal["dram", "l3", "l2"] = "dram"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Program:
    """A loop kernel, its data, and the same computation in NumPy.

    ``make(dtype, **sizes)`` returns the arguments: tensors, then numbers. ``kernel`` and ``numpy``
    return the same output or tuple of outputs. They write only the arguments at ``updates``, which must be
    restored before the next call.
    """

    name: str
    kind: Kind
    kernel: Callable[..., Any]
    make: Callable[..., tuple[Any, ...]]
    numpy: Callable[..., Any]
    small: Mapping[str, int]
    bench: Mapping[str, int]
    dtype: str = "float64"
    updates: tuple[int, ...] = ()

    def arguments(self, sizes: Mapping[str, int], dtype: str | None = None) -> tuple[Any, ...]:
        """Return new arguments with the same values each time."""
        return self.make(dtype or self.dtype, **sizes)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Row(Program):
    """A program with peers and a bound.

    ``numba`` is a Python function that ``peers.jit`` compiles. It writes new outputs into further arguments,
    so that page faults of new arrays are not counted. ``torch`` is a ``TorchPeer`` that returns the same as
    ``numpy``, or the reason why there is none. The bound is the greatest of ``bounds``.
    """

    numba: Callable[..., Any]
    torch: TorchPeer | str
    bounds: tuple[Bound, ...]


def results(program: Program, arguments: tuple[Any, ...]) -> tuple[tuple[Any, ...], list[int]]:
    """Return NumPy's outputs, and the positions of the outputs that are new arrays."""
    outputs = program.numpy(*arguments)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    updated = [id(arguments[position]) for position in program.updates]
    return outputs, [position for position, output in enumerate(outputs) if id(output) not in updated]


def whole(function: Callable[..., Any]) -> TorchPeer:
    """Return the peer that compiles the function in one piece."""
    return lambda compiler: compiler(function)
