"""Where a kernel looks whether it is to end: see ``polyop/loops/stop.h``.

A loop around loops looks at each iteration. An innermost loop is divided into long stretches, so that its
iterations cost what they did. A vector loop within others is only counted where memory bounds its length.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from .. import affine
from ..ir import Const, For, Op, Size, Store, children, statements, walk
from .ctypes import identifier
from .rows import always
from .writer import Writer

SHORT = 1024
"""Iterations of a loop, with those of the loops inside it, that are never looked at."""
FUEL = "int64_t polyop_fuel = polyop_fuel_of(&k->failure.place);"


def check(iterations: str = "1") -> str:
    """Return the line, in C, that ends a loop where the kernel is to end."""
    return f"if (polyop_stops(k, {iterations})) break;"


def is_short(node: For) -> bool:
    """Whether a loop has few iterations, whatever the sizes are."""
    return _trips(node) <= SHORT


def _trips(node: For) -> float:
    if not (isinstance(node.lo, Const) and isinstance(node.hi, Const)):
        return float("inf")
    inner = sum(_trips(s) for s in statements(node.body) if isinstance(s, For))
    return max(0, node.hi.value - node.lo.value) * max(1, inner)


def is_innermost(node: For) -> bool:
    """Whether there are no loops inside a loop, short ones left out."""
    return all(is_short(s) for s in statements(node.body) if isinstance(s, For))


def is_bounded(node: For) -> bool:
    """Whether tensors in memory bound the iterations: by their sizes, or as each has its own element."""
    parts = [e for bound in (node.lo, node.hi) for e in walk(bound)]
    if all(isinstance(e, (Const, Size, Op)) for e in parts):
        return True
    direct = [s for s in node.body if not isinstance(s, For)]
    loads = [load.index for s in direct for load in always(children(s))]
    stores = [s.index for s in direct if isinstance(s, Store)]
    return any((affine.linear(i) or {}).get(node.var) for index in (*loads, *stores) for i in index)


@contextlib.contextmanager
def loop(out: Writer, node: For, start: str, end: str) -> Iterator[None]:
    """Write a loop around what is written meanwhile; ``start`` declares its variable, or is empty."""
    var = identifier(node.var)
    if is_short(node) or not is_innermost(node):
        with out.block(f"for ({start}; {var} < {end}; ++{var})"):
            if not is_short(node):
                out.line(check())
            yield
        return
    with out.block(f"for ({start}; {var} < {end};)"), stretch(out, var, end):
        with out.block(f"for (; {var} < {var}_check; ++{var})"):
            yield


@contextlib.contextmanager
def stretch(out: Writer, var: str, end: str) -> Iterator[None]:
    """Write, within a loop, up to where what is written meanwhile may go on."""
    out.line(f"const int64_t {var}_check = polyop_next_check({var}, {end});")
    out.line(check(f"{var}_check - {var}"))
    yield
