"""What a line of the tables says."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Literal

Kind = Literal["elementwise", "row reduction", "column reduction", "stencil", "contraction", "scan"]
# given a compiler of functions of tensors (torch.compile, or one that returns its argument): the peer
TorchPeer = Callable[[Callable[..., Any]], Callable[..., Any]]


@dataclasses.dataclass(frozen=True)
class Bound:
    """What one call cannot avoid: ``amount(itemsize, **sizes)`` bytes, flops or transcendentals.

    ``level`` is the memory that the working set of the bench sizes fits, for bytes.
    """

    unit: Literal["bytes", "flops", "calls"]
    amount: Callable[..., float]
    level: Literal["dram", "l3", "l2"] = "dram"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Program:
    """A loop kernel, its data and its meaning in NumPy, written apart from it.

    ``make(dtype, **sizes)`` returns the arguments: tensors, then numbers. ``kernel`` and ``numpy``
    return the same output or tuple of outputs, and write into the arguments at ``updates`` and no others;
    a harness that calls them again restores those.
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
        """Return fresh arguments; the same ones each time."""
        return self.make(dtype or self.dtype, **sizes)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Row(Program):
    """A program with peers and a bound.

    ``numba`` is plain Python that ``peers.jit`` compiles; it writes outputs that are no arguments into
    further arguments, so that a fresh array's page faults are not counted against it. ``torch`` is a
    ``TorchPeer`` that returns what ``numpy`` returns, or the reason why there is none. The bound is the
    greatest of ``bounds``.
    """

    numba: Callable[..., Any]
    torch: TorchPeer | str
    bounds: tuple[Bound, ...]


def results(program: Program, arguments: tuple[Any, ...]) -> tuple[tuple[Any, ...], list[int]]:
    """Return NumPy's outputs, and the positions of those among them that are no arguments."""
    outputs = program.numpy(*arguments)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    updated = [id(arguments[position]) for position in program.updates]
    return outputs, [position for position, output in enumerate(outputs) if id(output) not in updated]


def whole(function: Callable[..., Any]) -> TorchPeer:
    """Return the peer that compiles the function in one piece."""
    return lambda compiler: compiler(function)
