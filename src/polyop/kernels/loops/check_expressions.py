"""The shape of each expression: which syntax, which calls, how many inputs."""

from __future__ import annotations

import ast
import difflib
from typing import NoReturn

from ...core.errors import ArgumentTypeError, ArgumentValueError, PolyopError, UnsupportedError
from .language import WORDS, Word
from .refused import ELEMENTS, EXPRESSIONS, PLACES, REFUSED
from .source import Source


class ExpressionChecker:
    """Walks expressions; each method raises for what it does not accept."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def fail(
        self, kind: type[PolyopError], rule: str, node: ast.AST, seen: object = None, hint: str | None = None
    ) -> NoReturn:
        """Raise an error that points at the node."""
        raise self.source.error(kind, rule, node, seen, hint)

    def refuse(self, node: ast.AST, place: ast.AST | None = None) -> None:
        """Raise for syntax that is in the table; an operator has no place of its own."""
        if type(node) in REFUSED:
            kind, rule, hint = REFUSED[type(node)]
            self.fail(kind, rule, place or node, hint=hint)

    def expression(self, node: ast.expr) -> None:
        """Check an expression and all inside it."""
        self.refuse(node)
        if not isinstance(node, EXPRESSIONS):
            what = type(node).__name__
            self.fail(UnsupportedError, f"{what} ({ast.unparse(node)}) is not part of the language", node)
        match node:
            case ast.Constant(value=value):
                self.constant(node, value)
            case ast.Call():
                word = self.call(node)
                if word.kind in PLACES:
                    self.fail(ArgumentValueError, f"{word.name} {PLACES[word.kind]}", node)
            case ast.Attribute(value=value):
                if not isinstance(value, (ast.Name, ast.Attribute)):
                    rule = "getattr is only supported for a tensor object, not for the object with type"
                    self.fail(ArgumentValueError, f"{rule}: {type(value).__name__}", node)
            case ast.Subscript(value=value, slice=index):
                self.expression(value)
                self.index(node, value, index)
            case _:
                for inner in ast.iter_child_nodes(node):
                    if isinstance(inner, ast.expr):
                        self.expression(inner)
                    else:
                        self.refuse(inner, node)

    def constant(self, node: ast.expr, value: object) -> None:
        """Check that a literal is a number."""
        if isinstance(value, complex):
            self.fail(UnsupportedError, "complex numbers are not compiled", node, hint="keep two tensors")
        if not isinstance(value, (bool, int, float)):
            self.fail(ArgumentTypeError, "values are numbers", node, f"{value!r}")
        if isinstance(value, int) and abs(value) >= 2**63:
            self.fail(ArgumentValueError, "an integer must fit into 64 bits", node, value)

    def index(self, node: ast.expr, value: ast.expr, index: ast.expr) -> None:
        """Check an index: an expression for each dimension; only a shape has slices, ``x.shape[1:]``."""
        of_shape = isinstance(value, (ast.Attribute, ast.Tuple))
        for item in index.elts if isinstance(index, ast.Tuple) else [index]:
            if isinstance(item, ast.Slice) and of_shape:
                continue
            if isinstance(item, ast.Constant) and (item.value is None or item.value is ...):
                self.fail(UnsupportedError, "slices of tensors are not compiled", node, hint=ELEMENTS)
            self.expression(item)

    def call(self, node: ast.Call) -> Word:
        """Return the word that is called; raise when it is none, or takes another number of inputs."""
        word = self.word(node)
        inputs = node.args
        if node.keywords:
            names = ", ".join(f"{k.arg}=" for k in node.keywords)
            self.fail(ArgumentTypeError, f"function [{word.name}] takes no keyword arguments", node, names)
        for item in inputs:
            self.refuse(item)
        if len(inputs) < word.least or (word.most is not None and len(inputs) > word.most):
            expected = "two inputs" if word.kind == "buffer" else word.counts()
            rule = f"function [{word.name}] expects {expected}, but get {len(inputs)}"
            self.fail(ArgumentTypeError, rule, node)
        if word.kind == "buffer":
            self.expression(inputs[0])
            return word  # a dtype is no expression
        for item in inputs:
            self.expression(item)
        return word

    def word(self, node: ast.Call) -> Word:
        """Return the word that is called."""
        name = called(node)
        if name is None:
            last = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            hint = f"write {last}(...), without the module" if last in WORDS else None
            rule = f"function call id [{ast.unparse(node.func)}] not in intrinsics list of the Hybrid DSL"
            self.fail(ArgumentValueError, rule, node, hint=hint)
        if name not in WORDS:
            near = difflib.get_close_matches(name, WORDS, n=3)
            hint = f"the nearest are {', '.join(near)}" if near else f"the words are {', '.join(WORDS)}"
            rule = f"function call id [{name}] not in intrinsics list of the Hybrid DSL"
            self.fail(ArgumentValueError, rule, node, hint=hint)
        return WORDS[name]


def called(node: ast.Call) -> str | None:
    """Return the name that is called, or None when it is no name."""
    return node.func.id if isinstance(node.func, ast.Name) else None
