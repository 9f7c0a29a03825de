"""Replace ``break``, ``continue``, ``while`` and early returns by flags and conditions.

    for i in range(n):              stop = False
        if x[i] < 0:                for i in range(n):
            break                       if not stop:
        total += x[i]                       if x[i] < 0:
                                                stop = True
                                            else:
                                                total += x[i]

The loop ends where its flag is set: see ``ir/stops.py``. So all later passes see conditions only, as if the
loop ran on without effect. A ``while`` is such a loop, and has no bound: its ``hi`` is an ``OpenEnd``.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ....core.errors import ArgumentValueError, UnsupportedError
from ..source import Source
from ..syntax_tree import walk
from .nodes import WHILE, Guard, Unused, assign, at, call, load, negated, target

Results = Callable[[ast.Return], list[ast.stmt]]


@dataclass
class _Loop:
    """The flags of a loop that are needed so far: "stop" ends it, "skip" ends its iteration."""

    names: Unused
    flags: dict[str, str] = field(default_factory=dict)

    def flag(self, kind: str) -> str:
        """Return the flag of a kind."""
        if kind not in self.flags:
            self.flags[kind] = self.names.new(kind)
        return self.flags[kind]


class Exits:
    """Rewrites one function. ``returned`` gives the statements that a return becomes, without its flag."""

    def __init__(self, source: Source, names: Unused, returned: Results) -> None:
        self.source = source
        self.names = names
        self.results = returned
        self.flag = names.new("returned")
        self.tested: set[str] = set()

    def function(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Return the body without exits."""
        lowered, flags = self.block(body, [])
        if self.flag in self.tested:
            lowered = [assign(self.flag, ast.Constant(False), body[0]), *lowered]
        return _without(lowered, {self.flag} if flags else set(), self.tested)

    def block(self, body: Sequence[ast.stmt], loops: list[_Loop]) -> tuple[list[ast.stmt], set[str]]:
        """Return the statements of a body, and the flags that they may set."""
        result: list[ast.stmt] = []
        flags: set[str] = set()
        for k, node in enumerate(body):
            lowered, own = self.statement(node, loops)
            result += lowered
            flags |= own
            rest = body[k + 1 :]
            if not own or not rest:
                continue
            if leaves(node) and not isinstance(node, ast.While):
                rule = "a line after a break, continue or return never runs"
                raise self.source.error(ArgumentValueError, rule, rest[0], hint="remove it")
            after, more = self.block(rest, loops)
            self._guard(result, node, own, after)
            return result, flags | more
        return result, flags

    def _guard(self, result: list[ast.stmt], node: ast.stmt, flags: set[str], after: list[ast.stmt]) -> None:
        """Add what runs after a statement only if the statement did not leave."""
        last = result[-1]
        if isinstance(node, ast.If) and isinstance(last, ast.If):
            for branch, other in (("body", "orelse"), ("orelse", "body")):
                if leaves_all(getattr(node, branch)) and not exits(getattr(node, other)):
                    getattr(last, other).extend(after)
                    result[-1] = _guard_of(last, other)
                    return
        self.tested |= flags
        result.append(at(node, Guard(_none_of(flags), after, [])))

    def statement(self, node: ast.stmt, loops: list[_Loop]) -> tuple[list[ast.stmt], set[str]]:
        """Return what a statement becomes, and the flags that it may set."""
        match node:
            case ast.Break() | ast.Continue():
                flag = loops[-1].flag("stop" if isinstance(node, ast.Break) else "skip")
                return [assign(flag, ast.Constant(True), node)], {flag}
            case ast.Return():
                return [*self.results(node), assign(self.flag, ast.Constant(True), node)], {self.flag}
            case ast.If():
                then, one = self.block(node.body, loops)
                otherwise, other = self.block(node.orelse, loops)
                return [at(node, ast.If(node.test, then, otherwise))], one | other
            case ast.With():
                body, flags = self.block(node.body, loops)
                return [at(node, ast.With(node.items, body))], flags
            case ast.For() | ast.While():
                return self.loop(node, loops)
        return [node], set()

    def loop(self, node: ast.For | ast.While, loops: list[_Loop]) -> tuple[list[ast.stmt], set[str]]:
        """Return a loop whose body is guarded by its flags, after the statement that clears them."""
        if isinstance(node, ast.While) and node.orelse:
            rule = "else after a while is not compiled"
            raise self.source.error(UnsupportedError, rule, node.orelse[0], hint="set a flag, and test it")
        if isinstance(node, ast.While) and _is_true(node.test) and not leaves_loop(node.body):
            rule = f"while {ast.unparse(node.test)} without break or return never ends"
            raise self.source.error(ArgumentValueError, rule, node, hint="write a condition, or a break")
        loop = _Loop(self.names)
        body, flags = self.block(node.body, [*loops, loop])
        skip = set(loop.flags.values()) & {loop.flags.get("skip")}
        if skip & self.tested:
            body = [assign(loop.flag("skip"), ast.Constant(False), node), *body]
        if isinstance(node, ast.While):
            body = self._tested(node, loop.flag("stop"), body)
        ends = flags & {self.flag} | ({loop.flags["stop"]} if "stop" in loop.flags else set())
        if ends:
            self.tested |= ends
            body = [at(node, Guard(_none_of(ends), body, []))]
        body = _without(body, skip, self.tested)
        start = [assign(loop.flags["stop"], ast.Constant(False), node)] if "stop" in loop.flags else []
        if isinstance(node, ast.While):
            head: ast.stmt = ast.For(target(self.names.new("step")), call(WHILE), body, [])
        else:
            head = ast.For(node.target, node.iter, body, node.orelse)
        return [*start, at(node, head)], flags & {self.flag}

    def _tested(self, node: ast.While, stop: str, body: list[ast.stmt]) -> list[ast.stmt]:
        """Return the body of a while after its condition."""
        if _is_true(node.test):
            return body
        return [assign(stop, negated(node.test), node), at(node, Guard(negated(load(stop)), body, []))]


def _none_of(flags: set[str]) -> ast.expr:
    tests: list[ast.expr] = [negated(load(flag)) for flag in sorted(flags)]
    return tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)


def _guard_of(node: ast.If, live: str) -> Guard:
    guard = ast.copy_location(Guard(node.test, node.body, node.orelse), node)
    guard.live = live
    return guard


def exits(body: Sequence[ast.stmt]) -> bool:
    """Whether a body may leave the iteration, the loop or the function that it is in."""
    for node in body:
        match node:
            case ast.Break() | ast.Continue() | ast.Return():
                return True
            case ast.For() | ast.While():
                if any(isinstance(inner, ast.Return) for inner in walk(node)):
                    return True
            case _:
                if exits([*getattr(node, "body", ()), *getattr(node, "orelse", ())]):
                    return True
    return False


def _is_true(test: ast.expr) -> bool:
    return isinstance(test, ast.Constant) and bool(test.value)


def leaves_loop(body: Sequence[ast.stmt]) -> bool:
    """Whether a body may end the loop that it belongs to."""
    for node in body:
        inner = [*getattr(node, "body", ()), *getattr(node, "orelse", ())]
        match node:
            case ast.Break() | ast.Return():
                return True
            case ast.For() | ast.While():
                if any(isinstance(one, ast.Return) for one in walk(node)):
                    return True
            case _:
                if leaves_loop(inner):
                    return True
    return False


def _breaks(body: Sequence[ast.stmt]) -> bool:
    """Whether a body may break out of the loop that it belongs to."""
    for node in body:
        if isinstance(node, ast.Break):
            return True
        inner = [*getattr(node, "body", ()), *getattr(node, "orelse", ())]
        if not isinstance(node, (ast.For, ast.While)) and _breaks(inner):
            return True
    return False


def leaves(node: ast.stmt) -> bool:
    """Whether nothing runs after a statement."""
    if isinstance(node, ast.If):
        return bool(node.orelse) and leaves_all(node.body) and leaves_all(node.orelse)
    if isinstance(node, ast.While):
        return _is_true(node.test) and not _breaks(node.body)  # a return ends it, or nothing
    return isinstance(node, (ast.Break, ast.Continue, ast.Return))


def leaves_all(body: Sequence[ast.stmt]) -> bool:
    """Whether nothing runs after a body."""
    return bool(body) and leaves(body[-1])


def _without(body: list[ast.stmt], flags: set[str], tested: set[str]) -> list[ast.stmt]:
    """Return a body without assignments to flags that nothing tests."""
    dead = flags - tested
    result: list[ast.stmt] = []
    for node in body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)]) if name in dead:
                continue
            case ast.If():
                node.body = _without(node.body, flags, tested) or [at(node, ast.Pass())]
                node.orelse = _without(node.orelse, flags, tested)
            case ast.For() | ast.With():
                node.body = _without(node.body, flags, tested) or [at(node, ast.Pass())]
        result.append(node)
    return result
