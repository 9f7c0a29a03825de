"""Compute an exponential that a division overwrote from its quotient: ``e`` of ``y = e; y = y / t``.

Only where the divisor is at hand. Where the quotient is zero, so is the recovered value: the divisor may
be infinite, or the result too small. What e is handed through the division is as small then, and the
derivative of an exponential is a product with it; so nobody else may hand it anything, but what makes the
divisor. Of other functions, as ``1 - e * e`` of tanh, the rounding of the quotient may leave nothing.
"""

from __future__ import annotations

import numpy as np

from ..analysis.polyhedra import Leaf
from ..analysis.tree import Place
from ..ir.grammar import Const, Expr, Load, Op, Store, Type, Var, walk
from ..ir.operate import operate
from .order import Order
from .recorded_values import Read, RecordedValues, loads

GREATEST = {name: float(np.finfo(name).max) for name in ("float32", "float64")}


def divided(values: RecordedValues, place: Place) -> tuple[str, Expr] | None:
    """Return the leaf that divides what a statement stored in an output, and by what; or None.

    Guaranteed is that each element which the statement writes is divided once, that nothing else writes it
    later, and that the divisor is given: by an input, or by an output that has it in the end.
    """
    order, node = values.again, place.node
    assert isinstance(node, Store)
    buffer = order.kernel.buffers[node.buffer]
    plain = isinstance(node.value, Op) and node.value.name == "exp" and not node.op
    if not plain or buffer.role != "output" or buffer.dtype not in GREATEST:
        return None
    writer = values.leaf(place.leaf.id)
    later = order.overwriters(writer)
    if len(later) != 1:
        return None
    (leaf,) = later
    divides = order.places[leaf.id].node
    if not isinstance(divides, Store) or divides.op or not values.result_stays(leaf.id):
        return None
    value, own = divides.value, Load(node.buffer, divides.index, Type(node.value.type.dtype))
    if not isinstance(value, Op) or value.name != "/" or not _same(value.args[0], own):
        return None
    divisor = value.args[1]
    names = {e.name for e in walk(divisor) if isinstance(e, Var)}
    makers = {load.buffer for load in loads((divisor,))}
    given = all(values.is_given(Read(leaf.id, load)) for load in loads((divisor,)))
    if (
        not given
        or not names <= {*values.scope(node.buffer)}
        or not order.always_overwritten(writer, leaf)
        or _is_read(order, node.buffer, writer, leaf, makers)
    ):
        return None
    return leaf.id, divisor


def _is_read(order: Order, buffer: str, writer: Leaf, divides: Leaf, makers: set[str]) -> bool:
    """Whether what a leaf stored is read by others than its division and what stores in ``makers``."""
    for reader in order.places.values():
        node = reader.node
        assert isinstance(node, Store)
        if reader.leaf is divides or node.buffer in makers:
            continue
        found = {load for load in loads((node.value,)) if load.buffer == buffer}
        if any(writer in order.sources(reader.leaf, load) for load in found):
            return True
    return False


def undone(result: Load, divisor: Expr) -> Expr:
    """Return what was divided, of the result of the division: zero times infinity is zero here."""
    most = Const(GREATEST[result.type.dtype], result.type)
    finite = operate("max", operate("min", divisor, most), operate("neg", most))
    return operate("*", result, finite)


def _same(a: Expr, b: Load) -> bool:
    return isinstance(a, Load) and (a.buffer, a.index) == (b.buffer, b.index)
