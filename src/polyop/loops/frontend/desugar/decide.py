"""Remove the branches that are not chosen, by the optional tensors that are given and the values of strings.

if b is not None:               y[i] += b[i]
    y[i] += b[i]
s / n if mode == "mean" else s  s / n
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any, NoReturn

from ....core.errors import ArgumentTypeError, ArgumentValueError
from ..choices import NO_TEXT, Choices, Chosen, is_none, listed_text
from ..source import Source
from ..syntax_tree import walk


class Known(ast.Constant):
    """A condition that is decided."""


_EXITS = (ast.Return, ast.Break, ast.Continue, ast.Raise)


class Decide(ast.NodeTransformer):
    """Removes the branches that are not chosen."""

    def __init__(self, source: Source, chosen: Chosen, choices: Choices) -> None:
        self.source, self.chosen, self.choices = source, chosen, choices
        self.seen: dict[str, set[str]] = {name: set() for name in chosen.strings}

    def body(self, nodes: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Return statements without the branches that are not chosen."""
        kept: list[ast.stmt] = []
        for node in nodes:
            new = self.visit(node)
            kept += new if isinstance(new, list) else [] if new is None else [new]
            if isinstance(new, list) and new and isinstance(new[-1], _EXITS):
                break  # what follows never runs
        return kept

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Visit what is inside; a body that has become empty passes."""
        for name in ("body", "orelse"):
            inner = getattr(node, name, None)
            if isinstance(inner, list):
                kept = self.body(inner)
                empty = [ast.copy_location(ast.Pass(), node)] if inner and name == "body" else []
                setattr(node, name, kept or empty)
        for name, value in ast.iter_fields(node):
            if isinstance(value, ast.AST):
                setattr(node, name, self.visit(value))
            elif isinstance(value, list) and name not in ("body", "orelse"):
                setattr(node, name, [self.visit(one) if isinstance(one, ast.AST) else one for one in value])
        return node

    def visit_If(self, node: ast.If) -> Any:
        """Return the statements of the branch that is chosen, or the if."""
        node.test = self.visit(node.test)
        if isinstance(node.test, Known):
            return self.body(node.body if node.test.value else node.orelse)
        return self.generic_visit(node)

    visit_Guard = visit_If  # noqa: N815 - the if of a rewriting; ast names the methods

    def visit_Assert(self, node: ast.Assert) -> Any:
        """Return nothing for what is known to hold."""
        node.test = self.visit(node.test)
        return None if isinstance(node.test, Known) and node.test.value else node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        """Return the value that is chosen, or the expression."""
        self.generic_visit(node)
        test = node.test
        return node if not isinstance(test, Known) else node.body if test.value else node.orelse

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        """Return the opposite of what is known."""
        self.generic_visit(node)
        is_known = isinstance(node.op, ast.Not) and isinstance(node.operand, Known)
        return self._known(node, not node.operand.value) if is_known else node  # type: ignore[attr-defined]

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        """Return what is left of ``and`` and ``or``."""
        self.generic_visit(node)
        ends = isinstance(node.op, ast.Or)
        values = [value for value in node.values if not isinstance(value, Known) or value.value is ends]
        if any(isinstance(value, Known) for value in values):
            return self._known(node, ends)
        if not values:
            return self._known(node, not ends)
        node.values = values
        return values[0] if len(values) == 1 else node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """Return whether a comparison with None or of strings holds."""
        self.generic_visit(node)
        if len(node.ops) != 1:
            return node
        left, op, right = node.left, node.ops[0], node.comparators[0]
        if isinstance(op, (ast.Is, ast.IsNot)):
            other = right if is_none(left) else left
            if not (is_none(left) or is_none(right)) or not self._may_be_none(other):
                return node
            missing = is_none(other) or (isinstance(other, ast.Name) and self.choices[other.id] is None)
            return self._known(node, missing == isinstance(op, ast.Is))
        if isinstance(op, (ast.In, ast.NotIn)) and isinstance(right, (ast.Tuple, ast.List, ast.Set)):
            texts = [self._text(one) for one in right.elts]
        else:
            texts = [self._text(right)] if isinstance(op, (ast.Eq, ast.NotEq)) else [None]
        text = self._text(left)
        if text is None or None in texts or not texts:
            return node
        for name in (n.id for n in (left, right) if isinstance(n, ast.Name)):
            sides = [left, *(right.elts if isinstance(right, (ast.Tuple, ast.List, ast.Set)) else [right])]
            self.seen[name] |= {str(n.value) for n in sides if isinstance(n, ast.Constant)}
        return self._known(node, (text in texts) == isinstance(op, (ast.Eq, ast.In)))

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Return a declaration of a tensor with the dtype that a string names."""
        self.generic_visit(node)
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name in ("output_tensor", "allocate") and len(node.args) == 2:
            dtype = node.args[1]
            if isinstance(dtype, ast.Name) and dtype.id in self.chosen.strings:
                node.args[1] = ast.copy_location(ast.Constant(self.choices[dtype.id]), dtype)
        return node

    def _known(self, node: ast.AST, value: object) -> Known:
        return ast.copy_location(Known(bool(value)), node)

    def _may_be_none(self, node: ast.expr) -> bool:
        """Whether it is decided here that an expression is None."""
        return isinstance(node, ast.Constant) or (
            isinstance(node, ast.Name) and node.id in self.chosen.optional
        )

    def _text(self, node: ast.expr) -> str | None:
        """Return the string that an expression is, or None."""
        if isinstance(node, ast.Name) and node.id in self.chosen.strings:
            return str(self.choices[node.id])
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        return node.value if is_text else None  # type: ignore[attr-defined]

    def check(self, nodes: Sequence[ast.stmt]) -> None:
        """Raise for an unknown string, and for a choice that is used as a value in what is left."""
        for name in self.chosen.strings:
            known = self.chosen.known(name, self.seen[name])
            if known and self.choices[name] not in (*known, NO_TEXT):
                rule = f"{name} is one of {listed_text(known)}"
                raise self.source.error(ArgumentValueError, rule, None, repr(self.choices[name]))
        for node in (n for one in nodes for n in walk(one) if isinstance(n, ast.Name)):
            if node.id in self.chosen.strings:
                self._refuse_string(node)
            if node.id in self.chosen.optional and self.choices[node.id] is None:
                rule = f"{node.id} may be None, and this line also runs without it"
                hint = f"write it below if {node.id} is not None: that is decided when the kernel is compiled"
                raise self.source.error(ArgumentTypeError, rule, node, hint=hint)

    def _refuse_string(self, node: ast.Name) -> NoReturn:
        values = self.chosen.strings[node.id]
        example = next(iter(values), str(self.choices[node.id]))
        rule = f"{node.id} is a string, which is no value of a kernel"
        hint = f'compare it: if {node.id} == "{example}"; that is decided when the kernel is compiled'
        raise self.source.error(ArgumentTypeError, rule, node, hint=hint)
