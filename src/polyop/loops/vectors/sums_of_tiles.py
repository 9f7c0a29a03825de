"""Run the sums of a tile for all vectors of a strip, and in blocks whose panels fit into a cache.

A sum adds the same products in the same order, whatever its blocks are: what is added so far waits in memory
between two blocks, as it is.

Source: K. Goto and R. van de Geijn, "Anatomy of High-Performance Matrix Multiplication", 2008.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..analysis.lanes import LANE, ROW
from ..analysis.strides import depends
from ..ir.grammar import For
from ..ir.plan import Tile
from ..ir.uses import assigned_by
from ..program import Program
from .tile_body import Parts, accumulators, dependences_of, from_panels, parts_of
from .vector_loops import tiles


def whole_strips(program: Program) -> Program:
    """Return the program with the tiles whose last vectors, of fewer lanes, run with the others."""

    def decided(tile: Tile, lane: For, _: Parts) -> Tile:
        edges = any(depends(end, frozenset({tile.row})) for end in (lane.lo, lane.hi))
        return replace(tile, whole=not edges)

    return _with_tiles(program, decided)


def block_sums(program: Program) -> Program:
    """Return the program with the tiles whose sum runs in blocks."""

    def decided(tile: Tile, lane: For, parts: Parts) -> Tile:
        if len(parts.sums) > 1 or not tile.panels or not tile.whole:
            return tile
        (loop,) = parts.sums
        assert isinstance(loop, For)
        sums = {node.name: node for node in accumulators(parts)}
        differ = dependences_of(from_panels(lane.body, tile), tile, lane.var)
        apart = all(differ[n] == {ROW, LANE} and node.type.dtype != "bool" for n, node in sums.items())
        packed = all(panel.loops[0].var == loop.var for panel in tile.panels)
        packed &= all(panel.loop.var == loop.var for panel in tile.row_panels)
        if not sums or not apart or not packed or not assigned_by(parts.before) <= sums.keys():
            return tile
        return replace(tile, blocked=loop.var)

    return _with_tiles(program, decided)


def _with_tiles(program: Program, decided: Callable[[Tile, For, Parts], Tile]) -> Program:
    """Return the program with what is decided for tiles whose sums are apart."""
    made = dict(program.plan.tiles)
    for _, lane in tiles(program):
        tile = made[lane.var]
        parts = parts_of(from_panels(lane.body, tile), tile, lane.var)
        if parts is not None:
            made[lane.var] = decided(tile, lane, parts)
    return program.with_(plan=replace(program.plan, tiles=made))
