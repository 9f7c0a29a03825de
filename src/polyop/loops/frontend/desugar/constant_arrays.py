"""Tables of numbers that a kernel reads from outside: arrays of its module.

    TAPS = np.array([0.25, 0.5, 0.25])          TAPS = allocate((3,), "float64")
    TAPS.setflags(write=False)                  TAPS[:] = 0.25, 0.5, 0.25
    def f(x): ... TAPS[k] ...                   ... TAPS[k] ...

The numbers are read when the kernel is parsed, so an array that may still change is refused.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....core.errors import ArgumentTypeError, ArgumentValueError
from ..language import DTYPES, is_word
from ..names import root_of
from ..outside import MAX_NUMBERS, is_frozen
from ..source import Source
from ..syntax_tree import walk
from .nodes import Unused, assign, assigned_names, at, call, load


class Numbers(ast.List):
    """The numbers of a table in C order, which are written into a temporary."""


class Tables:
    """The tables of one kernel, its helpers included."""

    def __init__(self, source: Source, names: Unused) -> None:
        self.source, self.names = source, names
        self._found: dict[int, tuple[str, Any, ast.Name]] = {}

    def use(self, value: Any, node: ast.Name, source: Source) -> ast.Name | None:
        """Return the name of the temporary that holds an array that ``source`` reads; None for no array.

        Raises ``ArgumentValueError`` for an array that may change or is too large, and ``ArgumentTypeError``
        for one of another dtype.
        """
        if not isinstance(value, np.ndarray) or value.ndim == 0:
            return None
        if id(value) not in self._found:
            _check(value, node, source)
            self._found[id(value)] = (self.names.new(f"{node.id}_table"), value, node)
        return ast.copy_location(load(self._found[id(value)][0]), node)

    def replaced(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Return the body of the kernel, with temporaries in place of arrays, which its first lines fill."""
        bound = assigned_names(body) | set(self.source.parameters)
        change = _Replace(self, bound)
        body = [change.visit(node) for node in body]
        originals = {name: node for name, _, node in self._found.values()}
        for node in (n for one in body for n in walk(one) if isinstance(n, ast.Subscript)):
            root = root_of(node)
            if isinstance(node.ctx, ast.Store) and root is not None and root.id in originals:
                rule = "an array from outside the function cannot be written"
                hint = "make it a parameter, and return it; or write into a tensor of allocate"
                raise self.source.error(ArgumentValueError, rule, node, originals[root.id].id, hint)
        return [*(one for row in self._found.values() for one in _filled(*row)), *body]


def _check(value: Any, node: ast.Name, source: Source) -> None:
    parameter = f"make {node.id} a parameter"
    if value.dtype.name not in DTYPES:
        rule = f"the dtype of {node.id} must be one of {', '.join(DTYPES)}"
        raise source.error(ArgumentTypeError, rule, node, value.dtype.name)
    if not 0 < value.size <= MAX_NUMBERS:
        rule = f"an array from outside the function has at most {MAX_NUMBERS} numbers, and at least one"
        raise source.error(ArgumentValueError, rule, node, f"{node.id} with {value.size}", parameter)
    if not is_frozen(value):
        rule = f"the array {node.id} from outside the function may change after it was read"
        view = f"{node.id} = {node.id}.copy(), " if value.base is not None else ""
        hint = f"write {view}{node.id}.setflags(write=False) in the module; or {parameter}"
        raise source.error(ArgumentValueError, rule, node, hint=hint)


def _filled(name: str, value: Any, node: ast.AST) -> list[ast.stmt]:
    sizes = ast.Tuple([ast.Constant(size) for size in value.shape], ast.Load())
    numbers = Numbers([ast.Constant(one) for one in value.ravel()], ast.Load())
    whole: list[ast.expr] = [ast.Slice() for _ in value.shape]
    target = ast.Subscript(
        load(name), whole[0] if len(whole) == 1 else ast.Tuple(whole, ast.Load()), ast.Store()
    )
    declared = assign(name, call("allocate", sizes, ast.Constant(value.dtype.name)), node)
    return [declared, at(node, ast.Assign([target], numbers))]


class _Replace(ast.NodeTransformer):
    def __init__(self, tables: Tables, bound: set[str]) -> None:
        self.tables, self.bound = tables, bound

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self.bound or is_word(node.id):
            return node
        try:
            value = self.tables.source.outer(node.id)
        except KeyError:
            return node
        return self.tables.use(value, node, self.tables.source) or node
