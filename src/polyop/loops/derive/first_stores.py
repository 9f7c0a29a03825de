"""Turn the first addition to an element into a store, and remove the zero before it.

    d_x[i] = 0.0                      (gone)
    d_x[i] += d_y[i] * w[i]     ->    d_x[i] = d_y[i] * w[i]
    d_x[i] += d_z[i]                  d_x[i] += d_z[i]

Scalars come first, so that forward substitution finds one store of each. All other adjoints come after
``scatter_to_gather``, which looks for additions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..analysis.polyhedra import Leaf
from ..analysis.session import IslSession
from ..ir.grammar import Kernel, Store
from .dead_zeros import is_zero, order_of, with_stores, without_dead_zeros
from .derivation import Derivation
from .order import Order


def first_stores_of_scalars(derivation: Derivation) -> Derivation:
    """Return the derivation with first additions to adjoints of one element as stores."""
    adjoints = derivation.adjoints_left(scalars=True)
    return derivation.with_(kernel=_stored_first(derivation.kernel, derivation.session, adjoints))


def first_stores(derivation: Derivation) -> Derivation:
    """Return the derivation with first additions to adjoints as stores."""
    return derivation.with_(
        kernel=_stored_first(derivation.kernel, derivation.session, derivation.adjoints_left())
    )


def _stored_first(kernel: Kernel, session: IslSession, adjoints: Sequence[str]) -> Kernel:
    """Return the kernel with first additions to ``adjoints`` as stores."""
    order = order_of(kernel, session, adjoints)
    first = {k for k, leaf in enumerate(order.model.leaves) if _is_first(order, leaf, adjoints)}
    if not first:
        return kernel
    kernel = with_stores(kernel, lambda number, s: replace(s, op="") if number in first else s)
    return without_dead_zeros(kernel, session, adjoints)


def _is_first(order: Order, leaf: Leaf, adjoints: Sequence[str]) -> bool:
    """Whether a statement adds to each of its elements once, and only zeros were stored there before."""
    node = leaf.node
    if not isinstance(node, Store) or node.op != "+" or node.buffer not in adjoints:
        return False
    return order.touches_once(leaf) and not order.touched_before(leaf, lambda other: is_zero(other.node))
