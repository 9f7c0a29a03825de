"""``desugar``: the order of the rewritings."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from ....core.errors import ArgumentValueError
from ..choices import Choices, Chosen
from ..records import check_whole
from ..rejected_syntax import reject_functions_inside, reject_tvm
from ..source import Source
from ..syntax_tree import copied, walk
from .assignments import single_assignments
from .constant_arrays import Tables
from .decide import Decide
from .exits import Exits, leaves_all
from .helpers import Helpers
from .iterators import Iterators
from .makers import declared
from .nodes import Unused, all_names, assigned_names, unshared
from .spellings import Spellings


def desugar(source: Source, chosen: Chosen, choices: Choices) -> Source:
    """Return the source with a syntax tree of the core of the language; ``source`` stays as it is.

    Helper functions are inlined first, so what follows rewrites their statements too. ``choices`` decide the
    conditions on the parameters of ``chosen``. Raises for one that is used as a value.
    """
    reject_tvm(source)
    reject_functions_inside(source)
    tree = copied(source.tree)
    names = Unused({*all_names(tree.body), *source.parameters})
    lines = dict(source.lines)
    decide = Decide(source, chosen, choices)
    tables = Tables(source, names)
    tree.body = Helpers(source, names, lines, decide, tables).body(decide.body(tree.body))
    tree.body = check_whole(source, tree.body)
    decide.check(tree.body)
    tree.body = tables.replaced(tree.body)
    bound = assigned_names(tree.body) | set(source.parameters)
    tree.body = declared([Spellings(source, bound).visit(node) for node in tree.body])
    tree.body = _without_exits(source, tree.body, names)
    tree.body = _Statements(source, names).body(tree.body)
    return replace(source, tree=unshared(tree), lines=lines)


def _without_exits(source: Source, body: Sequence[ast.stmt], names: Unused) -> list[ast.stmt]:
    """Return the body of a kernel with one return, at the end."""
    returns = [node for inner in body for node in walk(inner) if isinstance(node, ast.Return)]
    nodes = [node for inner in body for node in walk(inner)]
    early = [node for node in returns if node is not body[-1]]
    if not early:
        last = [node for node in body[-1:] if isinstance(node, ast.Return)]
        rest = body[: len(body) - len(last)]
        has_exits = any(isinstance(node, (ast.While, ast.Break, ast.Continue)) for node in nodes)
        if not has_exits:
            return list(body)
        return [*Exits(source, names, lambda node: []).function(rest), *last]
    first, *others = returns
    for other in others:
        if ast.unparse(other) != ast.unparse(first):
            rule = "every return of a kernel gives the same tensors"
            seen = f"{ast.unparse(first)}, in line {first.lineno}, and {ast.unparse(other)}"
            hint = "write into one output_tensor before each return"
            raise source.error(ArgumentValueError, rule, other, seen, hint)
    if not leaves_all(body):
        rule = "No valid return found at the end of the function body"
        hint = f"end with: {ast.unparse(first)}"
        raise source.error(ArgumentValueError, rule, body[-1], hint=hint)
    return [*Exits(source, names, lambda node: []).function(body), first]


class _Statements:
    """Rewrites the statements that are left: assignments and the heads of loops."""

    def __init__(self, source: Source, names: Unused) -> None:
        self.source = source
        self.names = names

    def body(self, nodes: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Return a body without tuples on the left of an assignment, with loops over ranges."""
        bound = assigned_names(nodes) | set(self.source.parameters)
        iterators = Iterators(self.source, self.names, bound)
        return [one for node in nodes for one in self._statement(node, iterators)]

    def _statement(self, node: ast.stmt, iterators: Iterators) -> list[ast.stmt]:
        if isinstance(node, ast.Assign):
            return single_assignments(self.source, node, self.names)
        if isinstance(node, ast.For):
            nodes = iterators.loop(node)
            if nodes != [node]:
                return [one for inner in nodes for one in self._statement(inner, iterators)]
        for field in ("body", "orelse"):
            inner = getattr(node, field, None)
            if inner:
                setattr(node, field, [one for n in inner for one in self._statement(n, iterators)])
        return [node]
