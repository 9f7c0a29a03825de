"""Recover an exponential that a division overwrote: multiply the quotient by the divisor.

    y[i] = exp(x[i])
    y[i] = y[i] / t        in the gradient:  exp(x[i]) is y[i] * t

The divisor must be available. If the quotient is zero, so is the recovered value, although the exponential is
not: the divisor was infinite, or the quotient too small. That is correct as long as the exponential's adjoint
comes from the division and from what computes the divisor: it is then as small, and the derivative of an
exponential is a product with it. So no other statement may read the exponential. Other functions are not
recovered: of ``1 - e * e``, the derivative of tanh, the rounding of the quotient may leave no correct digit.
"""

from __future__ import annotations

import numpy as np

from ..analysis.polyhedra import Leaf
from ..analysis.tree import StatementNode
from ..ir.grammar import Const, Expr, Load, Op, Store, Type
from ..ir.operate import operate
from ..ir.uses import loads_of, tensors_of, variables_of
from .order import Order
from .recorded_values import Read, RecordedValues

GREATEST = {name: float(np.finfo(name).max) for name in ("float32", "float64")}
"""The greatest finite number, by each dtype of which exponentials are recovered."""


def recovering_division(values: RecordedValues, place: StatementNode) -> tuple[str, Expr] | None:
    """Return the leaf that divides the exponential that a statement stores, and the divisor; or None.

    The statement stores in an output. Each element that it writes is divided exactly once, and nothing else
    writes it later. The divisor is made of inputs, and of outputs that still have its values when the kernel
    ends.
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
    divides = order.statements[leaf.id].node
    if not isinstance(divides, Store) or divides.op or not values.result_stays(leaf.id):
        return None
    value, own = divides.value, Load(node.buffer, divides.index, Type(node.value.type.dtype))
    if not isinstance(value, Op) or value.name != "/" or not _same(value.args[0], own):
        return None
    divisor = value.args[1]
    is_given = all(values.is_given(Read(leaf.id, load)) for load in loads_of(divisor))
    if (
        not is_given
        or not variables_of(divisor) <= {*values.scope(node.buffer)}
        or not order.always_overwritten(writer, leaf)
        or _is_read(order, node.buffer, writer, leaf, tensors_of(divisor))
    ):
        return None
    return leaf.id, divisor


def _is_read(order: Order, buffer: str, writer: Leaf, divides: Leaf, makers: set[str]) -> bool:
    """Whether another statement than the division, and the stores to ``makers``, reads what a leaf stored."""
    for reader in order.statements.values():
        node = reader.node
        assert isinstance(node, Store)
        if reader.leaf is divides or node.buffer in makers:
            continue
        own_loads = {load for load in loads_of(node.value) if load.buffer == buffer}
        if any(writer in order.sources(reader.leaf, load) for load in own_loads):
            return True
    return False


def dividend(result: Load, divisor: Expr) -> Expr:
    """Return the dividend of a division, ``result * divisor``; zero times infinity is zero here."""
    greatest = Const(GREATEST[result.type.dtype], result.type)
    finite = operate("max", operate("min", divisor, greatest), -greatest)
    return result * finite


def _same(a: Expr, b: Load) -> bool:
    return isinstance(a, Load) and (a.buffer, a.index) == (b.buffer, b.index)
