"""What the printer of C does for speed; POLYOP_SKIP_PASSES leaves each of it out by its name."""

from __future__ import annotations

from typing import NamedTuple

from ... import debug


class Optimisation(NamedTuple):
    """One row of the table: ``why`` is a sentence for the documents."""

    name: str
    why: str


OPTIMISATIONS = (
    Optimisation("coalesce", "Two loops over neighbouring elements run as one: short rows fill vectors."),
    Optimisation(
        "unroll_and_jam", "Several rows are added to a vector of sums, which is loaded once for them."
    ),
    Optimisation("interleave", "Several vectors at once: none waits for the result of the one before."),
    Optimisation("hoist_quotients", "What a loop divides without changing it is divided before the loop."),
    Optimisation("hoist_checks", "The index that selects a row is checked once for the row."),
    Optimisation("row_panels", "What a tile reads down its columns is copied once, in the order of the sum."),
    Optimisation("register_transpose", "Lanes that walk along their own rows load squares of elements."),
    Optimisation("register_reuse", "A row that is read at several offsets is loaded once."),
    Optimisation("prefetch", "What a loop reads next is asked for before it is needed."),
    Optimisation("streaming_stores", "A result larger than the caches is written past them."),
)


def is_on(name: str) -> bool:
    """Whether an optimisation is made.

    >>> is_on("prefetch")
    True
    """
    assert any(one.name == name for one in OPTIMISATIONS), name
    return name not in debug.skipped_passes()
