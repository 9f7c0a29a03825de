"""Print the results of a run of mutants as a table of rooms, or what changed between two runs.

    python tools/mutants/report.py build/mutants/now.jsonl
    python tools/mutants/report.py --before build/mutants/before.jsonl --after build/mutants/now.jsonl

Mutants that hang are killed; those that no test covers are not. A mutant that the list marks as equivalent
does not count. The interval is Wilson's, in which the true share lies with 95 %.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from listing import mutants

Rows = dict[str, dict[str, Any]]
KILLED = ("killed", "timeout")
COLUMNS = ("room", "mutants", "killed", "of them hung", "survived", "not covered", "share killed", "95 %")
ALL, PAST = "all rooms", "past bugs"


def rows_of(path: Path) -> Rows:
    """Return the results in a file by the names of the mutants."""
    return {row["name"]: row for row in map(json.loads, path.read_text().splitlines())}


def wilson(hits: int, count: int) -> tuple[float, float]:
    """Return Wilson's interval of a share, with 95 %.

    >>> [round(end, 3) for end in wilson(9, 10)]
    [0.596, 0.982]
    """
    if not count:
        return 0.0, 1.0
    z, share = 1.96, hits / count
    middle = share + z * z / (2 * count)
    reach = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return (middle - reach) / (1 + z * z / count), (middle + reach) / (1 + z * z / count)


def table(rows: Iterable[dict[str, Any]]) -> list[list[str]]:
    """Return the lines of the table: the rooms, all mutants of the list, and the bugs of the past."""
    rooms: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        for room in (PAST,) if row["kind"] == "past" else (row["room"], ALL):
            rooms[room][row["result"]] += 1
    last = [name for name in (ALL, PAST) if name in rooms]
    lines = []
    for room in (*sorted(rooms.keys() - {*last}), *last):
        results = rooms[room]
        count, killed = results.total(), sum(results[name] for name in KILLED)
        low, high = wilson(killed, count)
        numbers = (count, killed, results["timeout"], results["survived"], results["not covered"])
        lines.append([room, *map(str, numbers), f"{killed / count:.0%}", f"{low:.0%} to {high:.0%}"])
    return lines


def printed(lines: Sequence[Sequence[str]]) -> str:
    """Return a table as text, with columns as wide as their texts."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rows = ((first.ljust(widths[0]), *map(str.rjust, rest, widths[1:])) for first, *rest in lines)
    return "\n".join("  ".join(row) for row in rows)


def compared(before: Rows, after: Rows) -> list[str]:
    """Return what two runs of the same mutants differ in, lost kills first."""
    both = sorted(before.keys() & after.keys())
    killed = {name: tuple(rows[name]["result"] in KILLED for rows in (before, after)) for name in both}
    lost = [name for name in both if killed[name] == (True, False)]
    won = [name for name in both if killed[name] == (False, True)]
    lines = [f"{len(both)} mutants in both runs: {len(lost)} are no longer killed, {len(won)} are killed now"]
    for word, names, was, other in (("lost", lost, before, after), ("won ", won, after, before)):
        lines += [
            f"{word}  {name}: {other[name]['result']}, killed by {was[name].get('by') or 'the import'}"
            for name in names
        ]
    for title, one, other in (("before", before, after), ("after", after, before)):
        if alone := one.keys() - other.keys():
            lines.append(f"{len(alone)} only {title}")
    return lines


def main() -> None:
    """Print a table and the mutants that live, or both tables and a comparison."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("results", type=Path, nargs="?")
    parser.add_argument("--before", type=Path)
    parser.add_argument("--after", type=Path)
    options = parser.parse_args()
    equivalent = {mutant.name for mutant in mutants() if mutant.equivalent}
    files = [path for path in (options.results, options.before, options.after) if path]
    results = [{k: row for k, row in rows_of(path).items() if k not in equivalent} for path in files]
    if not results:
        parser.error("which results? for example build/mutants/now.jsonl")
    for path, rows in zip(files, results, strict=True):
        print(f"{path}\n{printed([COLUMNS, *table(rows.values())])}\n")
    if options.before and options.after:
        print("\n".join(compared(*results[-2:])))
    else:
        living = [row for row in results[0].values() if row["result"] not in KILLED]
        for row in living:
            print(f"{row['result']:11}  {row['name']}  {row['ran']} tests, {row['reaching']} reach it")


if __name__ == "__main__":
    main()
