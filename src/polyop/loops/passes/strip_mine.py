"""Divide the iterations of a loop into blocks, in the same order: tiles, and iterations that are written out.

for i in range(n):                     for i_main in range(n // 2):
    y[i] = x[i]                   ->       y[2 * i_main] = x[2 * i_main]
                                           y[2 * i_main + 1] = x[2 * i_main + 1]
                                       for i in range(n // 2 * 2, n):
                                           y[i] = x[i]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..analysis import affine
from ..analysis.polyhedra import scalar_owners
from ..ir.grammar import (
    INT,
    Const,
    Expr,
    For,
    Kernel,
    Stmt,
    Var,
    names_of,
    statements,
    unused,
)
from ..ir.operate import operate
from ..ir.rewriter import substitute, with_buffers, with_statements
from ..program import AnyProgram, Program
from .index_set_splitting import renamed_copy


def trips(loop: For) -> int | None:
    """Return the number of iterations, if it is a constant."""
    match loop.lo, loop.hi:
        case Const(value=int(lo)), Const(value=int(hi)):
            return max(0, hi - lo)
    return None


def tiled(program: AnyProgram, loop: For, size: int) -> tuple[AnyProgram, str]:
    """Return the program with a loop in blocks of ``size`` iterations, and the variable of the outer loop.

    The loop itself becomes the inner one.
    """
    around, inner = in_blocks(loop, size, names_of(program.kernel))
    kernel = with_loop_replaced(program.kernel, loop.var, (replace(around, body=(inner,)),))
    return program.with_(kernel=kernel), around.var


def in_blocks(loop: For, size: int, used_names: set[str]) -> tuple[For, For]:
    """Return a loop over blocks of ``size`` iterations of a loop, and the loop over those of a block.

    Both have the body of the loop. The variable of the first is not in ``used_names``.
    """
    outer = unused(f"{loop.var}_outer", used_names)
    start = _iteration(loop, size, outer, 0)
    end = start + Const(size, INT)
    count = trips(loop)
    if count is None or count % size:
        end = affine.extreme("min", (end, loop.hi))
    around = replace(loop, var=outer, lo=Const(0, INT), hi=_blocks("ceil_div", loop, size))
    return around, replace(loop, lo=start, hi=end)


def unrolled(program: AnyProgram, loop: For, factor: int) -> tuple[AnyProgram, str, str]:
    """Return the program with ``factor`` iterations of a loop written out, and its two new loops.

    The first runs over blocks of iterations, the second over the rest; each is "" if there is no such loop.
    """
    kernel, used_names = program.kernel, names_of(program.kernel)
    count = trips(loop)
    main = "" if count == factor else unused(f"{loop.var}_main", used_names)
    copies = Copies(program, loop, used_names)
    body: list[Stmt] = []
    for number in range(factor):
        place = _iteration(loop, factor, main, number) if main else loop.lo + Const(number, INT)
        copy = copies.new(f"_{number}", main) if number else loop
        body += (substitute(s, {copy.var: place}) for s in copy.body)
    parts: list[Stmt] = list(body)
    rest = ""
    if main:
        parts = [replace(loop, var=main, lo=Const(0, INT), hi=_blocks("//", loop, factor), body=tuple(body))]
    if main and (count is None or count % factor):
        start = loop.lo + Const(factor, INT) * _blocks("//", loop, factor)
        last = copies.new("_rest", None)
        parts.append(replace(last, lo=affine.extreme("max", (loop.lo, start))))
        rest = last.var
    copies.keep_first(main)
    kernel = replace(with_loop_replaced(kernel, loop.var, parts), buffers=copies.buffers)
    return program.with_(kernel=kernel, owners=copies.owners), main, rest


class Copies:
    """Copies of a loop, with variables, scalars and private buffers of their own."""

    def __init__(self, program: Program, loop: For, used_names: set[str]) -> None:
        self.loop, self.used_names = loop, used_names
        self.buffers, self.owners = dict(program.kernel.buffers), dict(program.owners)
        self.outer = {n for n, loops in scalar_owners(program.kernel).items() if loop.var not in loops}
        inside = set(_variables(loop))
        self.private = [n for n, loops in self.owners.items() if inside & {*loops} and n in self.buffers]

    def new(self, suffix: str, main: str | None) -> For:
        """Return another copy, whose body comes into the loop ``main``; None: it stays a loop."""
        copy = renamed_copy(self.loop, suffix, self.used_names, self.outer)
        names = dict(zip(_variables(self.loop), _variables(copy), strict=True))
        if main is not None:
            names[self.loop.var] = main
        new = {name: unused(name + suffix, self.used_names) for name in self.private}
        for name, other in new.items():
            self.buffers[other] = replace(self.buffers[name], name=other)
            self.owners[other] = _renamed(self.owners[name], names)
        return replace(copy, body=tuple(with_buffers(s, new) for s in copy.body))

    def keep_first(self, main: str) -> None:
        """Leave the private buffers to the copy that keeps its names, which is in the loop ``main``."""
        for name in self.private:
            self.owners[name] = _renamed(self.owners[name], {self.loop.var: main})


def _renamed(owners: tuple[str, ...], names: Mapping[str, str]) -> tuple[str, ...]:
    """Return loops with new names; one that has the name "" is gone."""
    return tuple(name for name in (names.get(one, one) for one in owners) if name)


def _variables(loop: For) -> list[str]:
    """Return the variables of a loop and of those in it, in order."""
    return [s.var for s in statements((loop,)) if isinstance(s, For)]


def _iteration(loop: For, size: int, outer: str, number: int) -> Expr:
    """Return the iteration ``number`` of the block ``outer``."""
    step = Const(size, INT) * Var(outer, INT)
    return affine.simplified(loop.lo + step + Const(number, INT))


def _blocks(name: str, loop: For, size: int) -> Expr:
    """Return how many blocks a loop has: ``ceil_div`` counts the last one too if it is not full."""
    count = affine.simplified(loop.hi - loop.lo)
    known = trips(loop)
    if known is not None:
        return Const(-(-known // size) if name == "ceil_div" else known // size, INT)
    return operate(name, count, Const(size, INT))


def loop_of(kernel: Kernel, var: str) -> For:
    """Return the loop of a kernel that has this variable."""
    return next(s for s in statements(kernel.body) if isinstance(s, For) and s.var == var)


def with_loop_replaced(kernel: Kernel, var: str, parts: Sequence[Stmt]) -> Kernel:
    """Return the kernel with statements in place of a loop."""
    body = with_statements(
        kernel.body, lambda node, _: parts if isinstance(node, For) and node.var == var else None
    )
    return replace(kernel, body=body)
