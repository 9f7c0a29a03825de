"""Find lines again in a source that others edit: by the function or table around them, and their text."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from sites import without_indent


class Change(NamedTuple):
    """Lines of a file, named from src/polyop, that become others.

    ``occurrence`` counts from 1 in ``scope``, the qualified name of a function, class or table, or "".
    """

    file: str
    before: str
    after: str
    scope: str = ""
    occurrence: int = 1


class Place(NamedTuple):
    """The lines of a change in today's source, counted from 1, the last included; and their indentation."""

    first: int
    last: int
    indent: int


def place_of(change: Change, text: str) -> Place:
    """Return where a change is in the text of its file. Raises ``LookupError`` if it is not there."""
    lines = text.splitlines()
    size = change.before.count("\n") + 1
    beginning = change.before.partition("\n")[0]
    count = 0
    for first, last in ranges_of(text, change.scope):
        for line in range(first, last - size + 2):
            if lines[line - 1].strip() != beginning:
                continue
            indent = indent_of(lines[line - 1])
            if without_indent("\n".join(lines[line - 1 : line - 1 + size]), indent) == change.before:
                count += 1
                if count == change.occurrence:
                    return Place(line, line + size - 1, indent)
    raise LookupError(f"{change.file}: {change.scope or 'the module'} has {count} times: {change.before}")


def mutated(change: Change, text: str) -> str:
    """Return the text of a file with a change. Raises ``LookupError`` if its place is not there."""
    first, last, indent = place_of(change, text)
    lines = text.splitlines()
    new = [" " * indent + line if line else line for line in change.after.splitlines()]
    return "\n".join([*lines[: first - 1], *new, *lines[last:]]) + "\n"


def mutated_texts(changes: Sequence[Change], source: Path) -> dict[str, str]:
    """Return the mutated text of each file of some changes, by its path; ``source`` is src/polyop."""
    texts: dict[str, str] = {}
    for change in changes:
        path = source / change.file
        texts[str(path)] = mutated(change, texts.get(str(path)) or path.read_text())
    return texts


def ranges_of(text: str, scope: str) -> list[tuple[int, int]]:
    """Return the lines of each definition of a name, and of the whole text for the name ""."""
    if not scope:
        return [(1, len(text.splitlines()))]
    return [(first, last) for name, first, last in all_definitions(text) if name == scope]


@functools.lru_cache(maxsize=4)
def all_definitions(text: str) -> list[tuple[str, int, int]]:
    """Return the qualified names of a text's functions, classes and tables, with their lines."""
    return list(definitions(ast.parse(text).body))


def definitions(body: Sequence[ast.AST], prefix: str = "") -> Iterator[tuple[str, int, int]]:
    """Yield the qualified names of functions, classes and tables, with their first and last lines."""
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield prefix + node.name, node.lineno, node.end_lineno or node.lineno
            yield from definitions(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            target = target_of(node)
            if isinstance(target, ast.Name):
                yield prefix + target.id, node.lineno, node.end_lineno or node.lineno
        else:  # a condition, or something else around definitions
            parts = ("body", "orelse", "handlers", "finalbody", "cases")
            blocks = [getattr(node, part, None) for part in parts]
            inner = [one for block in blocks if isinstance(block, list) for one in block]
            yield from definitions(inner, prefix)


def target_of(node: ast.Assign | ast.AnnAssign) -> ast.expr:
    """Return what is assigned, the first of several."""
    return node.targets[0] if isinstance(node, ast.Assign) else node.target


def indent_of(text: str) -> int:
    """Return with how many blanks a text begins."""
    return len(text) - len(text.lstrip(" "))
