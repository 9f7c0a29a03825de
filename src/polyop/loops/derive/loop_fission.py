"""Loop fission: a nest that adds to several targets becomes one nest for each target.

    for i in range(n):                         for i in range(n):
        d_a[i + 1] += g[i]                         d_a[i + 1] += g[i]
        d_b[i - 1] += g[i]              ->     for i in range(n):
                                                   d_b[i - 1] += g[i]

Later passes can then choose the order of loops for each target. passes/loop_distribution.py splits loops too:
it puts the contractions of an author's loop apart. Both change the tree through ``Rearrangement``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ..analysis.cost import CONTRACTION_LOOPS
from ..analysis.polyhedra import Model
from ..analysis.session import IslSession
from ..analysis.shifted_stores import are_shifted
from ..analysis.tree import (
    Branch,
    Loop,
    Node,
    Rearrangement,
    StatementNode,
    in_loops,
    statement_nodes,
    statements_of,
    with_distinct_loops,
)
from ..ir.grammar import Kernel, Stmt, Store
from ..ir.uses import variables_of
from .derivation import Derivation
from .names import Names


def loop_fission(derivation: Derivation) -> Derivation:
    """Return the derivation with nests that add to several adjoints in parts, where the order allows it."""
    adjoints = frozenset(derivation.adjoints_left())
    return derivation.with_(kernel=split_nests(derivation.kernel, derivation.session, adjoints))


def split_nests(kernel: Kernel, session: IslSession, sums: frozenset[str]) -> Kernel:
    """Return the kernel with nests that add to several targets in parts, where the order allows it."""
    loops = Rearrangement(Model(kernel, session))
    for nest in list(_nests(loops.tree)):
        groups = _groups(nest, sums)
        if len(groups) > 1:
            parts = (in_loops([loop.node for loop in chain], tuple(group)) for chain, group in groups)
            loops.replace(nest, tuple(parts))
    return replace(kernel, body=with_distinct_loops(statements_of(loops.tree), Names(kernel).new))


def _nests(tree: Sequence[Node]) -> Iterator[Loop]:
    """Yield loops that hold stores alone, under loops and conditions of one; the outer ones first."""
    for node in tree:
        match node:
            case Loop():
                if _paths(node) is not None:
                    yield node
                yield from _nests(node.body)
            case Branch():
                yield from _nests((*node.body, *node.orelse))


Chain = tuple[Loop, ...]
"""The loops around a store, outermost first."""


def _paths(node: Node) -> list[tuple[Chain, Node]] | None:
    """Return each store of a nest with the loops around it, under conditions of its own if it has some."""
    if isinstance(node, StatementNode):
        return [((), node)] if isinstance(node.node, Store) else None
    if isinstance(node, Branch):
        inside = [_paths(inner) for inner in node.body]
        if node.orelse or any(one is None or one[0][0] for one in inside):
            return None
        return [((), replace(node, body=(leaf,))) for one in inside for _, leaf in one or ()]
    found: list[tuple[Chain, Node]] = []
    for inner in node.body:
        below = _paths(inner)
        if below is None:
            return None
        found += [((node, *chain), leaf) for chain, leaf in below]
    return found


def _store(node: Node) -> Stmt:
    """Return the only statement of a node."""
    (place,) = statement_nodes((node,))
    return place.node


def _groups(nest: Loop, sums: frozenset[str]) -> list[tuple[Chain, list[Node]]]:
    """Return the stores of a nest by target and loops, in order; none where they may stay together."""
    found: dict[tuple[str, Chain], list[Node]] = {}
    for chain, leaf in _paths(nest) or ():
        store = _store(leaf)
        assert isinstance(store, Store)
        found.setdefault((store.buffer, chain), []).append(leaf)
    return [(chain, group) for (_, chain), group in found.items()] if _is_worth_splitting(found, sums) else []


def _is_worth_splitting(groups: Mapping[tuple[str, Chain], Sequence[Node]], sums: frozenset[str]) -> bool:
    """Whether a group is a contraction, or adds to shifted elements."""
    for (buffer, chain), group in groups.items():
        loops = [loop.var for loop in chain]
        stores = [s for s in map(_store, group) if isinstance(s, Store)]
        if buffer not in sums or any(s.op != "+" for s in stores):
            continue
        sums_up = any({*loops} - variables_of(*s.index) for s in stores)
        if are_shifted(stores, loops) or (len(loops) >= CONTRACTION_LOOPS and sums_up):
            return True
    return False
