"""The loop tree of a kernel while loops are rearranged: each statement keeps its leaf (its instances).

for i, for j: S0          Loop(i, [Loop(j, [StatementNode(S0)])])
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ...core.locks import cached_property
from ..ir.grammar import INT, Assign, Expr, For, If, Stmt, Store, Var
from ..ir.rewriter import rewrite, substitute, with_bodies
from .dependence import Legality, Path, Paths, Step
from .polyhedra import Leaf, Model


@dataclass(frozen=True, eq=False)
class StatementNode:
    """A Store or Assign in the tree; ``leaf`` has its instances.

    ``dims`` maps the variable of each loop around it to the dimension of the leaf that the loop runs through.
    """

    leaf: Leaf
    node: Store | Assign
    dims: Mapping[str, int]


@dataclass(frozen=True, eq=False)
class Loop:
    """A loop; ``node`` has its bounds, and its body is ``body``."""

    node: For
    body: tuple[Node, ...]

    @property
    def var(self) -> str:
        """The loop's variable."""
        return self.node.var


@dataclass(frozen=True, eq=False)
class Branch:
    """A condition around nodes."""

    node: If
    body: tuple[Node, ...]
    orelse: tuple[Node, ...]


Node = StatementNode | Loop | Branch


def tree_of(model: Model) -> tuple[Node, ...]:
    """Return the loop tree of a kernel as it is."""
    leaves = iter(model.leaves)

    def visit(body: Sequence[Stmt]) -> tuple[Node, ...]:
        nodes: list[Node] = []
        for node in body:
            if isinstance(node, For):
                nodes.append(Loop(node, visit(node.body)))
            elif isinstance(node, If):
                nodes.append(Branch(node, visit(node.body), visit(node.orelse)))
            else:
                leaf = next(leaves)
                nodes.append(StatementNode(leaf, node, {var: k for k, var in enumerate(leaf.vars)}))
        return tuple(nodes)

    return visit(model.kernel.body)


def statements_of(tree: Sequence[Node]) -> tuple[Stmt, ...]:
    """Return the statements of a tree."""
    result: list[Stmt] = []
    for node in tree:
        match node:
            case StatementNode():
                result.append(node.node)
            case Loop():
                result.append(replace(node.node, body=statements_of(node.body)))
            case Branch():
                result.append(
                    replace(node.node, body=statements_of(node.body), orelse=statements_of(node.orelse))
                )
    return tuple(result)


def statement_nodes(tree: Sequence[Node]) -> Iterator[StatementNode]:
    """Yield the statements of a tree in order."""
    for node in tree:
        match node:
            case StatementNode():
                yield node
            case Loop():
                yield from statement_nodes(node.body)
            case Branch():
                yield from statement_nodes(node.body)
                yield from statement_nodes(node.orelse)


def perfect_nest(loop: Loop) -> list[Loop]:
    """Return the loops of the perfect nest that starts with a loop, outermost first."""
    nest = [loop]
    while len(nest[-1].body) == 1 and isinstance(inner := nest[-1].body[0], Loop):
        nest.append(inner)
    return nest


def in_loops(heads: Sequence[For], body: tuple[Node, ...]) -> Loop:
    """Return loops with these heads, outermost first, around nodes."""
    for head in reversed(heads):
        body = (Loop(head, body),)
    (loop,) = body
    assert isinstance(loop, Loop)
    return loop


def paths_of(tree: Sequence[Node]) -> Paths:
    """Return the path of each leaf."""
    result: Paths = {}

    def visit(body: Sequence[Node], path: tuple[Step, ...], loops: tuple[str, ...], position: int = 0) -> int:
        for node in body:
            match node:
                case Loop():
                    visit(node.body, (*path, Step(position, node.var)), (*loops, node.var))
                    position += 1
                case Branch():
                    position = visit(node.orelse, path, loops, visit(node.body, path, loops, position))
                case StatementNode():
                    whole: Path = tuple(replace(step, dim=node.dims[step.loop]) for step in (*path,))
                    result[node.leaf.id] = (*whole, Step(position))
                    position += 1
        return position

    visit(tree, (), ())
    return result


def replaced(tree: tuple[Node, ...], old: Node, new: tuple[Node, ...]) -> tuple[Node, ...]:
    """Return the tree with nodes in place of one; the same object if that is not in it."""
    result: list[Node] = []
    for node in tree:
        result += new if node is old else (inside(node, lambda body: replaced(body, old, new)),)
    return tuple(result) if any(a is not b for a, b in itertools.zip_longest(result, tree)) else tree


def inside(node: Node, change: Callable[[tuple[Node, ...]], tuple[Node, ...]]) -> Node:
    """Return the node with its bodies changed; the same object if no body changes."""
    match node:
        case Loop(head, body):
            inner = change(body)
            return node if inner is body else Loop(head, inner)
        case Branch(condition, body, orelse):
            inner, other = change(body), change(orelse)
            return node if inner is body and other is orelse else Branch(condition, inner, other)
    return node


class Rearrangement:
    """A kernel's loops while a pass rearranges them: only legal changes are made."""

    def __init__(self, model: Model) -> None:
        self.model, self.tree = model, tree_of(model)

    @cached_property
    def legality(self) -> Legality:
        """The order of the kernel's conflicts, which costs isl some time."""
        return Legality(self.model)

    def replace(self, old: Node, new: tuple[Node, ...]) -> bool:
        """Put nodes in place of one, if that keeps the order of all conflicts; return whether it was done."""
        changed = replaced(self.tree, old, new)
        if changed is self.tree or self.legality.broken(paths_of(changed)) is not None:
            return False
        self.tree = changed
        return True


def with_distinct_loops(body: Sequence[Stmt], fresh: Callable[[str], str]) -> tuple[Stmt, ...]:
    """Return a body in which no two loops share a variable; ``fresh`` gives a name for a repeated one."""
    seen: set[str] = set()

    def visit(nodes: Sequence[Stmt]) -> tuple[Stmt, ...]:
        return tuple(with_bodies(named_apart(node), visit) for node in nodes)

    def named_apart(node: Stmt) -> Stmt:
        if not isinstance(node, For):
            return node
        name = fresh(node.var) if node.var in seen else node.var
        seen.add(name)
        inner = node.body
        if name != node.var:
            inner = tuple(substitute(s, {node.var: Var(name, INT)}) for s in inner)
        return replace(node, var=name, body=inner)

    return visit(body)


def renamed(node: Node, old: str, new: Var) -> Node:
    """Return the node with a loop variable renamed."""

    def change(expr: Expr) -> Expr:
        return new if isinstance(expr, Var) and expr.name == old else expr

    match node:
        case StatementNode(leaf, stmt, dims):
            moved = {new.name if var == old else var: k for var, k in dims.items()}
            return StatementNode(leaf, substitute(stmt, {old: new}), moved)
        case Loop(loop, body):
            head = replace(loop, lo=rewrite(loop.lo, change), hi=rewrite(loop.hi, change), body=())
            return Loop(head, tuple(renamed(n, old, new) for n in body))
        case Branch(branch, body, orelse):
            head_if = replace(branch, condition=rewrite(branch.condition, change), body=(), orelse=())
            return Branch(
                head_if,
                tuple(renamed(n, old, new) for n in body),
                tuple(renamed(n, old, new) for n in orelse),
            )
