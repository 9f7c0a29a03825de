"""The schedules of a kernel that are tried: what can be chosen for each of its nests of loops.

The nests are those that the compiler has when the author's steps are applied, as only these have names.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..loops.analysis.loop_names import by_variable
from ..loops.ir.grammar import For, If, Kernel, Stmt, perfect
from ..loops.ir.schedule import Schedule, Step
from ..loops.ir.stops import stop_flags
from ..loops.passes.apply_schedule import apply_schedule
from ..loops.pipeline import PIPELINE
from ..loops.program import Program
from ..loops.runner import run_passes

TILES = (0, 8, 16, 32, 64, 128, 256)
"""Sizes of tiles; 0 for none."""
UNROLLS = (0, 2, 4, 8)
MOST_PERMUTED, MOST_NESTS = 3, 4
"""Loops of a nest whose orders are tried, and nests whose loops are."""
AUTO = ""
"""The compiler chooses."""


@dataclass(frozen=True)
class Choice:
    """One parameter: its name, and its values, of which the first is what the compiler does by itself."""

    name: str
    values: tuple[str | int, ...]


@dataclass(frozen=True)
class Nest:
    """The names of the loops of a perfect nest, outermost first."""

    loops: tuple[str, ...]

    def choices(self) -> Iterator[Choice]:
        """Yield the parameters of the nest."""
        first = self.loops[0]
        some = self.loops[-MOST_PERMUTED:]
        if len(some) > 1:
            yield Choice(f"order {first}", tuple(" ".join(order) for order in itertools.permutations(some)))
        for name in some:
            yield Choice(f"tile {name}", TILES)
        yield Choice(f"unroll {self.loops[-1]}", UNROLLS)
        yield Choice(f"vectorize {first}", (AUTO, *self.loops))
        yield Choice(f"parallel {first}", (AUTO, *self.loops))

    def steps(self, get: Callable[[str], Any]) -> Iterator[Step]:
        """Yield the steps for values of the parameters. The blocks of tiled loops go outwards, in order."""
        first, some = self.loops[0], self.loops[-MOST_PERMUTED:]
        order = get(f"order {first}").split() if len(some) > 1 else list(some)
        tiled = {name: get(f"tile {name}") for name in some if get(f"tile {name}")}
        for name, size in tiled.items():
            yield Step("tile", (name,), size)
        outers = [f"{name}.outer" for name in order if name in tiled]
        inners = [f"{name}.inner" if name in tiled else name for name in order]
        blocks = [*outers, *inners]
        written = [
            part
            for name in some
            for part in ((f"{name}.outer", f"{name}.inner") if name in tiled else (name,))
        ]
        if blocks != written and len(blocks) > 1:
            yield Step("interchange", tuple(blocks))
        factor = get(f"unroll {self.loops[-1]}")
        if factor:
            yield Step("unroll", (inners[-1],), factor)
        for role, part in (("parallel", "outer"), ("vectorize", "inner")):
            chosen = get(f"{role} {first}")
            if chosen:
                yield Step(role, (f"{chosen}.{part}" if chosen in tiled else chosen,))


@dataclass(frozen=True)
class Space:
    """All parameters of a kernel."""

    nests: tuple[Nest, ...]

    @classmethod
    def of(cls, kernel: Kernel) -> Space:
        """Return the space of a typed kernel."""
        before = PIPELINE[: [one.run for one in PIPELINE].index(apply_schedule) + 1]
        program = run_passes(Program(kernel), before)
        names = by_variable(program.loops)
        nests = [nest for nest in _nests(program.kernel.body) if all(loop.var in names for loop in nest)]
        nests.sort(key=len, reverse=True)
        return cls(tuple(Nest(tuple(names[loop.var] for loop in nest)) for nest in nests[:MOST_NESTS]))

    @property
    def choices(self) -> list[Choice]:
        """All parameters, in order."""
        return [choice for nest in self.nests for choice in nest.choices()]

    @property
    def size(self) -> int:
        """How many combinations there are."""
        count = 1
        for choice in self.choices:
            count *= len(choice.values)
        return count

    def default(self) -> dict[str, Any]:
        """Return the values for which the compiler does everything by itself."""
        return {choice.name: choice.values[0] for choice in self.choices}

    def neighbours(self) -> Iterator[dict[str, Any]]:
        """Yield the values in which one parameter differs from the default."""
        for choice in self.choices:
            for value in choice.values[1:]:
                yield {**self.default(), choice.name: value}

    def schedule(self, values: Mapping[str, Any], base: Schedule) -> Schedule:
        """Return the author's schedule with the steps for some values after its own."""
        steps = [step for nest in self.nests for step in nest.steps(values.__getitem__)]
        return Schedule((*base.steps, *steps))


def _nests(body: Sequence[Stmt]) -> Iterator[list[For]]:
    """Yield the perfect nests of a body, outer ones first, without loops that may end early."""
    for node in body:
        if isinstance(node, For):
            nest = [loop for loop in perfect(node) if not stop_flags(loop)]
            if nest:
                yield nest
            yield from _nests(perfect(node)[-1].body)
        elif isinstance(node, If):
            yield from _nests((*node.body, *node.orelse))
