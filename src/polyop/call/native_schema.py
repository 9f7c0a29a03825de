"""Encode a schema for the native core: the kinds of arguments, and the returns that are arguments."""

from __future__ import annotations

from ..core.schema import Argument, Schema


def letter(argument: Argument, *, numbers: bool) -> str:
    """Return the letter of an argument for the native core (csrc/gather.h).

    With ``numbers`` a number is taken for one that decides nothing, until a prepared call says otherwise.
    """
    if argument.type.is_tensor:
        return "l" if argument.type.is_list else "t"
    scalar = not argument.type.is_list and argument.type.base in ("int", "float")
    return argument.type.base[0] if numbers and scalar else "a"


def alias_plan(schema: Schema) -> tuple[tuple[int, str], ...]:
    """Return the position and name of the argument that each return is.

    A new tensor has (-1, ""). If all returns are new tensors, the result is empty.
    """
    if len(schema.fresh) == len(schema.returns):
        return ()
    positions = [-1 if i in schema.fresh else schema.alias_of(i) for i in range(len(schema.returns))]
    return tuple((p, schema.arguments[p].name if p >= 0 else "") for p in positions)
