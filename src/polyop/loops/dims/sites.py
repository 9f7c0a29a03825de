"""Each statement of a kernel with its coordinate along one dimension.

    for i in range(1, n - 1):
        y[i] = x[i - 1]           coordinate i of y; x is read at coordinate i - 1

A *coordinate* is the position along the dimension. A statement has that of the element that it writes; one
that adds to a tensor without the dimension has that of its loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..analysis import affine
from ..analysis.polyhedra import Access, Leaf, Model
from ..ir.grammar import Load, Store
from ..ir.printing import expression
from .dimension import Dimension, NotSliced


@dataclass(frozen=True, eq=False)
class Site:
    """A statement along a dimension. Coordinates are isl's texts, of loop variables and sizes.

    ``loop`` is its loop along the dimension; ``sign`` is -1 where the coordinate falls as it runs, else 1.
    ``accesses`` are the accesses of buffers with the dimension, each with its coordinate. ``coordinate`` is
    None for a statement that has nothing to do with the dimension.
    """

    leaf: Leaf
    loop: str | None
    sign: int
    coordinate: str | None
    accesses: tuple[tuple[Access, str], ...]
    writes_along: bool
    """Whether the buffer that is written has the dimension."""

    @property
    def target(self) -> str:
        """The buffer or scalar that is written."""
        return self.leaf.node.buffer if isinstance(self.leaf.node, Store) else self.leaf.node.name

    @property
    def line(self) -> int:
        """The line of the author's text."""
        return self.leaf.line


def find_sites(model: Model, dimension: Dimension) -> list[Site]:
    """Return every statement's site; raises :class:`NotSliced` where it has no single coordinate."""
    directions = _directions(model, dimension)
    coordinates = {loop: _along_loop(dimension, loop, sign) for loop, sign in directions.items()}
    return [_site(model, dimension, leaf, directions, coordinates) for leaf in model.leaves]


def _directions(model: Model, dimension: Dimension) -> dict[str, int]:
    """Return 1 for each loop along the dimension, or -1 where its indices fall as it runs.

    Raises :class:`NotSliced` for a loop with both: in a slice the two would meet at another place.
    """
    directions: dict[str, int] = {}
    for leaf in model.leaves:
        for access in leaf.accesses:
            axis = dimension.axis_of(access.target)
            if axis is None or not isinstance(access.node, (Load, Store)):
                continue
            form = affine.linear(access.node.index[axis]) or {}
            for loop in dimension.loops & form.keys():
                sign = -1 if form[loop] < 0 else 1
                if directions.setdefault(loop, sign) != sign:
                    raise NotSliced(leaf.line, f"the loop {loop} runs along it in both directions")
    return {loop: directions.get(loop, 1) for loop in dimension.loops}


def _along_loop(dimension: Dimension, loop: str, sign: int) -> str:
    """Return the coordinate of an iteration, as isl's text."""
    if sign > 0 or dimension.size is None:
        return affine.word(loop)
    return f"({affine.word(affine.name_of(dimension.size))} - 1 - {affine.word(loop)})"


def _site(
    model: Model, dimension: Dimension, leaf: Leaf, directions: dict[str, int], coordinates: dict[str, str]
) -> Site:
    loops = [v for v in leaf.vars if v in dimension.loops]
    if len(loops) > 1:
        raise NotSliced(leaf.line, f"the loops {' and '.join(loops)} around it both run along it")
    loop = loops[0] if loops else None
    accesses = tuple(_accesses(model, dimension, leaf, coordinates))
    written = next((text for access, text in accesses if access.write), None)
    if written is None and loop is None and accesses:
        raise NotSliced(leaf.line, f"every slice would need {shown(accesses[0][0])}")
    coordinate = written if written is not None else None if loop is None else coordinates[loop]
    control = next((access for access, _ in accesses if access.around is not None), None)
    if loop is None and control is not None:
        raise NotSliced(leaf.line, f"every slice would need {shown(control)} for a condition")
    return Site(
        leaf, loop, 1 if loop is None else directions[loop], coordinate, accesses, written is not None
    )


def _accesses(
    model: Model, dimension: Dimension, leaf: Leaf, coordinates: dict[str, str]
) -> Iterator[tuple[Access, str]]:
    """Yield the accesses of buffers that have the dimension, or that a loop along it owns."""
    for access in leaf.accesses:
        axis = dimension.axis_of(access.target)
        if axis is not None and access.target in model.kernel.buffers:
            text = access.index[axis]
            if text is None:
                raise NotSliced(
                    leaf.line, f"the index of {shown(access)} depends on data, or may be negative"
                )
            yield access, text
            continue
        owner = next((v for v in model.owners.get(access.target, ()) if v in dimension.loops), None)
        if owner is not None:
            yield access, coordinates[owner]


def shown(access: Access) -> str:
    """Return the access as the author wrote it."""
    node = access.node
    if isinstance(node, (Load, Store)):
        return f"{node.buffer}[{', '.join(map(expression, node.index))}]"
    return access.target
