"""Parts of products of choices, and of long lists, that find what the whole finds, in a small part of its time.

`make sweep` sets POLYOP_PRODUCTS and tries the whole. What a part has is drawn with POLYOP_FUZZ_SEED.
"""

import itertools
import os
import random

WHOLE = "POLYOP_PRODUCTS"
SEED = os.environ.get("POLYOP_FUZZ_SEED", "0")  # all workers of a run collect the same cases


def whole():
    """Return whether the whole is tried."""
    return WHOLE in os.environ


def every_pair(rows, choices=tuple):
    """Return the rows in a random order: those with a pair of choices that no row before them has.

    ``choices`` gives the choices of a row, each of one thing: values that can be hashed, always as many.
    """
    rows = list(rows)
    random.Random(f"{SEED} {len(rows)}").shuffle(rows)
    if whole():
        return rows
    kept, seen = [], set()
    for row in rows:
        made = list(enumerate(choices(row)))
        new = {*itertools.combinations_with_replacement(made, 2)} - seen
        if new:
            kept.append(row)
            seen |= new
    return kept


def one_in(number, rows, kind):
    """Return one row in ``number`` of each kind, at least one; ``kind`` gives the kind of a row."""
    kinds, kept = {}, []
    for at, row in enumerate(rows):
        kinds.setdefault(kind(row), []).append(at)
    for name, places in kinds.items():
        count = len(places) if whole() else -(-len(places) // number)
        kept += random.Random(f"{SEED} {name}").sample(places, count)
    return [rows[at] for at in sorted(kept)]


def some(number, rows, name):
    """Return ``number`` of the rows in their order, or all if there are not more; ``name`` goes into the seed."""
    if whole() or len(rows) <= number:
        return rows
    places = random.Random(f"{SEED} {name}").sample(range(len(rows)), number)
    return [rows[at] for at in sorted(places)]


def is_drawn(number, name):
    """Return whether a name is one of every ``number``, or everything is tried."""
    return whole() or random.Random(f"{SEED} {name} drawn").randrange(number) == 0
