"""Accesses that fail on purpose: how a kernel raises an error that is not about an index.

An index of :data:`RULES` is inside of no tensor. So every pass and target reports such an access with its
line, as it reports any index that is outside; the message is the rule. Where sizes decide whether the access
is made, isl turns its condition into a check of the call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from .grammar import (
    INT,
    PARTS,
    Assign,
    Buffer,
    Const,
    Expr,
    Kernel,
    Load,
    Op,
    Store,
    Type,
    walk,
)
from .rewriter import map_body
from .types import BYTE_FLOATS, cast

_FIRST = 2**60
"""The index of the first rule: no tensor has so many elements along a dimension."""
NEGATIVE_POWER, OTHER_SIZE, EMPTY_ROW, OTHER_NUMBER = range(_FIRST, _FIRST + 4)
RULES = {
    NEGATIVE_POWER: "an integer to a negative power is no integer",
    OTHER_SIZE: "rows of different sizes are combined",
    OTHER_NUMBER: "a row is unpacked that has another number of elements than there are names",
    EMPTY_ROW: "a row without elements has no greatest and no least one",
}
"""The rule that is broken, by the index that is read or written."""


def rule_of(index: Expr) -> str | None:
    """Return the rule for which an index stands; None for an index of the author's."""
    return RULES.get(int(index.value)) if isinstance(index, Const) else None


def failing_axis(index: Sequence[Expr]) -> int | None:
    """Return the axis along which an access fails, the first one that has a rule; None for another access."""
    return next((axis for axis, one in enumerate(index) if rule_of(one)), None)


def failing_index(rule: int, rank: int) -> tuple[Expr, ...]:
    """Return the index that raises a rule, for a tensor of ``rank`` dimensions, 1 or more."""
    return (Const(rule, INT),) * rank


def failing_load(
    rule: int, values: Sequence[Expr], buffers: Mapping[str, Buffer], to: Type, line: int
) -> Expr | None:
    """Return a value that raises a rule where it is computed; None if there is no tensor for it.

    The tensor is one that ``values`` read, else an input.
    """
    names = [e.buffer for value in values for e in walk(value) if isinstance(e, Load)]
    rows = [buffers[name] for name in names] + [b for b in buffers.values() if b.role in ("input", "inplace")]
    usable = [b for b in rows if b.shape and (b.dtype not in (*PARTS, *BYTE_FLOATS) or b.dtype == to.dtype)]
    place = next((b for b in usable if b.role == "input"), usable[0] if usable else None)
    if place is None:
        return None
    return cast(Load(place.name, failing_index(rule, len(place.shape)), Type(place.dtype), line), to)


def without_checks(kernel: Kernel, drop: Callable[[Load | Store], bool] = lambda access: True) -> Kernel:
    """Return the kernel without the statements that fail, or without those whose access ``drop`` names."""

    def change(node: Store | Assign) -> Sequence[Store | Assign]:
        access = _failing_access(node)
        return () if access is not None and drop(access) else (node,)

    return replace(kernel, body=map_body(kernel.body, change, drop_empty=True))


def _failing_access(node: Store | Assign) -> Load | Store | None:
    access: Expr | Store = node if isinstance(node, Store) else node.value
    if isinstance(access, Op) and access.name == "cast":
        access = access.args[0]
    if isinstance(access, (Load, Store)) and failing_axis(access.index) is not None:
        return access
    return None
