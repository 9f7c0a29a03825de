"""The table of slow tests names tests that there are."""

import ast
import itertools
from pathlib import Path

import pytest

import tiers

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("name", tiers.CASES_FOR_EVERY_CHANGE)
def test_a_row_names_a_test(name):
    file, _, function = name.partition("::")
    defined = {n.name for n in ast.parse((ROOT / file).read_text()).body if isinstance(n, ast.FunctionDef)}
    assert function in defined


class Item:
    """A test case, as far as ``mark`` reads it."""

    def __init__(self, nodeid):
        self.nodeid, self.marked = nodeid, False

    def add_marker(self, marker):
        self.marked = self.marked or marker.name == "exhaustive"


@pytest.mark.parametrize("count", [0, 1, 3, 7, 9])
def test_cases_are_kept_evenly(monkeypatch, count):
    monkeypatch.setitem(tiers.CASES_FOR_EVERY_CHANGE, "a.py::test", count)
    items = [Item(f"a.py::test[{k}]") for k in range(7)] + [Item("a.py::other")]
    tiers.mark(items)
    kept = [k for k, item in enumerate(items[:7]) if not item.marked]
    assert len(kept) == min(count, 7)
    assert not items[7].marked
    assert all(b - a <= -(-7 // max(count, 1)) for a, b in itertools.pairwise(kept))
