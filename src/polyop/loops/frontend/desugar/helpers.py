"""Inline the functions that a kernel calls.

A call is replaced by the helper's statements, with names of their own, and by its results:

    def clamp(v, high):             v, high = x[i], 255
        if v > high:                if v > high:
            return high                 result = high
        return v                    else:
                                        result = v
    y[i] = clamp(x[i], 255)         y[i] = result

A helper that is one ``return`` becomes an expression, where its arguments are names and numbers. What an
expression has computed before it calls a helper that writes into tensors is kept in variables, as in Python:
``y[0] + push(y, v)`` adds what was in y before.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import FunctionType, ModuleType
from typing import Any, NoReturn

import numpy as np

from ....core.errors import ArgumentTypeError, ArgumentValueError, UnsupportedError
from ..access import count
from ..language import WORDS, is_word
from ..records import has_record, is_record, may_be_record, record_of_item, records_of, with_attributes
from ..source import Source
from ..syntax_tree import copied, path_of_names, walk
from .constant_arrays import Tables
from .decide import Decide
from .exits import Exits, leaves_all
from .nodes import (
    Place,
    Undefined,
    Unused,
    assign,
    assigned_names,
    at,
    load,
    places,
    places_of_target,
    substituted,
)
from .spellings import Spellings


@dataclass
class Helpers:
    """Inlines into one function.

    ``names`` are those of the function; ``lines`` gets the lines of helpers in the same file. ``decide``
    removes the branches that are not chosen, ``tables`` holds the arrays of modules. ``open`` are the helpers
    that are being inlined.
    """

    source: Source
    names: Unused
    lines: dict[int, str]
    decide: Decide
    tables: Tables
    open: tuple[Source, ...] = ()
    before: list[ast.stmt] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._bound = assigned_names(self.source.tree.body) | {*self.source.parameters}
        self._bound |= {record.name for record in self.source.records}

    def body(self, nodes: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Return a body without calls of helpers."""
        return [one for node in nodes for one in self.statement(node)]

    def statement(self, node: ast.stmt) -> list[ast.stmt]:
        """Return the statement, after those of the helpers that its expressions call."""
        outside, self.before = self.before, []
        if isinstance(node, ast.Expr) and (found := self.helper(node.value)) is not None:
            assert isinstance(node.value, ast.Call)
            self._in_order(places(node.value))
            self.inline(node.value, found)
            lowered = self.before
        elif isinstance(node, ast.While):
            lowered = self._while(node)
        elif isinstance(node, ast.AugAssign):
            lowered = self._update(node)
        else:
            self._in_order(places(node))
            lowered = [*self.before, node]
            for name in ("body", "orelse"):
                if isinstance(inner := getattr(node, name, None), list):
                    setattr(node, name, self.body(inner))
        self.before = outside
        return lowered

    def _update(self, node: ast.AugAssign) -> list[ast.stmt]:
        """Return ``target op= value``; the target is read before helpers in the value write into it."""
        index = places_of_target(node.target)
        self._in_order(index)
        before, self.before = self.before, []
        node.value = self.expression(node.value)
        value, self.before = self.before, before
        if not isinstance(node.target, ast.Subscript) or not _stores(value):
            return [*before, *value, node]
        for place in index:
            place.put(self._kept(place.get()))
        old = self.names.new("old")
        read = ast.Subscript(copied(node.target.value), copied(node.target.slice), ast.Load())
        updated = at(node, ast.Assign([node.target], ast.BinOp(load(old), node.op, node.value)))
        return [*before, assign(old, at(node, read), node), *value, updated]

    def _in_order(self, parts: Sequence[Place]) -> None:
        """Take the helpers out of the parts of an expression, which are computed one after the other."""
        for k, part in enumerate(parts):
            before, self.before = self.before, []
            part.put(self.expression(part.get()))
            later, self.before = self.before, before
            for earlier in parts[:k] if _stores(later) else ():
                earlier.put(self._kept(earlier.get()))
            self.before += later

    def _kept(self, node: ast.expr) -> ast.expr:
        """Return what has the value of an expression also after tensors have been written."""
        if isinstance(node, (ast.Tuple, ast.List, ast.Slice)):
            for place in places(node):
                place.put(self._kept(place.get()))
            return node
        if _is_plain(node):
            return node
        name = self.names.new("kept")
        self.before.append(assign(name, node, node))
        return at(node, load(name))

    def _while(self, node: ast.While) -> list[ast.stmt]:
        """Return a while; if its condition calls helpers, they run at the start of each iteration."""
        node.test = self.expression(node.test)
        body = self.body(node.body)
        if self.before:
            leave = at(node, ast.If(ast.UnaryOp(ast.Not(), node.test), [ast.Break()], []))
            body = [*self.before, leave, *body]
            ast.copy_location(leave.body[0], node)
            node.test = ast.copy_location(ast.Constant(True), node)
        node.body = body
        return [node]

    def expression(self, node: ast.expr) -> ast.expr:
        """Return the expression without calls of helpers; ``before`` gets the statements of these."""
        match node:
            case ast.IfExp():
                return self._choice(node)
            case ast.BoolOp(values=[first, *_]) if any(map(self._calls, node.values[1:])):
                return self._logic(node, first)
            case ast.Compare() if any(map(self._calls, node.comparators[1:])):
                return self._chain(node)
        self._in_order(places(node))
        found = self.helper(node)
        if found is None:
            return node
        assert isinstance(node, ast.Call)
        result = self.inline(node, found)
        if result is None:
            self._fail(node, f"the helper {found.name} returns nothing", "call it in a line of its own")
        return result

    def _chain(self, node: ast.Compare) -> ast.expr:
        """Return ``a < b and b < c`` for ``a < b < c``, where c is computed only if it is needed."""
        self._in_order([Place(node, "left"), Place(node.comparators, 0)])
        middle = self.names.new("middle")
        first = ast.Compare(node.left, node.ops[:1], [load(middle)])
        rest = ast.Compare(load(middle), node.ops[1:], node.comparators[1:])
        self.before.append(assign(middle, node.comparators[0], node))
        return self.expression(at(node, ast.BoolOp(ast.And(), [first, rest])))

    def _calls(self, node: ast.expr) -> bool:
        return any(isinstance(n, ast.Call) and self.helper(n) is not None for n in walk(node))

    def _choice(self, node: ast.IfExp) -> ast.expr:
        """Return ``a if c else b``; helpers that need statements run only in their branch."""
        node.test = self.expression(node.test)
        branches: list[list[ast.stmt]] = []
        for name in ("body", "orelse"):
            outside, self.before = self.before, []
            setattr(node, name, self.expression(getattr(node, name)))
            branches.append(self.before)
            self.before = outside
        if not any(branches):
            return node
        result = self.names.new("chosen")
        then, otherwise = (
            [*statements, assign(result, value, node)]
            for statements, value in zip(branches, (node.body, node.orelse), strict=True)
        )
        self.before.append(at(node, ast.If(node.test, then, otherwise)))
        return at(node, load(result))

    def _logic(self, node: ast.BoolOp, first: ast.expr) -> ast.expr:
        """Return ``a and b``, where b is computed only if it is needed."""
        others = node.values[1:]
        rest = others[0] if len(others) == 1 else at(node, ast.BoolOp(node.op, others))
        name = self.names.new("first")
        self.before.append(assign(name, self.expression(first), node))
        both = isinstance(node.op, ast.And)
        parts = (rest, load(name)) if both else (load(name), rest)
        return self._choice(at(node, ast.IfExp(load(name), *parts)))

    def helper(self, node: ast.expr) -> Source | None:
        """Return the source of the Python function that a call calls, or None."""
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            return None
        function = getattr(node.func, "function", None) or self._function(node.func.id)
        return None if function is None else self.source.helper(function)

    def _function(self, name: str) -> FunctionType | None:
        if is_word(name) or name in self._bound:
            return None
        try:
            value = self.source.outer(name)
        except KeyError:
            return None
        return value if isinstance(value, FunctionType) else None

    def inline(self, node: ast.Call, helper: Source) -> ast.expr | None:
        """Add the helper's statements to ``before``; return its result, None if it has none."""
        if any(one.function() is helper.function() for one in (self.source, *self.open)):
            hint = "write a loop, with an array that holds what is still to be done"
            self._fail(node, f"{helper.name} calls itself, and recursion is not compiled", hint)
        body = self._own(helper, node)
        values = self._bind(node, helper, body)
        local = {n: load(self.names.new(f"{helper.name}_{n}")) for n in sorted(assigned_names(body))}
        inner = Helpers(self.source, self.names, self.lines, self.decide, self.tables, (*self.open, helper))
        body = self.decide.body(with_attributes(self.source, substituted(body, {**local, **values})))
        if len(body) == 1 and isinstance(body[0], ast.Return) and body[0].value is not None:
            result = inner.expression(body[0].value)
            self.before += inner.before
            return result
        results: list[str] = []
        self.before += inner.body(self._single_exit(helper, body, results, node))
        if not results:
            return None
        names: list[ast.expr] = [at(node, load(name)) for name in results]
        return names[0] if len(names) == 1 else at(node, ast.Tuple(names, ast.Load()))

    def _own(self, helper: Source, node: ast.Call) -> list[ast.stmt]:
        """Return a copy of the helper's statements; what it reads from outside has become numbers."""
        body = [copied(one) for one in helper.tree.body]
        if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
            body = body[1:]  # the docstring
        bound = assigned_names(body) | set(helper.parameters)
        body = [Spellings(helper, bound).visit(one) for one in body]
        body = [_Outside(helper, bound, self.tables).visit(one) for one in body]
        if helper.file == self.source.file:
            self.lines.update(helper.lines)
        else:
            for inner in (n for one in body for n in walk(one) if hasattr(n, "lineno")):
                ast.copy_location(inner, node)
        return body

    def _bind(self, node: ast.Call, helper: Source, body: list[ast.stmt]) -> dict[str, ast.expr]:
        """Return the expression of each parameter; ``before`` gets those that are computed once."""
        given = dict(zip(helper.parameters, node.args, strict=False))
        if len(node.args) > len(helper.parameters):
            rule = f"the helper {helper.name} takes {count(helper.parameters, 'argument')}"
            self._fail(node, rule, seen=len(node.args))
        for item in node.keywords:
            if item.arg not in helper.parameters:
                rule = f"the helper {helper.name} has no parameter {item.arg or '**'}"
                self._fail(node, rule, f"its parameters are {', '.join(helper.parameters) or 'none'}")
            if item.arg in given:
                self._fail(node, f"the helper {helper.name} gets {item.arg} twice")
            given[item.arg] = item.value
        for name, value in helper.defaults.items():
            given.setdefault(name, ast.copy_location(_constant(value, helper, name), node))
        missing = [name for name in helper.parameters if name not in given]
        if missing:
            self._fail(node, f"the helper {helper.name} needs {', '.join(missing)}")
        changed = assigned_names(body)
        records = {record.name: record.cls for record in records_of(helper.function())}
        values: dict[str, ast.expr] = {}
        for name, argument in given.items():
            value = self._record(argument)
            if name in records and not may_be_record(value):
                rule = f"{name} of the helper {helper.name} must be a {records[name].__name__}"
                hint = "pass a record that is a parameter of the kernel, a part of one, or one of the module"
                self._fail(node, rule, hint, ast.unparse(argument))
            plain = name not in changed and _is_plain(value)
            values[name] = value if plain else self._variable(value, f"{helper.name}_{name}", name in changed)
        return values

    def _variable(self, value: ast.expr, name: str, whole: bool) -> ast.expr:
        """Return a variable with the value of an argument; of a tuple a tuple of such, unless ``whole``."""
        if isinstance(value, ast.Tuple) and not whole:
            items = [one if _is_plain(one) else self._variable(one, name, False) for one in value.elts]
            return ast.copy_location(ast.Tuple(items, ast.Load()), value)
        unique = self.names.new(name)
        self.before.append(assign(unique, value, value))
        return at(value, load(unique))

    def _record(self, node: ast.expr) -> ast.expr:
        """Return a record of the kernel's module, which an argument names, as a constant; also in a tuple."""
        if isinstance(node, ast.Tuple):
            return ast.copy_location(ast.Tuple([self._record(one) for one in node.elts], node.ctx), node)
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            items = self._record(node.value)
            return node if items is node.value else record_of_item(ast.Subscript(items, node.slice, node.ctx))
        path = path_of_names(node)
        root = path.partition(".")[0]
        if not path or root in self.names.made or root in self._bound or root in WORDS:
            return node
        try:
            value = self.source.outer(path)
        except KeyError:
            return node
        return ast.copy_location(_constant(value, self.source, node), node) if has_record(value) else node

    def _single_exit(
        self, helper: Source, body: list[ast.stmt], results: list[str], node: ast.Call
    ) -> list[ast.stmt]:
        """Return the body with assignments to ``results`` in place of returns."""
        returns = [n for one in body for n in walk(one) if isinstance(n, ast.Return)]
        widths = {_width(one) for one in returns}
        if len(widths) > 1 or (returns and widths != {0} and not leaves_all(body)):
            rule = "every path through a helper returns the same number of values"
            raise helper.error(ArgumentValueError, rule, returns[-1], hint="end with a return")
        width = max(widths, default=0)
        results += [self.names.new(f"{helper.name}_result") for _ in range(width)]

        def assigned(one: ast.Return) -> list[ast.stmt]:
            if one.value is None or not results:
                return []
            many = isinstance(one.value, ast.Tuple) and len(results) > 1
            values = one.value.elts if many and isinstance(one.value, ast.Tuple) else [one.value]
            return [assign(name, value, one) for name, value in zip(results, values, strict=True)]

        if not returns or (len(returns) == 1 and returns[0] is body[-1]):
            return [new for one in body for new in (assigned(one) if isinstance(one, ast.Return) else [one])]
        exits = Exits(helper, self.names, assigned)
        lowered = exits.function(body)
        start = results if exits.flag in exits.tested else []  # a loop may leave before or after they are set
        return [*(assign(name, Undefined(0), node) for name in start), *lowered]

    def _fail(self, node: ast.AST, rule: str, hint: str | None = None, seen: object = None) -> NoReturn:
        raise self.source.error(UnsupportedError, rule, node, seen, hint)


class _Outside(ast.NodeTransformer):
    """Replaces what a helper reads from its module by numbers, and marks the functions that it calls."""

    def __init__(self, source: Source, bound: set[str], tables: Tables) -> None:
        self.source = source
        self.bound = bound
        self.tables = tables

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self.bound or is_word(node.id):
            return node
        try:
            value = self.source.outer(node.id)
        except KeyError:
            if node.id in WORDS:
                return node
            rule = f"there is no variable {node.id}"
            raise self.source.error(ArgumentValueError, rule, node) from None
        if isinstance(value, FunctionType):
            node.function = value  # type: ignore[attr-defined]
            return node
        if node.id in WORDS and isinstance(value, ModuleType):
            return node  # the module random of Python has the name of a word
        table = self.tables.use(value, node, self.source)
        if table is not None:
            return table
        return ast.copy_location(_constant(value, self.source, node), node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        path = path_of_names(node)
        root = path.partition(".")[0]
        if not path or root in self.bound or root in WORDS:
            return self.generic_visit(node)  # type: ignore[return-value]
        try:
            owner, value = self.source.outer(path.rpartition(".")[0]), self.source.outer(path)
        except KeyError:
            return self.generic_visit(node)  # type: ignore[return-value]
        if isinstance(owner, ModuleType) and not isinstance(value, (type, ModuleType)):
            return ast.copy_location(_constant(value, self.source, node), node)
        return self.generic_visit(node)  # type: ignore[return-value]


def _constant(value: Any, source: Source, place: ast.AST | str) -> ast.expr:
    """Return a number, or a tuple of numbers, as a literal."""
    if isinstance(value, (bool, int, float, np.generic)):
        return ast.Constant(value)  # type: ignore[arg-type]  # also a NumPy scalar, which has a dtype
    if isinstance(place, str) and (value is None or isinstance(value, str)):
        return ast.Constant(value)  # a default, with which the helper compares
    if is_record(value):
        return ast.Constant(value)  # its fields are read, or it goes on to another helper
    if isinstance(value, tuple):
        return ast.Tuple([_constant(one, source, place) for one in value], ast.Load())
    node = None if isinstance(place, str) else place
    rule = "only numbers can be read from outside the function"
    shown = place if isinstance(place, str) else ast.unparse(place)
    raise source.error(ArgumentTypeError, rule, node, f"{shown} is of type {type(value).__name__}")


def _stores(nodes: Sequence[ast.stmt]) -> bool:
    """Whether statements write into a tensor."""
    return any(
        isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store) for one in nodes for n in walk(one)
    )


def _is_plain(value: ast.expr) -> bool:
    """Whether an argument is a name, a number or a size, which may stand wherever the parameter is read."""
    match value:
        case ast.Name() | ast.Constant():
            return True
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant()):
            return True
        case ast.Attribute():
            return bool(path_of_names(value))
        case ast.Subscript(value=ast.Attribute(attr="shape"), slice=ast.Constant()):
            return True
        case ast.Tuple(elts=items):
            return all(map(_is_plain, items))
    return False


def _width(node: ast.Return) -> int:
    if node.value is None:
        return 0
    return len(node.value.elts) if isinstance(node.value, ast.Tuple) else 1
