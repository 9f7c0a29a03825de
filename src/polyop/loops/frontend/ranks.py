"""Infer how many dimensions tensors have from their uses: ``x[i, j]`` as a number says that x has two.

    if x[i, j] > 0:             certain: a condition, an index, a bound and the like are numbers
    y[i, j] = 2 * x[i, j]       so it is where y has two dimensions for certain; else both may be rows
    sum(x[i])                   a row: x has more than one dimension

A use that may be a row counts as a number if nothing is certain, no use has more indices, and no row as many.
Uses that are certain and differ are an error. What stands in a branch by ``x.ndim`` says nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from ...core.errors import ArgumentValueError
from .language import BUFFERS, WORDS, Word
from .names import Scopes
from .source import Source
from .syntax_tree import walk

NUMBER, ANY, ROW = "number", "any", "row"
"""What an expression is: a number, more than that, or either."""


@dataclass(frozen=True)
class _Use:
    """A tensor with some indices. ``node`` and ``text`` are for messages."""

    tensor: str
    indices: int
    kind: str
    node: ast.AST


def ranks_of_uses(source: Source, scopes: Scopes) -> dict[str, int]:
    """Return the number of dimensions of each parameter of which the uses tell it.

    Raises ``ArgumentValueError`` if two uses of a tensor contradict each other, with both lines.
    """
    uses = _Uses(source, scopes)
    known: dict[str, int] = {}
    while True:  # a rank tells of the tensors that are stored into this one
        uses.read(known)
        found = {name: one.indices for name in scopes.tensors if (one := uses.certain(name))}
        if found == known:
            break
        known = found
    ranks = {name: known.get(name, uses.usual(name)) for name in sorted(scopes.tensors)}
    return {name: rank for name, rank in ranks.items() if rank is not None}


class _Uses:
    """Reads the statements of one function. ``known`` are the ranks that are certain."""

    def __init__(self, source: Source, scopes: Scopes) -> None:
        self.source, self.scopes = source, scopes
        self.values: dict[str, list[ast.expr]] = {}
        for node in walk(source.tree):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                self.values.setdefault(self.unique(node.targets[0]), []).append(node.value)
        self.known: Mapping[str, int] = {}
        self.uses: list[_Use] = []
        self.open: set[str] = set()

    def read(self, known: Mapping[str, int]) -> None:
        """Find the uses, where some ranks are known."""
        self.known, self.uses = known, []
        self.block(self.source.tree.body)

    def certain(self, name: str) -> _Use | None:
        """Return a use that tells the rank for certain; raise if another one tells another rank."""
        certain = [use for use in self.uses if use.tensor == name and use.kind == NUMBER]
        for use in certain:
            if use.indices != certain[0].indices:
                self.fail(certain[0], use)
        return certain[0] if certain else None

    def usual(self, name: str) -> int | None:
        """Return the rank of a tensor if each use with the most indices may be a number; None for no such."""
        uses = [use for use in self.uses if use.tensor == name]
        most = max((use.indices for use in uses), default=0)
        is_row = any(use.kind == ROW and use.indices == most for use in uses)
        return None if is_row or not most else most

    def fail(self, one: _Use, other: _Use) -> NoReturn:
        texts = [f"{ast.unparse(use.node)} in line {getattr(use.node, 'lineno', 0)}" for use in (one, other)]
        name = other.tensor
        rule = f"{name} has one number of dimensions: {texts[0]} needs {one.indices}"
        seen = f"{texts[1]}, which needs {other.indices}"
        hint = f"write an index for each dimension of {name}; a row is no number"
        raise self.source.error(ArgumentValueError, rule, other.node, seen, hint)

    def unique(self, node: ast.AST) -> str:
        """Return the unique name of a name; "" for another node, and for a name from outside."""
        return self.scopes.names.get(node, "") if isinstance(node, ast.Name) else ""

    def tensor(self, node: ast.AST) -> str:
        """Return the parameter that a name is, or that has the shape of the tensor that it is; else ""."""
        name = self.unique(node)
        values = self.values.get(name, [])
        if len(values) == 1 and self.scopes.kinds.get(name) in BUFFERS:
            shape = values[0].args[0] if isinstance(values[0], ast.Call) else None
            return self.tensor(shape.value) if isinstance(shape, ast.Attribute) else ""
        return name if name in self.scopes.tensors else ""

    def rank(self, node: ast.AST) -> int | None:
        """Return the rank of a tensor, if that is certain."""
        name = self.unique(node)
        values = self.values.get(name, [])
        if len(values) == 1 and isinstance(values[0], ast.Call) and self.scopes.kinds.get(name) in BUFFERS:
            shape = values[0].args[0]
            if isinstance(shape, ast.Tuple) and not any(isinstance(one, ast.Starred) for one in shape.elts):
                return len(shape.elts)
        return self.known.get(self.tensor(node))

    def block(self, body: Sequence[ast.stmt]) -> None:
        """Read statements."""
        for node in body:
            self.statement(node)

    def statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=items)], value=ast.Attribute(attr="shape") as value):
                self.add(self.tensor(value.value), len(items), NUMBER, node)
            case ast.Assign(targets=[target], value=value) | ast.AugAssign(target=target, value=value):
                self.assignment(target, value)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self.assignment(target, value)
            case ast.If(test=test, body=body, orelse=orelse):
                if not _is_choice(test):
                    self.expression(test, NUMBER)
                    self.block((*body, *orelse))
            case ast.For(target=target, iter=ast.Call(args=args), body=body):
                shape = args[0] if args else None
                if isinstance(target, ast.Tuple) and isinstance(shape, ast.Attribute):  # of a grid
                    self.add(self.tensor(shape.value), len(target.elts), NUMBER, node.iter)
                for item in args:
                    self.expression(item, NUMBER)
                self.block(body)
            case ast.With(body=body):
                self.block(body)

    def assignment(self, target: ast.expr, value: ast.expr) -> None:
        kind = ANY
        if isinstance(target, ast.Subscript):
            self.expression(target, ANY)
            root, indices = _indices(target)
            kind = NUMBER if indices is not None and self.rank(root) == len(indices) else ANY
        elif isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in BUFFERS:
            self.expression(value.args[0], NUMBER)
            return
        elif self.is_number(target):
            kind = NUMBER
        self.expression(value, kind)

    def is_number(self, node: ast.expr) -> bool:
        """Whether an expression is a number for certain: a row has a name of its own, assigned once."""
        match node:
            case ast.Constant():
                return True
            case ast.Name():
                name = self.unique(node)
                values = self.values.get(name, [])
                if self.scopes.kinds.get(name) != "scalar" or name in self.open:
                    return self.scopes.kinds.get(name) == "loop"
                self.open.add(name)
                found = len(values) != 1 or self.is_number(values[0])
                self.open.discard(name)
                return found
            case ast.BinOp(left=left, right=right):
                return self.is_number(left) and self.is_number(right)
            case ast.UnaryOp(operand=operand):
                return self.is_number(operand)
            case ast.Subscript(value=ast.Attribute(attr="shape")):
                return True
        return False

    def expression(self, node: ast.expr, kind: str) -> None:
        """Read an expression that is of a kind."""
        match node:
            case ast.Subscript(
                value=ast.Attribute(value=owner, attr="shape"), slice=ast.Constant(value=int(axis))
            ):
                self.add(self.tensor(owner), max(axis, 0), ROW, node)  # it has more dimensions than that
            case ast.Subscript():
                self.subscript(node, kind)
            case ast.Name():
                self.name(node, kind)
            case ast.Call(func=ast.Name(id=word), args=args) if word in WORDS:
                for position, item in enumerate(args):
                    self.expression(item, _kind_of_input(WORDS[word], position, len(args), kind))
            case ast.IfExp(test=test, body=body, orelse=orelse):
                if not _is_choice(test):
                    self.expression(test, NUMBER)
                    self.expression(body, kind)
                    self.expression(orelse, kind)
            case ast.BinOp() | ast.UnaryOp() | ast.Compare() | ast.BoolOp():
                for part in ast.iter_child_nodes(node):
                    if isinstance(part, ast.expr):  # a row and a number make a row: either may be it
                        self.expression(part, kind)
            case ast.Tuple(elts=items) | ast.List(elts=items):
                for item in items:
                    self.expression(item, ANY)

    def subscript(self, node: ast.Subscript, kind: str) -> None:
        root, indices = _indices(node)
        for part in indices or ():
            self.expression(part, NUMBER)
        if indices is None:
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            if isinstance(node.value, ast.Name):  # with a slice, x[i, :] has more dimensions than 1
                self.add(self.tensor(node.value), len(parts) - 1, ROW, node)
        elif not any(isinstance(part, ast.Name) and self.is_tuple(part) for part in indices):
            self.part(root, len(indices), kind, node)

    def is_tuple(self, node: ast.Name) -> bool:
        """Whether a name may be a tuple of indices: the variable of a grid."""
        name = self.unique(node)
        values = self.values.get(name, [])
        return any(isinstance(value, (ast.Tuple, ast.Attribute)) for value in values) or name in self.grids()

    def grids(self) -> set[str]:
        """Return the loop variables that are tuples."""
        loops = (node for node in walk(self.source.tree) if isinstance(node, ast.For))
        return {
            self.unique(node.target)
            for node in loops
            if isinstance(node.iter, ast.Call) and ast.unparse(node.iter.func) == "grid"
        }

    def part(self, root: ast.AST, indices: int, kind: str, node: ast.expr) -> None:
        """Add a use of a tensor, or of a name that is a part of one."""
        name = self.unique(root)
        values = self.values.get(name, [])
        if self.scopes.kinds.get(name) == "scalar" and len(values) == 1 and name not in self.open:
            self.open.add(name)
            of, more = _indices(values[0])
            if more is not None and (more or self.tensor(of)):
                self.part(of, len(more) + indices, kind, node)
            elif not indices:
                self.expression(values[0], kind)
            self.open.discard(name)
        else:
            self.add(self.tensor(root), indices, kind, node)

    def name(self, node: ast.Name, kind: str) -> None:
        if self.scopes.kinds.get(self.unique(node)) == "scalar" and kind != ANY:
            self.part(node, 0, kind, node)
        elif kind == ROW:
            self.add(self.tensor(node), 0, ROW, node)

    def add(self, tensor: str, indices: int, kind: str, node: ast.AST) -> None:
        if tensor:
            self.uses.append(_Use(tensor, indices, kind, node))


def _indices(node: ast.expr) -> tuple[ast.expr, list[ast.expr] | None]:
    """Return the name that ``a[i][j]`` starts with, and its indices; None for those if one is a slice."""
    found: list[ast.expr] = []
    while isinstance(node, ast.Subscript):
        found = [*(node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]), *found]
        node = node.value
    plain = isinstance(node, ast.Name) and not any(isinstance(part, ast.Slice) for part in found)
    return node, found if plain else None


def _kind_of_input(word: Word, position: int, inputs: int, kind: str) -> str:
    """Return what an input of a word is, whose result is of a kind."""
    if word.kind == "reduction" or (word.reduces and inputs == 1):
        return ROW
    if word.kind == "random":
        return NUMBER if position else ROW  # the key, of which one integer is rare
    return kind if word.kind in ("math", "cast", "complex", "composed") else ANY


def _is_choice(test: ast.expr) -> bool:
    """Whether a condition depends on a number of dimensions, which the compiler knows."""
    for node in walk(test):
        if isinstance(node, ast.Attribute) and node.attr == "ndim":
            return True
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "len" and "shape" in ast.unparse(node):
            return True
    return False
