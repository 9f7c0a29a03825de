"""Rows of a product that have each pair of choices: faults need two of them at most, far more often than three."""

import itertools
import os
import random

WHOLE = "POLYOP_WHOLE_PRODUCTS"
"""`make sweep` sets this variable: then the whole product is tried."""


def every_pair(rows, choices=tuple):
    """Return the rows in a random order, the same each time: those with a pair that no row before them has.

    ``choices`` gives the choices of a row, each of one thing: values that can be hashed, always as many.
    """
    rows = list(rows)
    random.Random(len(rows)).shuffle(rows)
    if WHOLE in os.environ:
        return rows
    kept, seen = [], set()
    for row in rows:
        made = list(enumerate(choices(row)))
        new = {*itertools.combinations_with_replacement(made, 2)} - seen
        if new:
            kept.append(row)
            seen |= new
    return kept
