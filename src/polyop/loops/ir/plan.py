"""What each loop becomes: a plan is made by ``schedule`` and read by the printers."""

from __future__ import annotations

from dataclasses import dataclass, field

from .grammar import Expr, Load


@dataclass(frozen=True)
class Row:
    """A dimension of a tensor and the index there, by which a loop's iterations are told apart."""

    buffer: str
    axis: int
    index: Expr


@dataclass(frozen=True)
class Tile:
    """A register tile of iterations of ``row``: the loads that all rows share, and those that are packed."""

    row: str
    shared: tuple[Load, ...] = ()
    packed: tuple[Load, ...] = ()


@dataclass(frozen=True)
class Member:
    """One of the loops that run row by row together.

    ``behind``: how many rows after the first loop it comes. ``inset``: how many rows after the begin of a
    thread's band it begins, where the band is not the first.
    """

    var: str
    behind: int
    inset: int


@dataclass(frozen=True)
class Plan:
    """The roles of loops, by variable."""

    threads: set[str] = field(default_factory=set)
    private: dict[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    """Of a loop of threads that is a reduction: (target, op) that each thread has its own of."""
    columns: dict[str, str] = field(default_factory=dict)
    """Of a loop in order: the loop of threads inside it; each thread runs the whole with its part of that."""
    rows: dict[str, Row] = field(default_factory=dict)
    """Of a loop in order: what tells whose iteration it is; each thread has a part of the tensor."""
    bands: tuple[tuple[Member, ...], ...] = ()
    """Loops of threads that run together."""
    vector: set[str] = field(default_factory=set)
    tiles: dict[str, Tile] = field(default_factory=dict)
    """By the vector loop's variable."""

    def band(self, var: str) -> tuple[Member, ...]:
        """Return the loops that run together with one, itself among them, or none."""
        return next((group for group in self.bands if any(m.var == var for m in group)), ())
