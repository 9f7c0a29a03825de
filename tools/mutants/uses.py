"""Where a table is used: the lines of functions that name it, in its module and in those that import it."""

from __future__ import annotations

import ast
import functools
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from places import target_of

DEEPEST = 3  # tables that are made of tables
NESTED = (ast.stmt, ast.excepthandler)
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


class Named(NamedTuple):
    """What a module calls some tables: by names of its own, or as attributes of modules, name -> table."""

    names: set[str]
    modules: dict[str, str]

    def has(self, node: ast.AST) -> bool:
        """Whether a node reads one of the tables."""
        if isinstance(node, ast.Name):
            return node.id in self.names and isinstance(node.ctx, ast.Load)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            return self.modules.get(node.value.id) == node.attr
        return False


@functools.lru_cache(maxsize=1024)
def parsed(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text())


def function_at(text: str, line: int) -> FunctionNode | None:
    """Return the innermost function with a line of a source text, its head included."""
    around = [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, FunctionNode) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    return max(around, key=lambda node: node.lineno, default=None)


def lines_that_use(source: Path, file: str, scope: str) -> dict[str, set[int]]:
    """Return the lines of functions that use what ``scope`` names, by file; "" is the whole of its file.

    A field of a class stands for the class, whose methods are lines that use it.
    """
    lines: dict[str, set[int]] = defaultdict(set)
    name = scope.partition(".")[0]
    if not name:
        return {file: {line for line, _ in lines_in_functions(parsed(source / file))}}
    tables = frozenset({(file, name)})
    for _ in range(DEEPEST):
        outer = set()
        for path in sorted(source.rglob("*.py")):
            where = str(path.relative_to(source))
            for line, user in uses_in(parsed(path), where, tables):
                if user:
                    outer.add((where, user))
                else:
                    lines[where].add(line)
        if lines or not outer:
            break
        tables = frozenset(outer)
    return lines


def uses_in(tree: ast.Module, file: str, tables: frozenset[tuple[str, str]]) -> Iterator[tuple[int, str]]:
    """Yield the lines in functions that use one of these tables, and the tables that are made of them."""
    named = named_in(tree, file, tables)
    if not named.names and not named.modules:
        return
    for line, node in lines_in_functions(tree):
        if named.has(node):
            yield line, ""
    for statement in tree.body:
        if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value:
            target = target_of(statement)
            if isinstance(target, ast.Name) and any(map(named.has, ast.walk(statement.value))):
                yield statement.lineno, target.id
        elif isinstance(statement, ast.ClassDef) and statement.name in named.names:
            yield from ((line, "") for line, _ in lines_in_functions(statement))


def named_in(tree: ast.Module, file: str, tables: frozenset[tuple[str, str]]) -> Named:
    """Return what a module calls these tables, which are given as file and name."""
    names = {name for its_file, name in tables if its_file == file}
    modules: dict[str, str] = {}
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    for its_file, name in tables:
        stem = its_file.removesuffix("/__init__.py").removesuffix(".py").rpartition("/")[2]
        for node in imports:
            if (node.module or "").rpartition(".")[2] in (stem, ""):
                names |= {one.asname or one.name for one in node.names if one.name == name}
            modules |= {one.asname or one.name: name for one in node.names if one.name == stem}
    return Named(names, modules)


def lines_in_functions(tree: ast.AST) -> Iterator[tuple[int, ast.AST]]:
    """Yield the nodes inside of functions with their lines, and with those of the statements around them."""
    functions = (node for node in ast.walk(tree) if isinstance(node, FunctionNode))
    parts = (part for function in functions for body in function.body for part in ast.walk(body))
    for statement in parts:
        if isinstance(statement, NESTED):
            heads = (node for node in ast.iter_child_nodes(statement) if not isinstance(node, NESTED))
            for node in (inner for head in heads for inner in ast.walk(head)):
                yield statement.lineno, node
                if hasattr(node, "lineno"):
                    yield node.lineno, node
