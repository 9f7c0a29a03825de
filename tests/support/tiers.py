"""Which tests are too slow for every change: `make test` runs some of their cases, `make test-all` more.

The table is every_change.txt. Cases that are kept are spread evenly over a test's parameters. A whole file that
is slow carries ``pytest.mark.exhaustive`` where it stands.

`make test-all` runs exhaustive cases of one test in four, drawn with a seed (parts.py): at most five, and fewer if
they take longer than ten seconds together; test_all.txt has the numbers. Of the files in WHOLE_FILES it runs all.
`make sweep` runs everything. After `make exhaustive-main`, ``python tests/support/tiers.py build/exhaustive.xml``
writes test_all.txt.
"""

import sys
from collections import defaultdict
from pathlib import Path
from statistics import median
from xml.etree import ElementTree as ET

import pytest

import parts


def read(path):
    """Return test function -> the number of its cases that run for every change, or their names."""
    lines = [line.split() for line in path.read_text().splitlines() if not line.startswith("#")]
    return {f"tests/{name}": int(kept) if kept.isdigit() else tuple(kept.split(",")) for kept, name in lines}


CASES_FOR_EVERY_CHANGE = read(Path(__file__).with_name("every_change.txt"))


def mark(items):
    """Mark the cases that the table does not choose as exhaustive."""
    cases = defaultdict(list)
    for item in items:
        name = item.nodeid.split("[")[0]
        if name in CASES_FOR_EVERY_CHANGE:
            cases[name].append(item)
    for name, its_cases in cases.items():
        kept = chosen(CASES_FOR_EVERY_CHANGE[name], its_cases)
        for item in its_cases:
            if item not in kept:
                item.add_marker(pytest.mark.exhaustive)


ONE_IN = 4
"""Of so many tests the exhaustive cases of one run."""
MOST, SECONDS = 5, 10
"""At most so many exhaustive cases of one test run, and as many as take so long, but at least one."""
WHOLE_FILES = (
    "tests/hosts/test_leaks.py",
    "tests/hosts/test_torch_compile_cache.py",
    "tests/mindspore/test_custom_ways.py",
    "tests/packages/test_polyop_wheel.py",
    "tests/providers/test_npu.py",
    "tests/test_site.py",
    "tests/wheel/test_new_readme.py",
    "tests/wheel/test_same_binary.py",
)
"""Files whose exhaustive cases all run: none stands for another, and nothing else tries what they try."""
TABLE = Path(__file__).with_name("test_all.txt")
HEADER = """# How many exhaustive cases of each slow test `make test-all` runs: see tiers.py, which writes this table.
"""
CASES_FOR_TEST_ALL = read(TABLE)


def drawn(items):
    """Return the items without those exhaustive cases that only `make sweep` runs."""
    cases = defaultdict(list)
    for item in items:
        if item.get_closest_marker("exhaustive"):
            cases[item.nodeid.split("[")[0]].append(item)
    left_out = set()
    for name, its_cases in cases.items():
        if name.split("::")[0] not in WHOLE_FILES:
            number = CASES_FOR_TEST_ALL.get(name, MOST) if parts.is_drawn(ONE_IN, name) else 0
            left_out |= {*its_cases} - {*parts.some(number, its_cases, name)}
    return [item for item in items if item not in left_out]


def chosen(count, items):
    """Return ``count`` of the items, evenly spread; or, if it is a tuple, the items with these names."""
    if isinstance(count, tuple):
        return [item for item in items if any(f"[{name}]" in item.nodeid for name in count)]
    count = min(count, len(items))
    return [items[k * len(items) // count] for k in range(count)]


def measured(results):
    """Return the table of the results of a run."""
    times = defaultdict(list)
    for case in ET.parse(results).iter("testcase"):
        file = case.get("classname").replace(".", "/").removeprefix("tests/")
        times[f"{file}.py::{case.get('name').split('[')[0]}"].append(float(case.get("time")))
    kept = {name.removeprefix("tests/"): count for name, count in CASES_FOR_TEST_ALL.items()}
    rows = [f"{kept[name]} {name}\n" for name in kept.keys() - times.keys()]  # another seed draws those
    for name, seconds in times.items():
        count = max(1, int(SECONDS / max(median(seconds), 1e-9)))  # the first case may have made the fixtures
        more = len(seconds) if name not in kept else MOST  # one with a row may have cases that did not run
        if count < min(MOST, more) and f"tests/{name}".split("::")[0] not in WHOLE_FILES:
            rows.append(f"{count} {name}\n")
    return HEADER + "".join(sorted(rows, key=lambda row: row.split()[1]))


if __name__ == "__main__":
    TABLE.write_text(measured(sys.argv[1]))
