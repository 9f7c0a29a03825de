"""Replace loops over ``zip``, ``enumerate``, ``reversed``, a tensor or a tuple by loops over ``range``.

Each of these is a count, and an item for each number below it:

    for i, v in enumerate(x):       for i in range(x.shape[0]):
        y[i] = v                        v = x[i]
                                        y[i] = v
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ....core.errors import ArgumentTypeError, ArgumentValueError, UnsupportedError
from ..language import LOOPS
from ..source import Source
from ..syntax_tree import copied, walk
from .nodes import WHILE, Unused, assign, assigned_names, at, call, load, substituted, target


@dataclass(frozen=True)
class _Items:
    """``count`` items: ``item(k)`` is an expression of one, or a tuple for ``zip`` and ``enumerate``."""

    count: ast.expr
    item: Callable[[ast.expr], ast.expr]


class Iterators:
    """Rewrites the loops of one function; ``bound`` are the names that it binds."""

    def __init__(self, source: Source, names: Unused, bound: set[str]) -> None:
        self.source = source
        self.names = names
        self.bound = bound

    def loop(self, node: ast.For) -> list[ast.stmt]:
        """Return what a for statement becomes; one over ``range`` or another word of loops is kept."""
        word = _word(node.iter)
        if node.orelse or word in (*LOOPS, WHILE):
            return [node]
        self._check_reversed(node.iter)
        literal = self._literal(node.iter)
        if literal is not None:
            return [copied for item in literal for copied in self._copy(node, item)]
        before: list[ast.stmt] = []
        items = self.items(node.iter, node, before)
        if items is None:
            return [node]
        return [*before, self._over_range(node, items)]

    def _over_range(self, node: ast.For, items: _Items) -> ast.stmt:
        """Return one loop over numbers, whose first statements assign the targets."""
        number = self.names.new("k")
        pairs = self._pairs(node.target, items.item(load(number)), node)
        own = [name.id for name, value in pairs if isinstance(name, ast.Name) and _is(value, number)]
        body = [at(node, ast.Assign([name], value)) for name, value in pairs if not _is(value, number)]
        if own:
            body += [assign(name, load(own[0]), node) for name in own[1:]]
            body = substituted(body, {number: load(own[0])})
        head = target(own[0] if own else number)
        return at(node, ast.For(head, call("range", items.count), [*body, *node.body], []))

    def _pairs(self, names: ast.expr, value: ast.expr, node: ast.For) -> list[tuple[ast.expr, ast.expr]]:
        """Return each target with its value."""
        if not isinstance(names, (ast.Tuple, ast.List)):
            if isinstance(value, ast.Tuple):
                rule = "a loop over zip or enumerate has a name for each item"
                hint = f"write for {', '.join('abcdefgh'[: len(value.elts)])} in {ast.unparse(node.iter)}"
                raise self.source.error(ArgumentValueError, rule, node, ast.unparse(names), hint)
            return [(names, value)]
        if not isinstance(value, ast.Tuple) or len(value.elts) != len(names.elts):
            number = len(value.elts) if isinstance(value, ast.Tuple) else 1
            rule = f"{ast.unparse(node.iter)} gives {number} item{'s' * (number != 1)} at a time"
            raise self.source.error(ArgumentValueError, rule, node, f"{len(names.elts)} names")
        pairs = zip(names.elts, value.elts, strict=True)
        return [pair for name, one in pairs for pair in self._pairs(name, one, node)]

    def _check_reversed(self, node: ast.expr) -> None:
        """Raise for what Python cannot reverse: an enumerate and a zip have no last item."""
        for one in (n for n in walk(node) if _word(n) == "reversed" and n.args):  # type: ignore[attr-defined]
            (inner, *_) = one.args  # type: ignore[attr-defined]
            word = _word(inner)
            if word not in ("enumerate", "zip", "reversed"):
                continue
            items = [ast.unparse(item) for item in inner.args]
            first = items[0] if items else "x"
            way = f"write for k in reversed(range(len({first}))), with {first}[k] in the loop"
            if word == "zip" and items:
                way = f"write zip({', '.join(f'reversed({item})' for item in items)}), if both are as long"
            elif word == "reversed":
                way = f"write {first} alone"
            rule = f"reversed takes a range, a tensor or a tuple, as in Python: {word} has no last item"
            raise self.source.error(ArgumentTypeError, rule, one, ast.unparse(one), way)

    def items(self, node: ast.expr, place: ast.For, before: list[ast.stmt]) -> _Items | None:
        """Return the items of what a loop runs over, or None; ``before`` gets what is computed ahead."""
        word = _word(node)
        if word is None:
            return self._tensor(node)
        assert isinstance(node, ast.Call)
        if word in LOOPS and word != "grid" and 1 <= len(node.args) <= 3:
            return self._range(node.args, place, before)
        if word == "enumerate" and 1 <= len(node.args) <= 2:
            return self._enumerate(node, place, before)
        if any(not isinstance(k.value, ast.Constant) or k.value.value for k in node.keywords):
            rule = f"{word} takes only strict=False here: a kernel raises no errors"
            raise self.source.error(
                UnsupportedError, rule, node, ast.unparse(node), "compare the sizes outside"
            )
        parts = [self.items(item, place, before) for item in node.args]
        if word not in ("zip", "reversed") or not parts or any(part is None for part in parts):
            return None
        found = [part for part in parts if part is not None]
        if word == "zip":
            counts = [part.count for part in found]
            count = counts[0] if len(counts) == 1 else call("min", *counts)
            return _Items(count, lambda k: ast.Tuple([part.item(k) for part in found], ast.Load()))
        last = self._fixed(_minus(found[0].count, ast.Constant(1)), place, before)
        return _Items(found[0].count, lambda k: found[0].item(_minus(last, k)))

    def _enumerate(self, node: ast.Call, place: ast.For, before: list[ast.stmt]) -> _Items | None:
        start = node.args[1] if len(node.args) > 1 else None
        start = next((k.value for k in node.keywords if k.arg == "start"), start)
        inner = self.items(node.args[0], place, before)
        if inner is None:
            return None
        first = ast.Constant(0) if start is None else self._fixed(start, place, before)
        return _Items(inner.count, lambda k: ast.Tuple([_plus(first, k), inner.item(k)], ast.Load()))

    def _range(self, ends: Sequence[ast.expr], place: ast.For, before: list[ast.stmt]) -> _Items:
        lo = ast.Constant(0) if len(ends) == 1 else self._fixed(ends[0], place, before)
        hi = self._fixed(ends[min(len(ends) - 1, 1)], place, before)
        step = self._fixed(ends[2], place, before) if len(ends) == 3 else ast.Constant(1)
        if _is_number(step, 1):
            return _Items(_minus(hi, lo), lambda k: _plus(lo, k))
        count = ast.UnaryOp(ast.USub(), ast.BinOp(_minus(lo, hi), ast.FloorDiv(), step))
        count_at_least_none = call("max", count, ast.Constant(0))
        return _Items(count_at_least_none, lambda k: _plus(lo, ast.BinOp(k, ast.Mult(), step)))

    def _tensor(self, node: ast.expr) -> _Items | None:
        """Return the elements of a tensor of one dimension."""
        if not isinstance(node, ast.Name) or node.id not in self.bound:
            return None
        shape = ast.Attribute(load(node.id), "shape", ast.Load())
        count = ast.Subscript(shape, ast.Constant(0), ast.Load())
        return _Items(count, lambda k: ast.Subscript(load(node.id), k, ast.Load()))

    def _fixed(self, value: ast.expr, place: ast.For, before: list[ast.stmt]) -> ast.expr:
        """Return an expression that keeps its value while the loop runs."""
        changing = assigned_names(place.body)
        reads = {n.id for n in walk(value) if isinstance(n, ast.Name)}
        loads = any(isinstance(n, ast.Subscript) and isinstance(n.value, ast.Name) for n in walk(value))
        if not loads and not reads & changing:
            return value
        name = self.names.new("end")
        before.append(assign(name, value, place))
        return load(name)

    def _literal(self, node: ast.expr) -> list[ast.expr] | None:
        """Return the items of a tuple, or of ``enumerate`` of one; None for anything else."""
        if isinstance(node, (ast.Tuple, ast.List)):
            return list(node.elts)
        if isinstance(node, ast.Name) and node.id not in self.bound:
            try:
                value = self.source.outer(node.id)
            except KeyError:
                return None
            return [ast.Constant(one) for one in value] if isinstance(value, (tuple, list)) else None
        if _word(node) not in ("enumerate", "zip", "reversed") or not isinstance(node, ast.Call):
            return None
        parts = [self._literal(item) for item in node.args]
        if any(part is None for part in parts) or not parts:
            return None
        found = [part for part in parts if part is not None]
        if _word(node) == "reversed":
            return found[0][::-1]
        if _word(node) == "enumerate":
            found = [[ast.Constant(k) for k in range(len(found[0]))], found[0]]
        return [ast.Tuple(list(row), ast.Load()) for row in zip(*found, strict=False)]

    def _copy(self, node: ast.For, item: ast.expr) -> list[ast.stmt]:
        """Return a copy of a loop's body for one item; it is a loop of one iteration, to have a scope."""
        values: dict[str, ast.expr] = {}
        body = [copied(one) for one in node.body]
        for name, value in self._pairs(node.target, at(node, copied(item)), node):
            assert isinstance(name, ast.Name)
            if name.id in assigned_names(body):
                rule = f"iter var cannot be overwritten: {name.id}"
                raise self.source.error(ArgumentValueError, rule, node, hint="assign another variable")
            values[name.id] = value
        body = substituted(body, values)
        if not assigned_names(body):
            return body
        once = call("range", ast.Constant(1))
        return [at(node, ast.For(target(self.names.new("k")), once, body, []))]


def _word(node: ast.AST) -> str | None:
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else None


def _is(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _is_number(node: ast.expr, number: int) -> bool:
    return isinstance(node, ast.Constant) and node.value == number


def _plus(left: ast.expr, right: ast.expr) -> ast.expr:
    return right if _is_number(left, 0) else ast.BinOp(left, ast.Add(), right)


def _minus(left: ast.expr, right: ast.expr) -> ast.expr:
    return left if _is_number(right, 0) else ast.BinOp(left, ast.Sub(), right)
