"""Pack the operands of a tile: those that its rows share, and those that it reads down its columns.

The first are packed in the order in which the tile reads them; ``plan_loops`` has chosen which. The second
are ``a[k, i]`` in a sum over k, for rows i: each step of such a sum reads a few neighbours from another row
of memory, often from another page. So each strip of lanes would walk down the same columns again.

Source: K. Goto and R. van de Geijn, "Anatomy of High-Performance Matrix Multiplication", 2008.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..analysis import affine
from ..analysis.bounds import Bounds
from ..analysis.strides import UNIT, depends, stride
from ..ir.grammar import Assign, For, If, Load, Stmt, Store, statements
from ..ir.plan import Panel, RowPanel, Tile
from ..ir.types import NARROW
from ..ir.uses import loads_of
from ..program import Program
from ..schedule.dots import sums_of
from .register_transpose import Lanes, column_of
from .tile_body import across, without_dots
from .vector_loops import tiles


def pack_shared(program: Program) -> Program:
    """Return the program with panels for what the rows of tiles share."""
    plan = program.plan
    made = dict(plan.tiles)
    for _, lane in tiles(program):
        tile = plan.tiles[lane.var]
        body = without_dots(lane.body, tile)
        made[lane.var] = replace(tile, panels=_panels(replace(lane, body=body), tile, program.bounds))
    return program.with_(plan=replace(plan, tiles=made))


def pack_rows(program: Program) -> Program:
    """Return the program with panels for what tiles read down their columns."""
    plan = program.plan
    made = dict(plan.tiles)
    for row, lane in tiles(program):
        tile = plan.tiles[lane.var]
        body = without_dots(lane.body, tile)
        panels = _row_panels(replace(lane, body=body), row.var, program.bounds)
        made[lane.var] = replace(tile, row_panels=panels)
    return program.with_(plan=replace(plan, tiles=made))


def _panels(lane: For, tile: Tile, bounds: Bounds) -> tuple[Panel, ...]:
    """Return the panels of loads in innermost loops, if the ranges of loops do not depend on one another."""
    panels: dict[Load, Panel] = {}

    def visit(body: Sequence[Stmt], loops: tuple[For, ...]) -> None:
        for node in body:
            if isinstance(node, If):
                visit(node.body, loops)
            if not isinstance(node, For):
                continue
            path = (*loops, node)
            visit(node.body, path)
            if any(isinstance(s, For) for s in statements(node.body)):
                continue
            variables = frozenset({tile.row, lane.var, *(f.var for f in path)})
            if any(depends(e, variables) for f in path for e in (f.lo, f.hi)):
                continue
            for load in tile.to_pack:
                if load not in panels and load in loads_of(*statements(node.body)):
                    slides, row = _slides(load, path, lane.var), path[-1].var
                    form = column_of(load, row, frozenset(), Lanes(lane.var), bounds)
                    transposed = form is not None and form[row] == 1
                    panels[load] = Panel(load, path, f"b{len(panels)}_", slides, transposed)

    visit(lane.body, ())
    return tuple(panels.values())


def _slides(load: Load, loops: Sequence[For], lane: str) -> int:
    """Return by how many elements lanes move along a row in an iteration of the innermost loop, else 0."""
    window = loops[-1].var
    elsewhere = any(depends(i, frozenset({window})) for i in load.index[:-1])
    step = affine.step(load.index[-1], window)
    return step if len(loops) > 1 and stride(load, lane) == UNIT and abs(step) == 1 and not elsewhere else 0


def _row_panels(lane: For, row: str, bounds: Bounds) -> tuple[RowPanel, ...]:
    """Return the panels of a tile's rows: of the loads that are prefetched otherwise, in sums of one loop."""
    sums = {loop.var for loop in sums_of(lane.body)}
    found: dict[Load, For] = {}
    for loop, load in across(lane, row):
        alone = loop.var in sums and all(isinstance(s, (Assign, Store)) for s in loop.body)
        plain = load.type.dtype not in (*NARROW, "bool") and not bounds.axes(load)
        if alone and plain and all(affine.linear(i) is not None for i in load.index):
            found.setdefault(load, loop)
    return tuple(RowPanel(load, loop, f"a{n}_") for n, (load, loop) in enumerate(found.items()))
