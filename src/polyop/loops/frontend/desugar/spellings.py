"""Replace ``np.exp`` by the word ``exp``, and comparisons by those of the core.

np.exp(x[i])                     exp(x[i])
z.real, z.conj()                 real(z), conj(z)
np.float32 == x.dtype            x.dtype == np.float32
x.dtype in (float32, float64)    x.dtype == float32 or x.dtype == float64
"""

from __future__ import annotations

import ast
import math
from types import ModuleType
from typing import Any

import numpy as np

from ..language import WORDS
from ..source import Source
from ..syntax_tree import copied, walk
from .nodes import at, call

OTHER_NAMES = {
    "maximum": "max",
    "minimum": "min",
    "absolute": "abs",
    "fabs": "abs",
    "rint": "round",
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "arctan2": "atan2",
    "conjugate": "conj",
}
"""Names of functions in NumPy and ``math`` whose word is another one."""
METHODS = {"conj": "conj", "conjugate": "conj"}


def word_of(module: Any, name: str) -> str | None:
    """Return the word that ``module.name`` means, or None."""
    if not isinstance(module, ModuleType) or module not in (np, math) or not hasattr(module, name):
        return None
    word = OTHER_NAMES.get(name, name)
    return word if word in WORDS and WORDS[word].kind in ("math", "complex", "cast", "reduction") else None


def _is_dtype(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr == "dtype"


class Spellings(ast.NodeTransformer):
    """Rewrites the calls of one function; ``bound`` are the names that it binds itself."""

    def __init__(self, source: Source, bound: set[str]) -> None:
        self.source = source
        self.bound = bound

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        function = node.func
        if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
            root = function.value.id
            word = None if root in self.bound else word_of(self._value(root), function.attr)
            of_axis = function.attr in ("max", "min") and len(node.args) != 1  # np.max(x, axis)
            if word is not None and word not in self.bound and not of_axis:
                node.func = ast.copy_location(ast.Name(word, ast.Load()), function)
                return node
        if isinstance(function, ast.Attribute) and self._is_number(function.value):
            method = METHODS.get(function.attr)
            if method is not None and not node.args and not node.keywords:
                return at(node, call(method, function.value))
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if node.attr in ("real", "imag") and isinstance(node.ctx, ast.Load) and self._is_number(node.value):
            return at(node, call(node.attr, node.value))
        return node

    def _is_number(self, node: ast.expr) -> bool:
        """Whether a node is no module, and nothing of one."""
        while isinstance(node, ast.Attribute):
            node = node.value
        return not isinstance(node, ast.Name) or node.id in self.bound

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if len(node.ops) != 1:
            return node
        left, op, right = node.left, node.ops[0], node.comparators[0]
        if isinstance(op, (ast.In, ast.NotIn)):
            return self._one_of(node, left, right) or node
        if _is_dtype(right) and not _is_dtype(left):
            left, right = right, left
        if _is_dtype(left) and isinstance(op, (ast.Eq, ast.NotEq)):
            return at(node, ast.Compare(left, [op], [self._without_call(right)]))
        return node

    def _one_of(self, node: ast.Compare, left: ast.expr, right: ast.expr) -> ast.expr | None:
        """Return ``a == x or a == y`` for ``a in (x, y)``; None for what is computed more than once then."""
        if not isinstance(right, (ast.Tuple, ast.List, ast.Set)) or not right.elts:
            return None
        parts = [*walk(left), *(one for item in right.elts for one in walk(item))]
        if any(isinstance(one, ast.Starred) for one in parts) or any(
            isinstance(n, ast.Call) for n in walk(left)
        ):
            return None
        within = isinstance(node.ops[0], ast.In)
        tests: list[ast.expr] = []
        for item in right.elts:
            op: ast.cmpop = ast.Eq() if within else ast.NotEq()
            test = ast.Compare(copied(left), [op], [self._without_call(item) if _is_dtype(left) else item])
            tests.append(at(node, test))
        return tests[0] if len(tests) == 1 else at(node, ast.BoolOp(ast.Or() if within else ast.And(), tests))

    def _without_call(self, node: ast.expr) -> ast.expr:
        """Return what ``np.dtype`` is called with, for a dtype."""
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "dtype"
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id not in self.bound
            and self._value(node.func.value.id) is np
            and len(node.args) == 1
        ):
            return node.args[0]
        return node

    def _value(self, name: str) -> Any:
        try:
            return self.source.outer(name)
        except KeyError:
            return None
