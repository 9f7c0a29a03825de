"""Count the lines that a user writes for a kernel.

Counted is the function with the kernel's name and every function and constant of its file that it
reaches. Their syntax trees are printed again, one statement a line, without comments and docstrings: so
formatting does not count, decorators do. Imports and the call that starts a framework are not counted.
"""

from __future__ import annotations

import ast
from pathlib import Path


def lines(source: str, name: str) -> int:
    """Return the lines of a definition and of what it reaches.

    >>> f = ["def f(x):", "    # why", "", "    return g(x)"]
    >>> lines(chr(10).join(["A = 1", "B = 2", *f, "def g(x): return x + A"]), "f")
    5
    """
    defined = _definitions(ast.parse(source))
    if name not in defined:
        raise KeyError(name)
    reached, waiting = {}, [name]
    while waiting:
        node = defined[waiting.pop()]
        if id(node) in reached:
            continue
        reached[id(node)] = node
        names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        waiting += sorted(names & defined.keys())
    printed = [line for node in reached.values() for line in ast.unparse(_bare(node)).splitlines()]
    return sum(bool(line.strip()) for line in printed)


def of_file(path: Path, name: str) -> int:
    """Return the lines of a definition of a file."""
    return lines(path.read_text(encoding="utf-8"), name)


def _definitions(tree: ast.Module) -> dict[str, ast.stmt]:
    found: dict[str, ast.stmt] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found[node.name] = node
        elif isinstance(node, ast.Assign):
            names = (n.id for target in node.targets for n in ast.walk(target) if isinstance(n, ast.Name))
            found.update(dict.fromkeys(names, node))
    return found


def _bare(node: ast.stmt) -> ast.stmt:
    """Return a definition without docstrings."""
    for one in ast.walk(node):
        if isinstance(one, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(one) is not None:
            one.body = one.body[1:] or [ast.Pass()]
    return node
