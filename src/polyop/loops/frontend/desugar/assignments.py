"""Replace ``a, b = b, a`` and ``a = b = 0`` by single assignments."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ....core.errors import ArgumentValueError
from ..access import count
from ..source import Source
from .nodes import Unused, all_names, assign, assigned_names, at, load


def single_assignments(source: Source, node: ast.Assign, names: Unused) -> list[ast.stmt]:
    """Return the assignments, one for each target, in Python's order."""
    if len(node.targets) > 1:
        return _several(source, node, names)
    (target,) = node.targets
    values = node.value.elts if isinstance(node.value, (ast.Tuple, ast.List)) else None
    if not isinstance(target, (ast.Tuple, ast.List)) or values is None:
        return [node]
    if len(target.elts) != len(values):
        rule = f"{ast.unparse(node.value)} has {count(values, 'element')}"
        raise source.error(ArgumentValueError, rule, node, count(target.elts, "name"))
    pairs = list(zip(target.elts, values, strict=True))
    if _reads_what_was_written(target.elts, values):
        saved = [names.new("old") for _ in pairs]
        before = [assign(name, value, node) for name, (_, value) in zip(saved, pairs, strict=True)]
        pairs = [(item, load(name)) for name, (item, _) in zip(saved, pairs, strict=True)]
    else:
        before = []
    single = [at(node, ast.Assign([item], value)) for item, value in pairs]
    return [*before, *(part for one in single for part in single_assignments(source, one, names))]


def _reads_what_was_written(targets: Sequence[ast.expr], values: Sequence[ast.expr]) -> bool:
    """Whether a value reads a name or a tensor to which an earlier target is assigned."""
    written: set[str] = set()
    for target, value in zip(targets, values, strict=True):
        index = [target.slice] if isinstance(target, ast.Subscript) else []
        if written & all_names([value, *index]):
            return True
        written |= assigned_names([target]) | (all_names([target]) if index else set())
    return False


def _several(source: Source, node: ast.Assign, names: Unused) -> list[ast.stmt]:
    """Return the assignments of ``a = b = value``."""
    if isinstance(node.value, ast.Constant):
        before: list[ast.stmt] = []
        values = [ast.copy_location(ast.Constant(node.value.value), node) for _ in node.targets]
    else:
        name = names.new("value")
        before, values = [assign(name, node.value, node)], [load(name) for _ in node.targets]  # type: ignore[misc]
    single = [at(node, ast.Assign([t], v)) for t, v in zip(node.targets, values, strict=True)]
    return [*before, *(part for one in single for part in single_assignments(source, one, names))]
