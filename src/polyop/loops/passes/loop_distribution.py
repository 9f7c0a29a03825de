"""Loop distribution: move a contraction that shares its loop with other work into a separate loop.

    for i in range(m):                     for i in range(m):
        ...compute p[i, :]                     ...compute p[i, :]
        for j in range(n):            ->   for i in range(m):
            for d in range(k):                 for j in range(n):
                q[i, d] += p[i, j] * v[j, d]       for d in range(k):
                                                       q[i, d] += p[i, j] * v[j, d]

The second nest is a matrix product and can be tiled in registers. Before, it read all of v for each i.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

from ..analysis.cost import CONTRACTION_LOOPS
from ..analysis.strides import depends
from ..analysis.tree import (
    Branch,
    Loop,
    Node,
    Rearrangement,
    StatementNode,
    statement_nodes,
    statements_of,
    with_distinct_loops,
)
from ..ir.grammar import (
    Assign,
    Kernel,
    Stmt,
    Store,
    names_of,
    statements,
    unused,
)
from ..ir.note import Note
from ..ir.uses import loads_of, variables_of
from ..program import Program


def loop_distribution(program: Program) -> Program:
    """Return the program with contractions in separate loops, where that is legal."""
    kernel = program.kernel
    if not has_products(kernel):
        return program
    loops, notes = Rearrangement(program.model), list[Note]()
    for node in loops.tree:
        if not isinstance(node, Loop) or len(parts := parts_of(node, ())) == 1:
            continue
        if loops.replace(node, tuple(parts)):
            text = f"loop {node.var}: contractions have loops of their own"
            notes.append(Note(node.node.line, text, "loop_distribution"))
    used_names = names_of(kernel)
    body = with_distinct_loops(statements_of(loops.tree), lambda name: unused(name, used_names))
    return program.with_(*notes, kernel=replace(kernel, body=body))


def has_products(kernel: Kernel) -> bool:
    """Whether a kernel adds up products."""
    return any(isinstance(s, (Store, Assign)) and _is_product(s) for s in statements(kernel.body))


def parts_of(loop: Loop, around: tuple[Loop, ...], *, expanded: bool = False) -> list[Loop]:
    """Return the loops into which a loop is split; ``expanded``: iterations share no scalar."""
    within = (*around, loop)
    inner: list[Node] = []
    for node in loop.body:
        inner += parts_of(node, within) if isinstance(node, Loop) else [node]
    groups = [list(g) for g in _separate_sums(inner)] or _groups(inner, within)
    if len(groups) < 2 or loop.node.hint or (not expanded and _share_scalars(groups)):
        return [Loop(loop.node, tuple(inner))]
    return [Loop(loop.node, tuple(group)) for group in groups]


def _groups(body: Sequence[Node], around: tuple[Loop, ...]) -> list[list[Node]]:
    """Return a body in groups; a contraction whose operand the loop around it reuses is alone in one."""
    var, groups, after_alone = around[-1].var, list[list[Node]](), False
    contractions = [isinstance(n, Loop) and _is_contraction(n, around) for n in body]
    only_places = all(c or isinstance(n, StatementNode) for n, c in zip(body, contractions, strict=True))
    if only_places and sum(contractions) == 1 and _is_free(body, contractions.index(True), var):
        return [list(body)]  # the start and the end of a sum stay with it
    for node, contraction in zip(body, contractions, strict=True):
        alone = contraction and _reuses(node, var)
        if alone or after_alone or not groups:
            groups.append([])
        groups[-1].append(node)
        after_alone = alone
    return groups


def _separate_sums(body: Sequence[Node]) -> list[list[Node]]:
    """Return each statement of a body as a group, if all are sums and no two have the same loop variables."""
    stores = [n.node for n in body if isinstance(n, StatementNode)]
    products = [s for s in stores if isinstance(s, Store) and _is_product(s)]
    chosen = {frozenset(variables_of(*s.index)) for s in products}
    return [[n] for n in body] if len(products) == len(body) and len(chosen) == len(body) > 1 else []


def _is_contraction(node: Loop, around: tuple[Loop, ...]) -> bool:
    """Whether a loop is a contraction of enough loops; the start and the end of its sums may be in it."""
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
    if len(loops) < CONTRACTION_LOOPS or len(body) != 1 or not isinstance(body[0], StatementNode):
        return False
    names, node_ = {loop.var for loop in loops}, body[0].node
    return _is_product(node_) and all(names - variables_of(*load.index) for load in loads_of(node_))


def _is_free(body: Sequence[Node], at: int, var: str) -> bool:
    """Whether the loop of ``var`` indexes the element that a sum adds to, or where its scalar is stored."""
    (first, *_) = statement_nodes((body[at],))
    target = first.node
    if isinstance(target, Store):
        return var in variables_of(*target.index)
    names = {target.name}
    for node in (n.node for n in body[at + 1 :] if isinstance(n, StatementNode)):
        if depends(node.value, frozenset(names)):
            if isinstance(node, Store) and var in variables_of(*node.index):
                return True
            names |= {node.name} if isinstance(node, Assign) else set()
    return False


def _reuses(node: Node, var: str) -> bool:
    """Whether ``var`` does not index an operand or the target of a contraction: its loop reuses that."""
    products = [p.node for p in statement_nodes((node,)) if _is_product(p.node)]
    indices = [load.index for product in products for load in loads_of(product)]
    indices += [product.index for product in products if isinstance(product, Store)]
    return any(var not in variables_of(*index) for index in indices)


def _is_product(node: Stmt) -> bool:
    """Whether a statement adds to a sum what it computes from several elements."""
    return isinstance(node, (Store, Assign)) and node.op == "+" and len(loads_of(node)) > 1


def _share_scalars(groups: Sequence[Sequence[Node]]) -> bool:
    """Whether a scalar that one group assigns is used in another."""
    by_group = [list(statements(statements_of(group))) for group in groups]
    assigned = [{s.name for s in nodes if isinstance(s, Assign)} for nodes in by_group]
    read = [variables_of(*nodes) for nodes in by_group]
    pairs = itertools.permutations(range(len(groups)), 2)
    return any(assigned[one] & (read[other] | assigned[other]) for one, other in pairs)
