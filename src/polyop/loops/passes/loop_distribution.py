"""Loop distribution: a contraction that shares its loop with other work gets loops of its own.

    for i in range(m):                     for i in range(m):
        ...row i of p                          ...row i of p
        for j in range(n):            ->   for i in range(m):
            for d in range(k):                 for j in range(n):
                q[i, d] += p[i, j] * v[j, d]       for d in range(k):
                                                       q[i, d] += p[i, j] * v[j, d]

The second nest is a product of matrices and can be tiled in registers. Before, it read all of v for each i.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..analysis.strides import depends
from ..analysis.tree import (
    Branch,
    Loop,
    Node,
    Place,
    Rearrangement,
    places,
    statements_of,
    with_distinct_loops,
)
from ..ir.grammar import (
    Assign,
    Expr,
    Load,
    Stmt,
    Store,
    Var,
    children,
    names_of,
    statements,
    unused,
    walk,
)
from ..program import Note, Program

LOOPS = 3
"""Loops of a contraction: of fewer nothing is used again."""


def loop_distribution(program: Program) -> Program:
    """Return the program with contractions apart from what else their loops hold, where that is legal."""
    kernel = program.kernel
    if not any(isinstance(s, (Store, Assign)) and _is_product(s) for s in statements(kernel.body)):
        return program
    loops, notes = Rearrangement(program.model), list[Note]()
    for node in loops.tree:
        if not isinstance(node, Loop) or len(parts := _parts(node, ())) == 1:
            continue
        if loops.replace(node, tuple(parts)):
            text = f"loop {node.var}: contractions have loops of their own"
            notes.append(Note(node.node.line, text, "loop_distribution"))
    used_names = names_of(kernel)
    body = with_distinct_loops(statements_of(loops.tree), lambda name: unused(name, used_names))
    return program.with_(*notes, kernel=replace(kernel, body=body))


def _parts(loop: Loop, around: tuple[Loop, ...]) -> list[Loop]:
    """Return the loops that a loop is split into."""
    within = (*around, loop)
    inner: list[Node] = []
    for node in loop.body:
        inner += _parts(node, within) if isinstance(node, Loop) else [node]
    groups = [list(g) for g in _sums(inner)] or _groups(inner, within)
    if len(groups) < 2 or loop.node.hint or _share_scalars(groups):
        return [Loop(loop.node, tuple(inner))]
    return [Loop(loop.node, tuple(group)) for group in groups]


def _groups(body: Sequence[Node], around: tuple[Loop, ...]) -> list[list[Node]]:
    """Return a body with each contraction that uses again what the loop around it leaves alone by itself."""
    var, groups, last = around[-1].var, list[list[Node]](), False
    units = [isinstance(n, Loop) and _is_contraction(n, around) for n in body]
    plain = all(u or isinstance(n, Place) for n, u in zip(body, units, strict=True))
    if plain and sum(units) == 1 and _is_free(body, units.index(True), var):
        return [list(body)]  # what starts and ends a sum stays with it
    for node, unit in zip(body, units, strict=True):
        alone = unit and _leaves(node, var)
        if alone or last or not groups:
            groups.append([])
        groups[-1].append(node)
        last = alone
    return groups


def _sums(body: Sequence[Node]) -> list[list[Node]]:
    """Return additions to elements that different loops choose, each by itself."""
    stores = [n.node for n in body if isinstance(n, Place)]
    products = [s for s in stores if isinstance(s, Store) and _is_product(s)]
    chosen = {frozenset(_variables(s.index)) for s in products}
    return [[n] for n in body] if len(products) == len(body) and len(chosen) == len(body) > 1 else []


def _is_contraction(node: Loop, around: tuple[Loop, ...]) -> bool:
    """Whether a loop, alone or with what starts and ends its sums, is a contraction of enough loops."""
    loops = [*around, node]
    while any(isinstance(n, Loop) for n in loops[-1].body):
        inner = [n for n in loops[-1].body if isinstance(n, Loop)]
        if len(inner) > 1 or any(isinstance(n, Branch) for n in loops[-1].body):
            return False
        last = loops[-1]
        if len(last.body) > 1 and not _is_free(last.body, last.body.index(inner[0]), last.var):
            return False
        loops.append(inner[0])
    body = loops[-1].body
    if len(loops) < LOOPS or len(body) != 1 or not isinstance(body[0], Place):
        return False
    names, node_ = {loop.var for loop in loops}, body[0].node
    return _is_product(node_) and all(names - _variables(load.index) for load in _loads(node_))


def _is_free(body: Sequence[Node], at: int, var: str) -> bool:
    """Whether a loop chooses what a sum adds to: its element, or the scalar that is stored at its end."""
    (first, *_) = places((body[at],))
    target = first.node
    if isinstance(target, Store):
        return var in _variables(target.index)
    ends = [n.node for n in body[at + 1 :] if isinstance(n, Place) and isinstance(n.node, Store)]
    return any(var in _variables(s.index) and depends(s.value, frozenset({target.name})) for s in ends)


def _leaves(node: Node, var: str) -> bool:
    """Whether a contraction reads or adds to something that the loop does not choose: it is used again."""
    products = [p.node for p in places((node,)) if _is_product(p.node)]
    indices = [load.index for product in products for load in _loads(product)]
    indices += [product.index for product in products if isinstance(product, Store)]
    return any(var not in _variables(index) for index in indices)


def _is_product(node: Stmt) -> bool:
    return isinstance(node, (Store, Assign)) and node.op == "+" and len(_loads(node)) > 1


def _loads(node: Stmt) -> list[Load]:
    return [e for c in children(node) for e in walk(c) if isinstance(e, Load)]


def _variables(index: Sequence[Expr]) -> set[str]:
    return {e.name for i in index for e in walk(i) if isinstance(e, Var)}


def _share_scalars(groups: Sequence[Sequence[Node]]) -> bool:
    """Whether a scalar that one group assigns is used in another."""
    found = [list(statements(statements_of(group))) for group in groups]
    assigned = [{s.name for s in nodes if isinstance(s, Assign)} for nodes in found]
    used = [{e.name for s in nodes for e in walk(s) if isinstance(e, Var)} for nodes in found]
    return any(
        one & (used[other] | assigned[other])
        for mine, one in enumerate(assigned)
        for other in range(len(groups))
        if other != mine
    )
