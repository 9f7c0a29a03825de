"""Replace ``np.exp`` and ``math.exp`` by the word ``exp``."""

from __future__ import annotations

import ast
import math
from types import ModuleType
from typing import Any

import numpy as np

from ..language import WORDS
from ..source import Source

OTHER_NAMES = {
    "maximum": "max",
    "minimum": "min",
    "absolute": "abs",
    "fabs": "abs",
    "rint": "round",
    "arctan": "atan",
    "arctan2": "atan2",
}
"""Names of functions in NumPy and ``math`` whose word is another one."""


def word_of(module: Any, name: str) -> str | None:
    """Return the word that ``module.name`` means, or None."""
    if not isinstance(module, ModuleType) or module not in (np, math) or not hasattr(module, name):
        return None
    word = OTHER_NAMES.get(name, name)
    return word if word in WORDS and WORDS[word].kind in ("math", "cast", "reduction") else None


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

    def _value(self, name: str) -> Any:
        try:
            return self.source.outer(name)
        except KeyError:
            return None
