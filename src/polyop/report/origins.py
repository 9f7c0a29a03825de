"""Find the author's line of each line of a listing or of a C text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ..loops.emit.common.c_text import identifier
from ..loops.ir.grammar import For, If, Kernel, Stmt, statements
from ..loops.program import Program

_COMMENT = re.compile(r"\s*/\* (\d+): .* \*/")
_HEAD = re.compile(r"\s*(?:for \()?(?:const )?int64_t (\w+) =|\s*for \(; (\w+)")
_PLACE = re.compile(r"polyop_place\)\{(\d+),")
_SUFFIX = re.compile(r"_(end|lo|part|check|n0|hi)$")


def lines_of_listing(program: Program) -> list[int]:
    """Return the author's line of each line of ``listing(program)``; 0 where it has none."""
    kernel = program.kernel
    made = [b.line for b in kernel.buffers.values() if b.role in ("output", "local")]
    private = [0] if any(program.owners.values()) else []
    return [0, *made, *_block(kernel.body), 0, *private]


def _block(body: Sequence[Stmt]) -> Iterator[int]:
    if not body:
        yield 0
    for node in body:
        yield node.line
        if isinstance(node, For):
            yield from _block(node.body)
        elif isinstance(node, If):
            yield from _block(node.body)
            if node.orelse:
                yield node.line
                yield from _block(node.orelse)


def loop_lines(kernel: Kernel) -> dict[str, int]:
    """Return the author's line of each loop, by its variable."""
    return {node.var: node.line for node in statements(kernel.body) if isinstance(node, For)}


class _Opened(NamedTuple):
    """A comment or a loop of the C text that names a line of the author, and holds for what follows it.

    ``depth`` is its indentation. A loop holds for deeper lines and for its closing brace (``is_loop``), a
    comment also for other lines of its depth.
    """

    depth: int
    line: int
    is_loop: bool


def lines_of_c(text: str, loops: Mapping[str, int]) -> list[int]:
    r"""Return the author's line of each line of a C text; 0 where it has none.

    The printers write the line before each statement, and each loop has a variable of its own. A line belongs
    to the comment or the loop before it that is not indented deeper.

    >>> lines_of_c("f() {\n  for (; i < n; ++i) {\n    /* 7: y = x */\n    y = x;\n  }\n}", {"i": 6})
    [0, 6, 7, 7, 6, 0]
    """
    variables = {identifier(var): line for var, line in loops.items()}
    above: list[_Opened] = []
    result = []
    for text_line in text.splitlines():
        code = text_line.lstrip()
        depth = len(text_line) - len(code)
        while above and (above[-1].depth > depth or not depth):
            above.pop()
        line = _named(text_line, variables)
        if line and depth and _Opened(depth, line, False) not in above:
            opened = _Opened(depth, line, is_loop=code.startswith("for ("))
            above = [*(row for row in above if row.depth < depth), opened]
        elif above and above[-1].depth == depth and above[-1].is_loop and not code.startswith("}"):
            above.pop()
        result.append(line or (above[-1].line if above else 0))
    return result


def _named(text: str, variables: Mapping[str, int]) -> int:
    """Return the line that a line of C names: by its comment, its loop variable, or what it checks."""
    comment = _COMMENT.fullmatch(text)
    if comment is not None:
        return int(comment[1])
    head = _HEAD.match(text)
    if head is not None:
        return variables.get(_SUFFIX.sub("", head[1] or head[2]), 0)
    place = _PLACE.search(text)
    return int(place[1]) if place is not None else 0
