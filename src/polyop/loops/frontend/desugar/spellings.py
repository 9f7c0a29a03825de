"""Replace ``np.exp`` by the word ``exp``, and comparisons by those of the core.

np.exp(x[i])                     exp(x[i])
z.real, z.conj(), x[i].sum()     real(z), conj(z), sum(x[i])
np.isclose(a, b, atol=1e-3)      isclose(a, b, 1e-05, 1e-3, False)
divmod(a, b)                     (a // b, a % b)
float("inf")                     inf, as a number
np.finfo(x.dtype).max            finfo(x.dtype, "max")
x[i, ...]                        x[i]
np.float32 == x.dtype            x.dtype == np.float32
x.dtype in (float32, float64)    x.dtype == float32 or x.dtype == float64
x[i] in (1, n)                   (x[i] == 1) | (x[i] == n)
"""

from __future__ import annotations

import ast
import contextlib
import math
from functools import reduce
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from ....core.dtypes import dtype
from ....core.errors import PolyopError
from ..language import SPELLINGS, WORDS, Word, is_word
from ..source import Source
from ..syntax_tree import copied, path_of_names, walk
from .makers import MAKERS, declaration
from .nodes import at, call, load

OF_MATH = {"remainder": ""} | {name: f"math.{name}" for name in ("isclose", "floor", "ceil", "trunc")}
"""Names in ``math`` that mean something else in NumPy, by word; "" if no word means it."""
_WITHOUT = ("conj", "conjugate", "sum", "prod", "mean", "max", "min", "any", "all")
METHODS = dict.fromkeys((*_WITHOUT, "round"), 0) | {"dot": 1, "clip": 2}
"""How many inputs a method has that is a word, or another name of one."""


def is_module_of_words(module: Any) -> bool:
    """Whether names of a module mean words: NumPy, ``math``, and Numba, whose loops are ``prange``."""
    return module is np or module is math or (isinstance(module, ModuleType) and module.__name__ == "numba")


def word_of(module: Any, name: str) -> str | None:
    """Return the word that ``module.name`` means, or None."""
    if not is_module_of_words(module) or not hasattr(module, name):
        return None
    if module is not np and module is not math:
        return name if name == "prange" else None
    word = OF_MATH.get(name) if module is math and name in OF_MATH else SPELLINGS.get(name, name)
    kinds = ("math", "composed", "complex", "cast", "reduction", "limit")
    return word if word in WORDS and WORDS[word].kind in kinds else None


OF_AXIS = ("max", "min", "amax", "amin")


def _is_rest(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...


def _by_position(node: ast.Call, word: Word) -> None:
    """Give a call the inputs of a word by position, and its defaults; leave one that does not fit."""
    first = len(word.parameters) - len(word.defaults)
    names, given = word.parameters, dict(zip(word.parameters, node.args, strict=False))
    named = {item.arg: item.value for item in node.keywords if item.arg is not None}
    if len(node.args) > len(names) or set(named) & set(given) or not set(named) <= set(names):
        return
    if len(named) != len(node.keywords):
        return  # with **
    defaults: dict[str, ast.expr] = {
        name: ast.copy_location(ast.Constant(value), node)
        for name, value in zip(word.parameters[first:], word.defaults, strict=True)
    }
    inputs = {**defaults, **given, **named}
    if all(name in inputs for name in word.parameters):
        node.args, node.keywords = [inputs[name] for name in word.parameters], []


def _number_in(node: ast.expr) -> ast.expr:
    """Return the number that a string holds, as in ``float("-inf")``; another expression as it is."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        with contextlib.suppress(ValueError):
            value = int(node.value) if node.value.strip("+-").isdecimal() else float(node.value)
            return ast.copy_location(ast.Constant(value), node)
    return node


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
        if isinstance(function, ast.Attribute) and self._is_number(function.value):
            word, inputs = SPELLINGS.get(function.attr, function.attr), METHODS.get(function.attr)
            if inputs == len(node.args) and not node.keywords and word not in self.bound:
                return at(node, call(word, function.value, *node.args))
        elif isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
            name = word_of(self._value(function.value.id), function.attr)
            of_axis = function.attr in OF_AXIS and len(node.args) != 1  # np.max(x, axis)
            if name is not None and name not in self.bound and not of_axis:
                node.func = ast.copy_location(ast.Name(name, ast.Load()), function)
        return self._of_word(node)

    def _of_word(self, node: ast.Call) -> ast.expr:
        """Return a call of a word with inputs by position; a call of another function stays as it is."""
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if (
            name in self.bound
            or isinstance(self._value(name), FunctionType)
            or hasattr(node.func, "function")
        ):
            return node
        if name == "divmod" and len(node.args) == 2 and not node.keywords:
            a, b = node.args
            whole = ast.BinOp(copied(a), ast.FloorDiv(), copied(b))
            return at(node, ast.Tuple([whole, ast.BinOp(a, ast.Mod(), b)], ast.Load()))
        word = WORDS.get(name)
        if word is None:
            return node
        if word.parameters and (node.keywords or word.defaults):
            _by_position(node, word)
        if word.kind == "cast" and len(node.args) == 1:
            node.args = [_number_in(node.args[0])]
        if word.kind == "limit" and len(node.args) == 1:
            node.args = [self._dtype(node.args[0])]
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        if len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            node.value = self._made(node.value)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        self.generic_visit(node)
        if node.value is not None and isinstance(node.target, ast.Name):
            node.value = self._made(node.value)
        return node

    def _made(self, node: ast.expr) -> ast.expr:
        """Return the declaration of a tensor for a call of a function of NumPy that makes an array."""
        if not isinstance(node, ast.Call):
            return node
        function = node.func
        path = path_of_names(function)
        owner, _, name = path.rpartition(".")
        if name == "copy" and owner in self.bound and not node.args and not node.keywords:  # x.copy()
            return declaration("copy", at(node, call("copy", load(owner)))) or node
        if name not in MAKERS or path.partition(".")[0] in self.bound:
            return node
        if self._value(path) is not getattr(np, name):
            return node
        new = declaration(name, node)
        if new is None:
            return node
        new.args[1] = self._dtype(new.args[1])
        return new

    def _dtype(self, node: ast.expr) -> ast.expr:
        """Return the name of a dtype from outside the function, as a string; another expression as it is."""
        node = self._without_call(node)
        path = path_of_names(node)
        if not path or path in WORDS or path.partition(".")[0] in self.bound:
            return node
        with contextlib.suppress(PolyopError):
            return ast.copy_location(ast.Constant(dtype(self._value(path)).name), node)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        index = node.slice
        if isinstance(index, ast.Tuple) and len(index.elts) > 1 and _is_rest(index.elts[-1]):
            (*kept,) = index.elts[:-1]
            node.slice = kept[0] if len(kept) == 1 else ast.copy_location(ast.Tuple(kept, ast.Load()), index)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        inner = node.value
        if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name) and len(inner.args) == 1:
            name = inner.func.id
            if name in WORDS and WORDS[name].kind == "limit" and name not in self.bound:
                inner.args = [inner.args[0], ast.copy_location(ast.Constant(node.attr), node)]
                return inner
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
        """Return ``a == x or a == y`` for ``a in (x, y)``; with ``|`` where y may fail.

        Python computes y also where a is x, so an index outside is an error there too.
        None where ``a`` calls a helper that is not inlined yet: what it writes must happen once.
        """
        if not isinstance(right, (ast.Tuple, ast.List, ast.Set)) or not right.elts:
            return None
        parts = [*walk(left), *(one for item in right.elts for one in walk(item))]
        if any(isinstance(one, ast.Starred) for one in parts) or not all(map(self._is_pure, walk(left))):
            return None
        within = isinstance(node.ops[0], ast.In)
        tests: list[ast.expr] = []
        for item in right.elts:
            op: ast.cmpop = ast.Eq() if within else ast.NotEq()
            test = ast.Compare(copied(left), [op], [self._without_call(item) if _is_dtype(left) else item])
            tests.append(at(node, test))
        others = [one for item in right.elts[1:] for one in walk(item)]
        simple = not any(isinstance(one, ast.Call) for one in walk(left)) and not any(
            isinstance(one, (ast.Call, ast.Subscript)) for one in others
        )
        if simple or _is_dtype(left):  # what cannot fail may be left out
            word = ast.Or() if within else ast.And()
            return tests[0] if len(tests) == 1 else at(node, ast.BoolOp(word, tests))
        both = ast.BitOr() if within else ast.BitAnd()
        return reduce(lambda one, other: at(node, ast.BinOp(one, both, other)), tests)

    def _is_pure(self, node: ast.AST) -> bool:
        """Whether a node calls nothing but a word: a word may be computed twice."""
        if not isinstance(node, ast.Call):
            return True
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        is_helper = hasattr(node.func, "function") or isinstance(self._value(name), FunctionType)
        return name in WORDS and name not in self.bound and (is_word(name) or not is_helper)

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
