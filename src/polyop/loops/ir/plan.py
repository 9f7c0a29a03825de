"""The plan of a program: the role of each loop (threads, vector, register tile, band), for the emitters."""

from __future__ import annotations

from dataclasses import dataclass, field

from .grammar import Expr, Load, Type


@dataclass(frozen=True)
class Row:
    """A dimension of a tensor and the index there: it decides which thread runs an iteration of ``loop``."""

    buffer: str
    axis: int
    index: Expr
    loop: str


@dataclass(frozen=True)
class Dot:
    """A sum of products of narrow integers in a tile, of which an instruction adds several terms at once.

    ``loop`` is the variable of the sum's loop, ``total`` the scalar that is summed, ``line`` its statement's.
    ``row`` and ``column`` are the factors, which differ along the rows and along the lanes. ``kind`` is the
    element that a row's factor fits into: "i8" beside unsigned bytes, "u8" beside signed ones, "i16" beside
    its like. ``flipped``: the factor of the columns fits only with its sign bit flipped.
    """

    loop: str
    total: str
    row: Expr
    column: Expr
    kind: str
    flipped: bool
    type: Type
    line: int = 0


@dataclass(frozen=True)
class Tile:
    """A register tile over iterations of ``row``: loads that all rows share, and those of them to pack."""

    row: str
    shared: tuple[Load, ...] = ()
    packed: tuple[Load, ...] = ()
    dots: tuple[Dot, ...] = ()


@dataclass(frozen=True)
class Member:
    """One loop of a band: loops that run together, row by row.

    ``behind``: by how many rows it follows the first loop. ``inset``: by how many rows its range starts after
    the start of a thread's band, except in the first band.
    """

    var: str
    behind: int
    inset: int


@dataclass(frozen=True)
class Plan:
    """The roles of loops, by variable."""

    threads: set[str] = field(default_factory=set)
    private: dict[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    """By loop of threads that is a reduction: the (target, operator) of which each thread has a copy."""
    collapsed: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """By loop of threads: the loops directly in it whose iterations threads share too, outermost first."""
    blocks: dict[str, str] = field(default_factory=dict)
    """By loop of threads: the lanes of the tile in it, of which threads share blocks where it is short."""
    columns: dict[str, str] = field(default_factory=dict)
    """By sequential loop: the loop inside that is divided; each thread runs the outer one with its part."""
    rows: dict[str, Row] = field(default_factory=dict)
    """By sequential loop: the row that an iteration accesses; each thread has a part of the rows."""
    bands: tuple[tuple[Member, ...], ...] = ()
    """Groups of loops of threads that run together."""
    vector: set[str] = field(default_factory=set)
    tiles: dict[str, Tile] = field(default_factory=dict)
    """By variable of the vector loop."""

    def band(self, var: str) -> tuple[Member, ...]:
        """Return the band of a loop, the loop itself included; empty where it is in none."""
        return next((group for group in self.bands if any(m.var == var for m in group)), ())
