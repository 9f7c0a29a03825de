"""Check the syntax of each expression: its kind, the words that it calls, how many inputs they get."""

from __future__ import annotations

import ast
from typing import NoReturn

import numpy as np

from ...core.errors import ArgumentTypeError, ArgumentValueError, PolyopError, UnsupportedError
from .language import WORDS, Word
from .rejected_syntax import ALLOWED_USE, EXPRESSIONS, REJECTED, is_dtype_test
from .source import Source
from .suggestions import (
    INDICES,
    INPUTS,
    suggestion_for_attribute,
    suggestion_for_call,
    suggestion_for_constant,
)
from .syntax_tree import is_target, walk


class ExpressionChecker:
    """Walks expressions; each method raises for what it does not accept."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def fail(
        self, kind: type[PolyopError], rule: str, node: ast.AST, seen: object = None, hint: str | None = None
    ) -> NoReturn:
        """Raise an error that points at the node."""
        raise self.source.error(kind, rule, node, seen, hint)

    def reject(self, node: ast.AST, place: ast.AST | None = None) -> None:
        """Raise for syntax in the table ``REJECTED``; ``place`` has the line, if the node has none."""
        if type(node) in REJECTED:
            kind, rule, hint = REJECTED[type(node)]
            self.fail(kind, rule, place or node, hint=hint)

    def expression(self, node: ast.expr) -> None:
        """Check an expression and all inside it."""
        self.reject(node)
        if not isinstance(node, EXPRESSIONS):
            syntax = type(node).__name__
            self.fail(UnsupportedError, f"{syntax} ({ast.unparse(node)}) is not part of the language", node)
        match node:
            case ast.Constant(value=value):
                self.constant(node, value)
            case ast.Call():
                word = self.call(node)
                if word.kind in ALLOWED_USE:
                    self.fail(ArgumentValueError, f"{word.name} {ALLOWED_USE[word.kind]}", node)
            case ast.Attribute():
                self.attribute(node)
            case ast.Compare(left=left) if is_dtype_test(node):
                self.expression(left)  # what it is compared with is a dtype, not an expression
            case ast.Subscript(value=value, slice=index):
                self.expression(value)
                self.index(node, index)
            case _:
                for inner in ast.iter_child_nodes(node):
                    if isinstance(inner, ast.expr):
                        self.expression(inner)
                    else:
                        self.reject(inner, node)

    def attribute(self, node: ast.Attribute) -> None:
        """Check that an attribute is one of a name: of a tensor or a module."""
        value = node.value
        if not isinstance(value, (ast.Name, ast.Attribute)):
            rule = "getattr is only supported for a tensor object, not for the object with type"
            hint = suggestion_for_attribute(node)
            self.fail(ArgumentValueError, f"{rule}: {type(value).__name__}", node, hint=hint)
        if isinstance(value, ast.Attribute) and value.attr == "dtype":
            rule = f"{ast.unparse(node)} is not compiled"
            self.fail(UnsupportedError, rule, node, hint=suggestion_for_attribute(node))

    def constant(self, node: ast.expr, value: object) -> None:
        """Check that a literal is a number."""
        if not isinstance(
            value, (bool, int, float, complex, np.generic)
        ):  # of NumPy: a constant of a helper's module
            hint = suggestion_for_constant(value)
            self.fail(ArgumentTypeError, "values are numbers", node, f"{value!r}", hint)
        if isinstance(value, int) and value >= 2**64:
            self.fail(ArgumentValueError, "an integer must fit into 64 bits", node, value)

    def index(self, node: ast.expr, index: ast.expr) -> None:
        """Check an index: an expression or a slice for each dimension."""
        for item in index.elts if isinstance(index, ast.Tuple) else [index]:
            if isinstance(item, ast.Slice):
                for bound in (item.lower, item.upper, item.step):
                    if bound is not None:
                        self.expression(bound)
                continue
            if isinstance(item, (ast.List, ast.Compare)):
                seen = f"{ast.unparse(item)} as an index"
                self.fail(
                    UnsupportedError, "an index is a number or a slice", node, seen, INDICES[type(item)]
                )
            newaxis = isinstance(item, ast.Attribute) and item.attr == "newaxis"
            if newaxis or (isinstance(item, ast.Constant) and (item.value is None or item.value is ...)):
                rule = f"[{ast.unparse(item)}] is not compiled"
                self.fail(UnsupportedError, rule, node, hint="write a : for each dimension")
            self.expression(item)

    def call(self, node: ast.Call) -> Word:
        """Return the word that is called, after checks of its inputs and their number."""
        word = self.word(node)
        inputs = node.args
        others = [k for k in node.keywords if word.kind != "random" or k.arg != "dtype"]
        if others:
            names = ", ".join(f"{k.arg}=" if k.arg else "**" for k in others)
            rule = f"{word.name} takes no keyword arguments"
            known = f": its inputs are {', '.join(word.parameters)}" if word.parameters else ""
            self.fail(ArgumentTypeError, rule, node, names, f"pass its inputs by position{known}")
        for item in inputs:
            self.reject(item)
        if not word.takes(len(inputs)):
            expected = "two inputs" if word.kind == "buffer" else word.counts()
            rule = f"{word.name} takes {expected}, but got {len(inputs)}"
            self.fail(ArgumentTypeError, rule, node, hint=self.complete(node, word))
        if word.kind == "buffer":
            self.expression(inputs[0])
            return word  # the other input is a dtype, not an expression
        if word.kind == "limit":
            if len(inputs) == 1:
                rule = f"{ast.unparse(node)} is no number"
                self.fail(
                    ArgumentTypeError, rule, node, hint=f"write {ast.unparse(node)}.max, or another attribute"
                )
            return word
        for item in inputs:
            self.expression(item)
        return word

    def word(self, node: ast.Call) -> Word:
        """Return the word that is called; raise for any other function."""
        name = called(node)
        if name is None or name not in WORDS:
            rule = f"{ast.unparse(node.func)} is no function of loop kernels"
            self.fail(ArgumentValueError, rule, node, hint=suggestion_for_call(node, self.bound()))
        return WORDS[name]

    def bound(self) -> set[str]:
        """Return the names that the function binds: methods of these are of tensors, not of modules."""
        names = {n.id for n in walk(self.source.tree) if isinstance(n, ast.Name) and is_target(n)}
        return names | set(self.source.parameters)

    def complete(self, node: ast.Call, word: Word) -> str | None:
        """Return what to write for a call with too few or too many inputs, or None."""
        if word.kind == "buffer":
            shape = ast.unparse(node.args[0]) if node.args else f"{self.example()}.shape"
            return f"write {word.name}({shape}, {self.example(node)}.dtype)"
        if word.kind == "random":
            return f"write {word.name}(key, i): a key, and one to four integers"
        if word.pairs:
            return f"write {word.name}(value, x, slope): the derivative by x is slope"
        if word.name in ("max", "min") and len(node.args) == 1:
            return f"for a whole tensor, write a loop: best = {word.name}(best, x[i])"
        return INPUTS.get(word.name)

    def example(self, node: ast.Call | None = None) -> str:
        """Return a tensor for a suggestion: the one whose shape the call reads, else the first parameter."""
        for item in walk(node) if node else ():
            if isinstance(item, ast.Attribute) and item.attr == "shape" and isinstance(item.value, ast.Name):
                return item.value.id
        return next(iter(self.source.parameters), "x")


def called(node: ast.Call) -> str | None:
    """Return the name that is called, or None for a call of something else, such as a method."""
    return node.func.id if isinstance(node.func, ast.Name) else None
