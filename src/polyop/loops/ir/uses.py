"""What statements and expressions read and write. The own expressions of a loop are its bounds, not its body.

>>> from polyop.loops.ir.grammar import INT, Const, Load, Type, Var
>>> element = Load("x", (Var("i", INT) + 1,), Type("float32"))
>>> variables_of(element), tensors_of(element), stored_by((Store("y", (), element),))
({'i'}, {'x'}, {'y'})
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .grammar import Assign, Expr, If, Load, Stmt, Store, Var, statements, unconditional, walk

Node = Expr | Stmt


def loads_of(*nodes: Node) -> list[Load]:
    """Return the reads of tensors in the own expressions of some nodes, outermost first."""
    return [e for node in nodes for e in walk(node) if isinstance(e, Load)]


def unconditional_loads(exprs: Sequence[Expr]) -> Iterator[Load]:
    """Yield the unconditional loads of expressions, without those in indices."""
    for expr in exprs:
        yield from (e for e in unconditional(expr) if isinstance(e, Load))


def tensors_of(*nodes: Node) -> set[str]:
    """Return the tensors that the own expressions of some nodes read."""
    return {e.buffer for node in nodes for e in walk(node) if isinstance(e, Load)}


def variables_of(*nodes: Node) -> set[str]:
    """Return the scalars, loop variables and attributes that the own expressions of some nodes read."""
    return {e.name for node in nodes for e in walk(node) if isinstance(e, Var)}


def scalars_beside(node: Stmt, body: Sequence[Stmt]) -> set[str]:
    """Return the scalars and variables that a body reads or assigns outside one of its statements."""
    inside = {id(s) for s in statements((node,))}
    others = [s for s in statements(tuple(body)) if id(s) not in inside]
    return variables_of(*others) | {s.name for s in others if isinstance(s, Assign)}


def accesses_of(body: Sequence[Stmt]) -> list[Load | Store]:
    """Return the reads and stores of tensors in a body, inside of its loops and conditions too."""
    nodes = list(statements(tuple(body)))
    return [*loads_of(*nodes), *(s for s in nodes if isinstance(s, Store))]


def stored_by(body: Sequence[Stmt]) -> set[str]:
    """Return the tensors that a body stores to, inside of its loops and conditions too."""
    return {s.buffer for s in statements(tuple(body)) if isinstance(s, Store)}


def stores_to(buffer: str, body: Sequence[Stmt]) -> list[Store]:
    """Return the stores of a body to one tensor, inside of its loops and conditions too."""
    return [s for s in statements(tuple(body)) if isinstance(s, Store) and s.buffer == buffer]


def assigned_by(body: Sequence[Stmt]) -> set[str]:
    """Return the scalars that a body assigns, inside of its loops and conditions too."""
    return {s.name for s in statements(tuple(body)) if isinstance(s, Assign)}


def used_by(body: Sequence[Stmt]) -> set[str]:
    """Return the scalars, variables and tensors that a body reads or sets, inside of its loops too."""
    nodes = list(statements(tuple(body)))
    return variables_of(*nodes) | tensors_of(*nodes) | stored_by(body) | assigned_by(body)


def first_assigned(body: Sequence[Stmt]) -> list[Assign]:
    """Return the first assignment of each scalar in a body or its conditions; loops are left out."""
    assignments: dict[str, Assign] = {}

    def visit(nodes: Sequence[Stmt]) -> None:
        for node in nodes:
            if isinstance(node, If):
                visit(node.body)
                visit(node.orelse)
            elif isinstance(node, Assign):
                assignments.setdefault(node.name, node)

    visit(body)
    return list(assignments.values())
