"""Which tests are too slow for every change: `make test` runs some of their cases, `make test-all` all.

The table is every_change.txt. Cases that are kept are spread evenly over a test's parameters. A whole file that
is slow carries ``pytest.mark.exhaustive`` where it stands.
"""

from collections import defaultdict
from pathlib import Path

import pytest


def read(path):
    """Return test function -> how many of its cases run for every change, or the names of those."""
    lines = [line.split() for line in path.read_text().splitlines() if not line.startswith("#")]
    return {f"tests/{name}": int(kept) if kept.isdigit() else tuple(kept.split(",")) for kept, name in lines}


CASES_FOR_EVERY_CHANGE = read(Path(__file__).with_name("every_change.txt"))


def mark(items):
    """Mark the cases of the table that are left out as exhaustive."""
    cases = defaultdict(list)
    for item in items:
        name = item.nodeid.split("[")[0]
        if name in CASES_FOR_EVERY_CHANGE:
            cases[name].append(item)
    for name, those in cases.items():
        kept = chosen(CASES_FOR_EVERY_CHANGE[name], those)
        for item in those:
            if item not in kept:
                item.add_marker(pytest.mark.exhaustive)


def chosen(count, items):
    """Return so many of the items, evenly spread, or those whose names ``count`` holds."""
    if isinstance(count, tuple):
        return [item for item in items if any(f"[{name}]" in item.nodeid for name in count)]
    count = min(count, len(items))
    return [items[k * len(items) // count] for k in range(count)]
