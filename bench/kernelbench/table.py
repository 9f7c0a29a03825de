"""A row of the table: a problem of the list, its loop kernel, its sizes, and PyTorch's function."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal

import numpy as np

import polyop

from .values import Values, around_zero

Use = Literal["listed", "timed", "tested"]
USES: tuple[Use, ...] = ("listed", "timed", "tested")


@dataclasses.dataclass(frozen=True)
class Problem:
    """One problem.

    ``shapes`` are the dimensions of the inputs, by name or as numbers: ``"m k, k n"``. ``sizes`` has three
    numbers for each name: of the list, of the list divided for a CPU, and of the tests. ``"m 2048/4 5"`` is
    2048, 512 and 5; ``"m 2048 5"`` is not divided, and ``"m 64"`` is 64 in all three.

    ``torch`` names the function of PyTorch, or of peers.py, that takes the same inputs and attributes.
    ``values`` make the inputs; one of them is for all. ``truth`` names another function whose values and
    gradients are right, if those of ``torch`` are not everywhere.
    """

    number: int
    name: str
    kernel: Callable[..., Any]
    shapes: str
    sizes: str
    torch: str
    attributes: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    values: tuple[Values, ...] = (around_zero,)
    gradient: bool = True
    truth: str = ""
    dtype: ClassVar[str] = "float32"

    @property
    def title(self) -> str:
        """The number and the name."""
        return f"{self.number} {self.name}"

    @property
    def factor(self) -> float:
        """By how much the inputs of the list have more elements than those that are timed."""
        return self._elements("listed") / self._elements("timed")

    def sizes_for(self, use: Use) -> dict[str, int]:
        """Return the sizes by name."""
        rows = (text.split() for text in self.sizes.split(","))
        return {name: _numbers(*numbers)[USES.index(use)] for name, *numbers in rows}

    def shapes_for(self, use: Use) -> list[tuple[int, ...]]:
        """Return the shapes of the inputs."""
        sizes = self.sizes_for(use)
        rows = (text.split() for text in self.shapes.split(","))
        return [tuple(int(d) if d.isdigit() else sizes[d] for d in row) for row in rows]

    def inputs(self, use: Use, dtype: str = dtype) -> tuple[Any, ...]:
        """Return new arrays with the same values each time."""
        shapes = self.shapes_for(use)
        makers = self.values if len(self.values) > 1 else self.values * len(shapes)
        return tuple(
            np.ascontiguousarray(make(shape, dtype, position))
            for position, (shape, make) in enumerate(zip(shapes, makers, strict=True))
        )

    def smooth(self, inputs: tuple[Any, ...]) -> list[int]:
        """Return the positions of the inputs that have a gradient."""
        return [i for i, x in enumerate(inputs) if self.gradient and x.dtype.kind == "f"]

    def ours(self, variant: str = "") -> Callable[..., Any]:
        """Return polyop's operator, as a function of the inputs; each ``variant`` is compiled by itself."""
        return functools.partial(operator(self.kernel, variant), **self.attributes)

    def theirs(self, *, truth: bool = False) -> Callable[..., Any]:
        """Return PyTorch's function, as a function of the inputs."""
        from . import peers

        name = (truth and self.truth) or self.torch
        return functools.partial(peers.function(name), **self.attributes)

    def _elements(self, use: Use) -> int:
        return sum(math.prod(shape) for shape in self.shapes_for(use))


@functools.cache
def operator(kernel: Callable[..., Any], variant: str = "") -> Any:
    """Return the operator of a kernel, which several problems share."""
    return polyop.kernel(name=f"kernelbench::{kernel.__name__}{variant}")(kernel)


def _numbers(listed: str, tested: str = "") -> tuple[int, int, int]:
    """Return the sizes for the three uses.

    >>> _numbers("4096/8", "5"), _numbers("64")
    ((4096, 512, 5), (64, 64, 64))
    """
    whole, _, divisor = listed.partition("/")
    return int(whole), int(whole) // int(divisor or 1), int(tested or whole)
