"""The plan of a program: the role of each loop (threads, vector, register tile, band), and what vectors do.

Passes fill it, and the emitters print what it says. Those of devices read the roles alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .grammar import Expr, For, Load, Op, Stmt, Store, Type, perfect


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
class Panel:
    """A packed load, the loops around it within the tile, and the C variable that points to its elements.

    ``slides``: by how many elements lanes move in an iteration of the innermost loop, 1 or -1 for a window
    over a row. Then the row is packed once, with the elements that follow the lanes. With 0, each iteration
    has elements of its own. ``transposed``: lanes are rows, along which the innermost loop walks forward.
    """

    load: Load
    loops: tuple[For, ...]
    name: str
    slides: int = 0
    transposed: bool = False

    @property
    def variable(self) -> str:
        """What replaces the load, which is no author's name."""
        return f"panel {self.name}"

    @property
    def packed_in(self) -> tuple[For, ...]:
        """The loops in which it is packed."""
        return self.loops[:-1] if self.slides else self.loops


@dataclass(frozen=True)
class RowPanel:
    """A load in a sum, the sum's loop, and the C variable that points to its elements for a tile's rows."""

    load: Load
    loop: For
    name: str

    @property
    def variable(self) -> str:
        """What replaces the load, which is no author's name."""
        return f"panel {self.name}"


@dataclass(frozen=True)
class Tile:
    """A register tile over iterations of ``row``: loads that all rows share, and those of them to pack."""

    row: str
    shared: tuple[Load, ...] = ()
    to_pack: tuple[Load, ...] = ()
    dots: tuple[Dot, ...] = ()
    panels: tuple[Panel, ...] = ()
    """How the loads to pack are packed."""
    row_panels: tuple[RowPanel, ...] = ()
    """Loads of the rows that are packed, too."""
    prefetched: tuple[tuple[str, Load], ...] = ()
    """(loop, load): the load is prefetched in the loop of this variable, for a later step of it."""
    whole: bool = False
    """Whether the last vectors of a strip run with the others, although they have fewer lanes."""
    blocked: str = ""
    """The loop of the sum that runs in blocks whose panels fit into a cache; "" if there is none."""


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
class Coalesced:
    """Two loops over neighbouring elements, which run as one where all pairs of ``equal`` are equal.

    ``inner`` is the variable of the inner loop, ``length`` its end.
    """

    inner: str
    length: Expr
    equal: tuple[tuple[Expr, Expr], ...]


@dataclass(frozen=True)
class Jammed:
    """The body of a loop for ``rows`` of its iterations at once."""

    rows: int
    body: tuple[Stmt, ...]


@dataclass(frozen=True)
class Strip:
    """Loads of one row in neighbouring columns, the least one first, or a store.

    ``step`` is by how much the column moves in an iteration, 1 or -1, and ``span`` how far the last column is
    from the first.
    """

    accesses: tuple[Load | Store, ...]
    step: int
    span: int = 0

    @property
    def first(self) -> Load | Store:
        """The access of the least column."""
        return self.accesses[0]


@dataclass(frozen=True)
class Slide:
    """Loads along one row, with their offsets in elements from the first."""

    loads: Mapping[Load, int]

    @property
    def first(self) -> Load:
        """The load that begins first."""
        return min(self.loads, key=lambda load: self.loads[load])

    @property
    def span(self) -> int:
        """The offset of the last load."""
        return max(self.loads.values())


@dataclass(frozen=True)
class Prefetched:
    """What a vector loop asks for before it reads it."""

    streams: tuple[Load, ...] = ()
    """Loads whose tensors it reads from end to end."""
    near: bool = False
    """Whether these go into the first cache, and not only into the second."""
    next_rows: tuple[Load, ...] = ()
    """Loads of the row of the loop around: it asks for the next one."""
    selected: tuple[Load | Store, ...] = ()
    """Accesses of a row that an index tensor selects: it asks for that of a later iteration around it."""


@dataclass(frozen=True)
class Plan:
    """The roles of loops, by variable, and what the passes of ``loops/vectors`` decide for them."""

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
    jammed: Mapping[str, Jammed] = field(default_factory=dict)
    """By loop of threads that adds rows to sums."""
    coalesced: Mapping[str, Coalesced] = field(default_factory=dict)
    """By variable of the outer loop."""
    interleaved: Mapping[str, int] = field(default_factory=dict)
    """How many vectors run at once, by vector loop, where it is not one."""
    quotients: Mapping[str, tuple[Op, ...]] = field(default_factory=dict)
    """Divisions that are computed before a vector loop or the rows of a tile."""
    checked_once: Mapping[str, tuple[Load | Store, ...]] = field(default_factory=dict)
    """Accesses whose indices are checked before a vector loop."""
    transposed: Mapping[str, tuple[Strip, ...]] = field(default_factory=dict)
    """By loop inside a vector loop: what is loaded and stored as squares of elements."""
    slides: Mapping[str, tuple[Slide, ...]] = field(default_factory=dict)
    """By vector loop: rows whose vectors it loads once."""
    prefetched: Mapping[str, Prefetched] = field(default_factory=dict)
    """By vector loop."""
    streaming: Mapping[str, tuple[Store, ...]] = field(default_factory=dict)
    """By vector loop: stores past the caches."""

    def band(self, var: str) -> tuple[Member, ...]:
        """Return the band of a loop, the loop itself included; empty where it is in none."""
        return next((group for group in self.bands if any(m.var == var for m in group)), ())

    def tile_of(self, node: For) -> For | None:
        """Return the loop of lanes, if a loop is the row loop of a tile."""
        if len(node.body) != 1 or not isinstance(node.body[0], For):
            return None
        inner = node.body[0]
        tile = self.tiles.get(inner.var)
        return inner if tile is not None and tile.row == node.var else None

    def threads_loops(self, node: For) -> list[For]:
        """Return the loops whose iterations threads share: those of a nest, outermost first, or the loop."""
        inner = () if self.band(node.var) else self.collapsed.get(node.var, ())
        return [loop for loop in perfect(node) if loop.var in (node.var, *inner)]
