"""Simplify an expression: compute the parts that are known, and write slices as ``x[:, 1:]``."""

from __future__ import annotations

import ast
import cmath
import copy
import sys
from collections.abc import Mapping
from typing import Any

_MAX_UNROLLED = 8
"""A comprehension whose elements are no numbers is written out up to this length."""


def shortened(
    tree: ast.expr, functions: Mapping[str, Any], arguments: Mapping[str, Any] | None = None
) -> ast.expr:
    """Return an expression with its known parts computed, which may call ``functions``, by name.

    Arguments that have a text are put in. The others stay names, but their facts decide conditions, and
    ``x.ndim`` is put in: the next batch has other sizes, but not another rank.

    >>> def short(text):
    ...     return ast.unparse(shortened(ast.parse(text, mode="eval").body, {"slice": slice, "tuple": tuple}))
    >>> short("x[(slice(None),) * (1 % 3) + (slice(-1, None, 1),)]")
    'x[:, -1:]'
    >>> short("x.reshape(tuple(x.shape[i] if s == -1 else s for i, s in [(0, 4), (1, -1)]))")
    'x.reshape((4, x.shape[1]))'
    >>> short("ms.ops.arange(8, dtype=getattr(ms, None or 'int64'))")
    'ms.ops.arange(8, dtype=ms.int64)'
    """
    simplify = _Shortened(functions, arguments or {})
    found: ast.expr = simplify.visit(ast.fix_missing_locations(copy.deepcopy(tree)))
    return ast.fix_missing_locations(found)


def value_of(tree: ast.expr, functions: Mapping[str, Any], arguments: Mapping[str, Any]) -> Any:
    """Return the value of an expression that may call ``functions``. Raises what its evaluation raises."""
    code = compile(ast.fix_missing_locations(ast.Expression(tree)), "<corresponding>", "eval")
    scope = {"__builtins__": functions, **arguments}
    return eval(code, scope)  # noqa: S307 - the text is of polyop's own table


def literal(value: Any) -> ast.expr | None:
    """Return the expression of a value, or None if it is no number, text, None, or list of these."""
    if isinstance(value, float) and (value != value or value in (float("inf"), -float("inf"))):  # noqa: PLR0124 - NaN
        return ast.parse(f"float('{value}')", mode="eval").body
    if isinstance(value, complex) and not cmath.isfinite(value):
        return ast.parse(f"complex('{value}')", mode="eval").body
    if value is None or type(value) in (bool, int, float, complex, str):
        return ast.parse(repr(value), mode="eval").body
    if type(value) in (list, tuple):
        parts = [literal(part) for part in value]
        if any(part is None for part in parts):
            return None
        kind = ast.List if isinstance(value, list) else ast.Tuple
        return kind([part for part in parts if part is not None], ast.Load())
    return None


def names(tree: ast.AST) -> set[str]:
    """Return the names that a tree reads, without those that its comprehensions and functions bind."""
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    bound = {node.id for node in found if isinstance(node.ctx, ast.Store)}
    bound |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    return {node.id for node in found} - bound


class _Shortened(ast.NodeTransformer):
    """Simplifies the parts of an expression before the expression."""

    def __init__(self, functions: Mapping[str, Any], arguments: Mapping[str, Any]) -> None:
        self.functions, self.arguments = functions, arguments
        written = {name for name, value in arguments.items() if literal(value) is not None}
        self.written = written | set(functions)
        """The names of which each expression can be put in as a text."""

    def visit(self, node: ast.AST) -> Any:
        node = super().visit(node)
        if isinstance(node, (ast.Constant, ast.Starred)) or not isinstance(node, ast.expr):
            return node
        known, value = self._known(node)
        return (literal(value) if known else None) or node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        """Return ``b`` for ``None or b``, and for ``True and b``."""
        self.generic_visit(node)
        stops = isinstance(node.op, ast.Or)
        while len(node.values) > 1:
            known, value = self._known(node.values[0])
            if not known:
                return node
            if bool(value) == stops:
                return node.values[0]
            node.values.pop(0)
        return node.values[0]

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        """Return the branch that the arguments choose, of which sizes may be read."""
        known, value = self._value(node.test, self.written | set(self.arguments))
        if known:
            branch: ast.expr = self.visit(node.body if value else node.orelse)
            return branch
        self.generic_visit(node)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """Return ``x[:, 0]`` for ``x[(slice(None), 0)]``."""
        self.generic_visit(node)
        known, value = self._known(node.slice)
        parts = [_index(one) for one in value] if known and isinstance(value, tuple) else [None]
        if parts and all(parts):
            one, *more = [part for part in parts if part is not None]
            node.slice = ast.Tuple([one, *more], ast.Load()) if more else one
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Return the tuple for ``tuple([...])``, and ``ms.int32`` for ``getattr(ms, "int32")``."""
        self.generic_visit(node)
        node.args = [one for argument in node.args for one in _spread(argument)]
        if isinstance(node.func, ast.Name) and node.func.id == "getattr" and len(node.args) == 2:
            known, name = self._known(node.args[1])
            if known and isinstance(name, str) and name.isidentifier():
                return ast.Attribute(node.args[0], name, ast.Load())
        is_tuple = isinstance(node.func, ast.Name) and node.func.id == "tuple" and len(node.args) == 1
        if is_tuple and isinstance(node.args[0], ast.List):
            return ast.Tuple(node.args[0].elts, ast.Load())
        return node

    def visit_ListComp(self, node: ast.ListComp) -> ast.expr:
        """Return the list of a comprehension over known values."""
        return self._unrolled(node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.expr:
        """Return the list of a generator over known values."""
        return self._unrolled(node)

    def _unrolled(self, node: ast.ListComp | ast.GeneratorExp) -> ast.expr:
        self.generic_visit(node)
        over = node.generators[0]
        known, value = self._known(over.iter)
        values = list(value) if known else []
        if not known or len(node.generators) > 1 or over.ifs or len(values) > _MAX_UNROLLED:
            return node
        bound = [_bindings(over.target, one) for one in values]
        if any(None in one.values() for one in bound):
            return node
        return ast.List(
            [self.visit(_Substitution(one).visit(copy.deepcopy(node.elt))) for one in bound], ast.Load()
        )

    def _known(self, node: ast.expr) -> tuple[bool, Any]:
        """Return (True, its value) if an expression reads what can be put in; else (False, None)."""
        is_rank = isinstance(node, ast.Attribute) and node.attr == "ndim"
        return self._value(node, self.written | (set(self.arguments) if is_rank else set()))

    def _value(self, node: ast.expr, readable: set[str]) -> tuple[bool, Any]:
        """Return (True, its value) if an expression reads no other names and has one, else (False, None)."""
        if not isinstance(getattr(node, "ctx", ast.Load()), ast.Load) or names(node) - readable:
            return False, None
        try:
            return True, value_of(node, self.functions, self.arguments)
        except Exception:  # noqa: BLE001 - a slice has no value, nor has what the data of a tensor decides
            return False, None


def _spread(argument: ast.expr) -> list[ast.expr]:
    """Return the arguments that ``*[2, 3]`` stands for; else the argument."""
    is_known = isinstance(argument, ast.Starred) and isinstance(argument.value, (ast.List, ast.Tuple))
    return argument.value.elts if is_known else [argument]  # type: ignore[attr-defined]


class _Substitution(ast.NodeTransformer):
    """Puts expressions in the place of names."""

    def __init__(self, values: dict[str, ast.expr | None]) -> None:
        self.values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Return the expression of a name, or the name."""
        return self.values.get(node.id) or node


def _bindings(target: ast.expr, value: Any) -> dict[str, ast.expr | None]:
    """Return the expressions that the names of a loop's target stand for; None where one has no text."""
    if isinstance(target, ast.Tuple):
        pairs = zip(target.elts, value, strict=True)
        return {name: one for part, inner in pairs for name, one in _bindings(part, inner).items()}
    return {target.id if isinstance(target, ast.Name) else "": literal(value)}


def _index(value: Any) -> ast.expr | None:
    """Return the text of one index between brackets, or None if it is no number, slice, None or ``...``."""
    if value is ...:
        return ast.Constant(...)
    if not isinstance(value, slice):
        return literal(value) if value is None or type(value) is int else None
    forwards = value.step is None or value.step > 0
    start = None if forwards and value.start == 0 else value.start
    stop = None if forwards and value.stop == sys.maxsize else value.stop
    step = None if value.step == 1 else value.step
    return ast.Slice(*(None if one is None else literal(one) for one in (start, stop, step)))
