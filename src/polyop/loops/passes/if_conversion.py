"""If-conversion: what both arms of a condition store last is stored once, behind the condition.

    if x[i] > 0:                   y[i] = x[i] if x[i] > 0 else 0.0
        y[i] = x[i]          ->
    else:
        y[i] = 0.0

    if x[i] > 0:                   if x[i] > 0:
        t = exp(x[i])                  t = exp(x[i])
        y[i] = t / (t + 1)   ->        y_value = t / (t + 1)
    else:                          else:
        y[i] = 0.0                     y_value = 0.0
                                   y[i] = y_value

The element is written in any case, so its tensor needs no zeros, and a loop with lanes stores without a mask.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from ..ir.grammar import BOOL, Assign, Expr, If, Op, Stmt, Store, Var, names_of, unused
from ..ir.rewriter import rewrite, with_bodies
from ..ir.uses import loads_of
from ..program import AnyProgram

Pair = tuple[Store | Assign, Store | Assign]


def if_conversion(program: AnyProgram) -> AnyProgram:
    """Return the program in which what both arms of a condition store last stands behind it.

    A store stays in its arms if a later statement there reads the tensor in another way than by its element.
    """
    kernel = program.kernel
    body = _converted(kernel.body, names_of(kernel))
    return program if body == kernel.body else program.with_(kernel=replace(kernel, body=body))


def _converted(body: Sequence[Stmt], used_names: set[str]) -> tuple[Stmt, ...]:
    """Return a body with its conditions converted, inner ones first."""
    result: list[Stmt] = []
    for node in body:
        inside = with_bodies(node, lambda part: _converted(part, used_names))
        result += _with_common_stores(inside, used_names) if isinstance(inside, If) else (inside,)
    return tuple(result)


def _with_common_stores(node: If, used_names: set[str]) -> list[Stmt]:
    """Return a condition, and behind it the stores that ended both of its arms."""
    pairs = list(_ends(node))
    if len(pairs) == len(node.body) == len(node.orelse):
        return _choices(node, pairs[::-1], used_names)
    then, other, stores = list(node.body), list(node.orelse), list[Stmt]()
    for number, (one, another) in enumerate(pairs, 1):
        after = [arm[len(arm) - number + 1 :] for arm in (then, other)]
        if not isinstance(one, Store):
            break
        loads = {load for load in loads_of(*after[0], *after[1]) if load.buffer == one.buffer}
        if any(one.op or load.index != one.index or load.type != one.value.type for load in loads):
            break  # it is read ahead of where it would be stored
        value = Var(unused(f"{one.buffer}_value", used_names), one.value.type)
        for arm, store, later in zip((then, other), (one, another), after, strict=True):
            rest = (_with_value(s, loads, value) for s in later)
            arm[-number:] = [Assign(value.name, store.value, line=store.line), *rest]
        stores.insert(0, replace(one, value=value))
    return [replace(node, body=tuple(then), orelse=tuple(other)), *stores]


def _with_value(node: Stmt, loads: Collection[Expr], value: Var) -> Stmt:
    changed: Stmt = rewrite(node, lambda e: value if e in loads else e)
    return changed


def _choices(node: If, pairs: Sequence[Pair], used_names: set[str]) -> list[Stmt]:
    """Return the statements of arms that set the same elements and scalars."""
    result: list[Stmt] = []
    condition = node.condition
    if len(pairs) > 1:  # what is set first may be read by the condition
        held = Var(unused("taken", used_names), BOOL)
        result.append(Assign(held.name, condition, line=node.line))
        condition = held
    for one, another in pairs:
        value = Op("select", (condition, one.value, another.value), one.value.type)
        result.append(replace(one, value=value))
    return result


def _ends(node: If) -> Iterator[Pair]:
    """Yield the pairs at the end of both arms that set the same element or scalar, the last one first."""
    for one, another in zip(reversed(node.body), reversed(node.orelse), strict=False):
        if not isinstance(one, (Store, Assign)) or not isinstance(another, (Store, Assign)):
            return
        if one.value.type != another.value.type or one != replace(another, value=one.value, line=one.line):
            return
        if isinstance(one, Assign) and one.type == BOOL:
            return  # a flag may end a loop
        yield one, another
