"""The webs of scalars: assignments of one name that no read can tell apart.

    v = x[i]            web 0: an int8, so s wraps around as in Python
    s = v + x[i]
    v = v * 0.5         web 1: a float64
    y[i] = s + v

Two assignments are in one web if they reach a common read. A web has a type of its own. Where the types of a
name's webs differ, each type gets a variable of its own; elsewhere the name stays one variable.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace

from ..ir.grammar import BOOL, Type
from .names import Scopes
from .syntax_tree import walk

State = dict[str, frozenset[ast.Name]]
"""By unique name, the assignments whose value it may have here."""


def split(body: list[ast.stmt], scopes: Scopes) -> Scopes | None:
    """Return the scopes with a name for each web; None where each scalar has one web."""
    webs = _Webs(scopes)
    webs.block(body, {})
    firsts: dict[str, list[ast.Name]] = {}
    for target, unique in webs.targets.items():
        found = firsts.setdefault(unique, [])
        if webs.root(target) not in found:
            found.append(webs.root(target))
    if all(len(found) == 1 for found in firsts.values()):
        return None
    taken, of_root = {*scopes.kinds}, {}
    for unique, found in firsts.items():
        of_root[found[0]] = unique
        for number, root in enumerate(found[1:], 1):
            name = f"{unique}_{number}"
            while name in taken:
                name += "_"
            taken.add(name)
            of_root[root] = name
    names, read_as = dict(scopes.names), {}
    for target in webs.targets:
        names[target] = of_root[webs.root(target)]
    for node, target in webs.reads.items():
        if node in webs.targets:
            read_as[node] = of_root[webs.root(target)]
        else:
            names[node] = of_root[webs.root(target)]
    origin = {of_root[webs.root(target)]: unique for target, unique in webs.targets.items()}
    kinds = {**scopes.kinds, **dict.fromkeys(origin, "scalar")}
    read = {of_root[webs.root(target)] for target in webs.reads.values()}
    return replace(scopes, names=names, kinds=kinds, read_as=read_as, webs=origin, read=frozenset(read))


def grouped(scopes: Scopes, types: Mapping[str, Type]) -> Scopes | None:
    """Return scopes in which the webs of a name that have one type are one variable; None for one of each.

    What has no type, a row or a tuple, keeps its name, and so does a name that is a bool in one web, which is
    an error, and a web that is not read.
    """
    names: dict[str, str] = {}
    for unique in dict.fromkeys(scopes.webs.values()):
        webs = [web for web, origin in scopes.webs.items() if origin == unique]
        typed = [web for web in webs if web in types and (web in scopes.read or not types[web].weak)]
        is_mixed = BOOL in {types[web] for web in typed} and len({types[web] for web in typed}) > 1
        firsts: dict[Type, str] = {}
        for web in typed if len(typed) > 1 and not is_mixed else []:
            firsts.setdefault(types[web], unique if not firsts else web)
            names[web] = firsts[types[web]]
        names |= {web: names.get(web, unique) for web in webs}
    if all(name == scopes.webs[web] for web, name in names.items()):
        return None
    renamed = {node: names.get(name, name) for node, name in scopes.names.items()}
    read_as = {node: names.get(name, name) for node, name in scopes.read_as.items()}
    return replace(scopes, names=renamed, read_as=read_as)


class _Webs:
    """Visits statements with the assignments that reach them; a loop twice, for what its end brings back."""

    def __init__(self, scopes: Scopes) -> None:
        self.scopes = scopes
        self.parents: dict[ast.Name, ast.Name] = {}
        self.targets: dict[ast.Name, str] = {}
        self.order: dict[ast.Name, int] = {}
        self.reads: dict[ast.Name, ast.Name] = {}

    def root(self, target: ast.Name) -> ast.Name:
        """Return the assignment that stands for a web."""
        while (parent := self.parents.get(target, target)) is not target:
            target = parent
        return target

    def scalar(self, node: ast.AST) -> str:
        """Return the unique name of a scalar, or ""."""
        unique = self.scopes.names.get(node, "") if isinstance(node, ast.Name) else ""
        return unique if self.scopes.kinds.get(unique) == "scalar" else ""

    def block(self, body: list[ast.stmt], state: State) -> State:
        """Return the state after a body."""
        for statement in body:
            state = self.statement(statement, state)
        return state

    def statement(self, node: ast.stmt, state: State) -> State:
        match node:
            case ast.Assign(targets=[target], value=value):
                self.read(value, state)
                return self.assigned(target, state)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self.read(value, state)
                return self.assigned(target, state)
            case ast.AugAssign(target=target, value=value):
                self.read(value, state)
                self.read(target, state)
                return self.assigned(target, state)
            case ast.If(test=test, body=body, orelse=orelse):
                self.read(test, state)
                return _both(self.block(body, state), self.block(orelse, state))
            case ast.For(iter=head, body=body):
                self.read(head, state)
                again = _both(state, self.block(body, state))
                return _both(again, self.block(body, again))
            case ast.With(items=items, body=body):
                for item in items:
                    self.read(item.context_expr, state)
                return self.block(body, state)
        return state

    def read(self, node: ast.expr, state: State) -> None:
        """Join the assignments that reach each scalar in an expression."""
        for name in walk(node):
            unique = self.scalar(name)
            if unique and isinstance(name, ast.Name) and state.get(unique):
                first, *others = state[unique]
                for other in others:
                    self.join(first, other)
                if name in self.reads:
                    self.join(self.reads[name], first)
                self.reads[name] = first

    def join(self, one: ast.Name, other: ast.Name) -> None:
        """Make two assignments one web; the earlier in the text stands for it."""
        a, b = sorted((self.root(one), self.root(other)), key=lambda target: self.order[target])
        self.parents[b] = a

    def assigned(self, target: ast.expr, state: State) -> State:
        if isinstance(target, ast.Subscript):
            self.read(target, state)
        found = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
        for item in found:
            if unique := self.scalar(item):
                assert isinstance(item, ast.Name)
                self.targets.setdefault(item, unique)
                self.order.setdefault(item, len(self.order))
                state = {**state, unique: frozenset([item])}
        return state


def _both(one: State, other: State) -> State:
    none: frozenset[ast.Name] = frozenset()
    return {name: one.get(name, none) | other.get(name, none) for name in one.keys() | other.keys()}
