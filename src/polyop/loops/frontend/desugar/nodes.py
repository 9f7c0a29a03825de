"""Make syntax nodes that stand at the line of another node, and names that a function does not use."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from ..syntax_tree import walk

Node = TypeVar("Node", bound=ast.AST)
WHILE = "while"
"""The head of a loop that only its flags end, ``for step in while():``; no author can write that."""


class Guard(ast.If):
    """An ``if`` that a rewriting has added, with the field ``live``, "body" or "orelse".

    What follows runs only after the branch ``live``: the other branch leaves the loop, the iteration or the
    function. So names that are assigned in ``live`` have a value afterwards.
    """

    live: str = "body"


class Undefined(ast.Constant):
    """The value of a name that is read only after another assignment; it has the type of the others."""


class Unused:
    """The names of a function; :meth:`new` returns another one, and ``made`` has all of those."""

    def __init__(self, taken: Iterable[str]) -> None:
        self.taken = set(taken)
        self.made: set[str] = set()

    def new(self, base: str) -> str:
        """Return ``base``, or ``base`` with the first number that makes it a new name."""
        number, name = 0, base
        while name in self.taken:
            number += 1
            name = f"{base}_{number}"
        self.taken.add(name)
        self.made.add(name)
        return name


class Place(NamedTuple):
    """Where an expression stands: a node and the name of a field, or a list and a number."""

    owner: Any
    key: Any

    def get(self) -> ast.expr:
        """Return the expression."""
        listed = isinstance(self.owner, list)
        found: ast.expr = self.owner[self.key] if listed else getattr(self.owner, self.key)
        return found

    def put(self, node: ast.expr) -> None:
        """Put another expression there."""
        if isinstance(self.owner, list):
            self.owner[self.key] = node
        else:
            setattr(self.owner, self.key, node)


def places(node: ast.AST) -> list[Place]:
    """Return where the parts of a node stand that are computed, in Python's order.

    Of a statement with targets these are also their indices, after the value. Statements inside are left out.
    """
    found: list[Place] = []
    targets: list[Place] = []
    for name, value in ast.iter_fields(node):
        if isinstance(value, ast.expr) and _is_written(value):
            targets += places_of_target(value)
        elif isinstance(value, ast.expr):
            found.append(Place(node, name))
        for k, one in enumerate(value if isinstance(value, list) else ()):
            if isinstance(one, ast.keyword):
                found.append(Place(one, "value"))
            elif isinstance(one, ast.expr) and _is_written(one):
                targets += places_of_target(one)
            elif isinstance(one, ast.expr):
                found.append(Place(value, k))
    return found + targets


def places_of_target(node: ast.expr) -> list[Place]:
    """Return where the indices of a target stand, in Python's order."""
    match node:
        case ast.Subscript(value=value):
            return [*places_of_target(value), Place(node, "slice")]
        case ast.Tuple(elts=items) | ast.List(elts=items):
            return [place for item in items for place in places_of_target(item)]
    return []


def _is_written(node: ast.expr) -> bool:
    return isinstance(getattr(node, "ctx", None), ast.Store)


def at(place: ast.AST, node: Node) -> Node:
    """Return the node; it and all nodes inside that have no line get the line of ``place``."""
    for inner in walk(node):
        if not hasattr(inner, "lineno") and isinstance(inner, (ast.expr, ast.stmt)):
            ast.copy_location(inner, place)
    return node


def load(name: str) -> ast.Name:
    """Return a name that is read."""
    return ast.Name(name, ast.Load())


def target(name: str) -> ast.Name:
    """Return a name that is assigned."""
    return ast.Name(name, ast.Store())


def assign(name: str, value: ast.expr, place: ast.AST) -> ast.Assign:
    """Return ``name = value``."""
    return at(place, ast.Assign([target(name)], value))


def call(word: str, *inputs: ast.expr) -> ast.Call:
    """Return a call of a word of the language."""
    return ast.Call(load(word), list(inputs), [])


def negated(test: ast.expr) -> ast.expr:
    """Return ``not test``."""
    return test.operand if _is_not(test) else ast.UnaryOp(ast.Not(), test)  # type: ignore[attr-defined]


def _is_not(test: ast.expr) -> bool:
    return isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)


def assigned_names(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the names that are bound at or below some nodes."""
    return {n.id for node in nodes for n in walk(node) if isinstance(n, ast.Name) and _is_stored(n)}


def _is_stored(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


def all_names(nodes: Iterable[ast.AST]) -> set[str]:
    """Return all names at or below some nodes."""
    return {n.id for node in nodes for n in walk(node) if isinstance(n, ast.Name)}


class _Substitute(ast.NodeTransformer):
    def __init__(self, values: Mapping[str, ast.expr]) -> None:
        self.values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self.values:
            return node
        value = self.values[node.id]
        if isinstance(value, ast.Name):
            return ast.copy_location(ast.Name(value.id, node.ctx), node)
        return value


def substituted(nodes: Sequence[Node], values: Mapping[str, ast.expr]) -> list[Node]:
    """Return the nodes, changed in place: names are replaced by expressions. A name may be a target too."""
    change = _Substitute(values)
    return [change.visit(node) for node in nodes]


class _Unshare(ast.NodeTransformer):
    """Copies nodes that stand in more than one place, because names are resolved by node."""

    def __init__(self) -> None:
        self.seen: set[int] = set()

    def visit(self, node: ast.AST) -> ast.AST:
        if id(node) in self.seen and isinstance(node, (ast.expr, ast.stmt)):
            node = copy.copy(node)
        self.seen.add(id(node))
        return self.generic_visit(node)


def unshared(tree: ast.FunctionDef) -> ast.FunctionDef:
    """Return the tree, in which no node stands in two places."""
    _Unshare().visit(tree)
    return tree
