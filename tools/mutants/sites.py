"""What can be mutated in a source file: one change of an expression, of a statement or of a table.

    comparison   a < b        a <= b              call         f(x)             pass
    negated      if a:        if not (a):         row          (a, b, c)        (a, c)
    constant     3            4                   return       return x         return None
    arithmetic   a + b        a - b               and_or       a and b          a or b

Docstrings, annotations, decorators, asserts, errors that are raised, texts that are logged and what only type
checkers read stay as they are. The syntax tree of Python is enough, because it has the place of every node:
the mutation libraries of the package index know no rows of tables, and choose no tests by their coverage.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import NamedTuple

from finder import Edit, Finder

MAX_LINES = 6  # of a fragment


class Site(NamedTuple):
    """A place where one mutation is possible: the whole lines from ``first`` to ``last`` become ``after``."""

    scope: str  # the qualified name of the function, class or table; "" for other lines of the module
    kind: str
    first: int
    last: int
    before: str
    after: str


def sites_of(text: str) -> list[Site]:
    """Return all sites of a source text, in the order of the file; a changed text may be no Python."""
    finder = Finder(text)
    finder.visit(ast.parse(text))
    found = {
        site_of(finder.lines, scope, kind, edit)
        for scope, kind, edit in finder.edits
        if edit.end[0] - edit.start[0] < MAX_LINES
    }
    return sorted(found, key=lambda site: (site.first, site.kind, site.after))


def site_of(lines: Sequence[bytes], scope: str, kind: str, edit: Edit) -> Site:
    """Return the site of an edit."""
    (first, start), (last, end) = edit.start, edit.end
    before = b"".join(lines[first - 1 : last])
    after = lines[first - 1][:start] + edit.text.encode() + lines[last - 1][end:]
    indent = len(before) - len(before.lstrip(b" "))
    old, new = (without_indent(part.decode(), indent) for part in (before, after))
    return Site(scope, kind, first, last, old, new)


def without_indent(text: str, indent: int) -> str:
    r"""Return lines without so many blanks at their beginnings, and without any at the end.

    >>> without_indent("  if x:\n    y\n z\n", 2)
    'if x:\n  y\nz'
    """
    return "\n".join(re.sub(f"^ {{0,{indent}}}", "", line).rstrip() for line in text.splitlines()).rstrip()
