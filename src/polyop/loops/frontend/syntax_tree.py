"""Walk over syntax trees and copy them: as ``ast.walk`` and ``copy.deepcopy``, and faster.

Each process that calls a kernel checks its text again, and the checks walk over the tree some fifty times.
"""

from __future__ import annotations

import ast
from typing import TypeVar

Node = TypeVar("Node", bound=ast.AST)


def walk(top: ast.AST) -> list[ast.AST]:
    """Return a node and all nodes below it, in the order of ``ast.walk``.

    >>> [type(node).__name__ for node in walk(ast.parse("-x", mode="eval"))]
    ['Expression', 'UnaryOp', 'USub', 'Name', 'Load']
    """
    nodes = [top]
    for node in nodes:
        for field in node._fields:
            value = getattr(node, field, None)
            if isinstance(value, ast.AST):
                nodes.append(value)
            elif isinstance(value, list):
                nodes += [one for one in value if isinstance(one, ast.AST)]
    return nodes


def is_target(node: ast.Name) -> bool:
    """Whether a name is the target of an assignment here."""
    return isinstance(node.ctx, ast.Store)


def path_of_names(node: ast.AST) -> str:
    """Return the text of ``name`` or ``name.name``; of another expression an empty one.

    >>> [path_of_names(ast.parse(text, mode="eval").body) for text in ("cfg.scale", "x[0].real")]
    ['cfg.scale', '']
    """
    if isinstance(node, ast.Attribute):
        owner = path_of_names(node.value)
        return f"{owner}.{node.attr}" if owner else ""
    return node.id if isinstance(node, ast.Name) else ""


def copied(node: Node) -> Node:
    """Return a copy of a tree, which shares nothing with it that a rewriting changes.

    Nodes that others have put beside a node's fields are left out: in IPython, ``parent`` closes a circle.

    >>> tree = ast.parse("y = x")
    >>> ast.unparse(copied(tree)), copied(tree).body[0] is tree.body[0]
    ('y = x', False)
    """
    copy = node.__class__.__new__(node.__class__)  # Python 3.13 warns of a node without its fields
    for name, value in node.__dict__.items():
        if name in node._fields or not isinstance(value, ast.AST):
            copy.__dict__[name] = _copied(value)
    return copy


def _copied(value: object) -> object:
    if isinstance(value, list):
        return [_copied(one) for one in value]
    return copied(value) if isinstance(value, ast.AST) else value
