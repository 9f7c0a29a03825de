"""The names of loops in schedules: ``j`` is the first loop over ``j`` of the text, ``j#2`` the next one.

The parser gives each loop a variable of its own (``j``, ``j_1``). Loops that passes make get the next
numbers, so the numbers of the author's loops never change.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ..ir.grammar import For, Kernel, Stmt, statements

_NUMBERED = re.compile(r"(.+?)(_\d+|_+)$")


def loop_names(kernel: Kernel, known: Mapping[str, str]) -> dict[str, str]:
    """Return the names of a kernel's loops, with their variables; those of ``known`` keep their names."""
    names = dict(known)
    seen = set(names.values())
    for node in statements(kernel.body):
        if isinstance(node, For) and node.var not in seen:
            seen.add(node.var)
            names[_free(_written(node, kernel), names)] = node.var
    return names


def _written(loop: For, kernel: Kernel) -> str:
    """Return the variable as the author wrote it: without what made it different from others."""
    numbered = _NUMBERED.fullmatch(loop.var)
    if numbered is None or loop.var in re.findall(r"\w+", kernel.source.get(loop.line, "")):
        return loop.var
    return numbered[1]


def _free(base: str, names: Iterable[str]) -> str:
    """Return the first of ``j``, ``j#2``, ``j#3`` ... that is no name yet."""
    taken, number, name = set(names), 1, base
    while name in taken:
        number += 1
        name = f"{base}#{number}"
    return name


def by_variable(names: Mapping[str, str]) -> dict[str, str]:
    """Return the first name of each loop, by its variable: a fused loop has several names."""
    first: dict[str, str] = {}
    for name, var in names.items():
        first.setdefault(var, name)
    return first


def variables(body: tuple[Stmt, ...]) -> set[str]:
    """Return the variables of all loops in a body."""
    return {node.var for node in statements(body) if isinstance(node, For)}


def listed(names: Mapping[str, str], kernel: Kernel) -> str:
    """Return the names of the loops that a kernel has, as a list in words."""
    there = variables(kernel.body)
    return ", ".join(name for name, var in names.items() if var in there) or "none"
