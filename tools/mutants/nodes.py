"""Questions about nodes of a syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

LOGGED = frozenset(("debug", "info", "warning", "exception"))


def start(node: ast.AST) -> tuple[int, int]:
    """Return the line of a node, and the byte in it."""
    return node.lineno, node.col_offset  # type: ignore[attr-defined]


def end(node: ast.AST) -> tuple[int, int]:
    """Return the line where a node ends, and the byte behind it."""
    return node.end_lineno, node.end_col_offset  # type: ignore[attr-defined]


def without_docstring(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Return statements without texts that stand alone."""
    return (one for one in body if not (isinstance(one, ast.Expr) and is_text(one.value)))


def is_text(node: ast.AST) -> bool:
    """Whether a node is a text."""
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def is_logged(node: ast.Call) -> bool:
    """Whether a call writes to a log."""
    return isinstance(node.func, ast.Attribute) and node.func.attr in LOGGED


def rows_of(value: ast.expr) -> list[tuple[ast.AST, ast.AST]]:
    """Return the first and the last node of each row of a literal, which may be the argument of a call."""
    if isinstance(value, ast.Call) and len(value.args) == 1 and not value.keywords:
        value = value.args[0]
    if isinstance(value, ast.Dict):
        rows = [(key or item, item) for key, item in zip(value.keys, value.values, strict=True)]
    elif isinstance(value, (ast.Tuple, ast.List, ast.Set)):
        rows = [(item, item) for item in value.elts]
    else:
        return []
    return list(rows) if len(rows) > 1 + isinstance(value, ast.Tuple) else []  # ("a") were no tuple
