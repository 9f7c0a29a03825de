"""Calls every entry of PyTorch's test database through ``polyop.aten``, and compares with the table.

    python tests/support/opinfo/sweep.py [--modes numpy,jax] [--update]

It prints the counts of each mode and every difference; ``--update`` writes the table of the modes that ran.
"""

from __future__ import annotations

import argparse
import collections
import csv
import sys
import time
from pathlib import Path

import jax

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
from opinfo import entries as database

TABLE = Path(__file__).parent / "refused.csv"


def table():
    """Return the outcomes by entry and mode that are not ""."""
    with TABLE.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {(row["entry"], mode): row[mode] for row in rows for mode in database.MODES if row[mode]}


def write(outcomes):
    """Write the table; a row for each entry that is refused in a mode."""
    names = sorted({entry for (entry, _), outcome in outcomes.items() if outcome})
    with TABLE.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("entry", *database.MODES))
        for name in names:
            writer.writerow((name, *(outcomes.get((name, mode), "") for mode in database.MODES)))


def report(mode, counts):
    """Return the counts of a mode in words: of how many entries, what is refused, and what is not counted."""
    out = {category: counts[category] for category in database.NOT_COUNTED if counts[category]}
    counted = sum(counts.values()) - sum(out.values())
    share = 100 * counts["right"] / max(counted, 1)
    lines = [f"{mode}: {counts['right']} of {counted} right, {share:.1f} %; {sum(counts.values())} entries"]
    for category, count in counts.most_common():
        if category not in (*out, "right"):
            lines.append(f"  refused: {count} {category}")
    lines += [f"  not counted: {count} {one} ({database.NOT_COUNTED[one]})" for one, count in out.items()]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--modes", default=",".join(database.MODES))
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    known = table() if TABLE.exists() else {}
    every = dict(known)
    differences = 0
    for mode in options.modes.split(","):
        counts, start = collections.Counter(), time.monotonic()
        for name, op in database.entries().items():
            outcome = database.outcome(op, mode)
            counts[outcome or "right"] += 1
            if outcome != known.get((name, mode), ""):
                differences += 1
                was = known.get((name, mode), "") or "right"
                print(f"{mode} {name}: {outcome or 'right'}, and the table says {was}", flush=True)
            every[name, mode] = outcome
        print(report(mode, counts), f"{(time.monotonic() - start) / 60:.1f} minutes", sep="\n", flush=True)
        if options.update:
            write(every)
    return int(bool(differences) and not options.update)


if __name__ == "__main__":
    sys.exit(main())
