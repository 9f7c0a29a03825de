"""The tables of slow tests name tests that there are, and say how many cases run."""

import ast
import collections
import itertools
from pathlib import Path

import pytest

import tiers

ROOT = Path(__file__).parents[1]


def test_each_row_names_a_test():
    defined = {}
    for name in (*tiers.CASES_FOR_EVERY_CHANGE, *tiers.CASES_FOR_TEST_ALL):
        file, _, function = name.partition("::")
        if file not in defined:
            tree = ast.parse((ROOT / file).read_text())
            defined[file] = {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
        assert function in defined[file], name


@pytest.mark.parametrize("table", ["every_change.txt", "test_all.txt"])
def test_rows_are_sorted_and_not_repeated(table):
    lines = (ROOT / "tests/support" / table).read_text().splitlines()
    names = [line.split()[1] for line in lines if not line.startswith("#")]
    assert names == sorted(set(names))


def test_cases_can_be_kept_by_name(monkeypatch):
    monkeypatch.setitem(tiers.CASES_FOR_EVERY_CHANGE, "a.py::test", ("b", "d"))
    items = [Item(f"a.py::test[{name}]") for name in "abcd"]
    tiers.mark(items)
    assert [item.marked for item in items] == [True, False, True, False]


class Item:
    """A test case, as far as this module reads it."""

    def __init__(self, nodeid, exhaustive=False):
        self.nodeid, self.marked = nodeid, exhaustive

    def add_marker(self, marker):
        self.marked = self.marked or marker.name == "exhaustive"

    def get_closest_marker(self, name):
        return name if name == "exhaustive" and self.marked else None


@pytest.mark.parametrize("count", [0, 1, 3, 7, 9])
def test_cases_are_kept_evenly(monkeypatch, count):
    monkeypatch.setitem(tiers.CASES_FOR_EVERY_CHANGE, "a.py::test", count)
    items = [Item(f"a.py::test[{k}]") for k in range(7)] + [Item("a.py::other")]
    tiers.mark(items)
    kept = [k for k, item in enumerate(items[:7]) if not item.marked]
    assert len(kept) == min(count, 7)
    assert not items[7].marked
    assert all(b - a <= -(-7 // max(count, 1)) for a, b in itertools.pairwise(kept))


def test_of_many_tests_and_cases_some_are_drawn(monkeypatch):
    whole_file = tiers.WHOLE_FILES[0]
    items = [Item(f"a.py::test_{t}[{k}]", exhaustive=True) for t in range(60) for k in range(30)]
    items += [Item(f"{whole_file}::test[{k}]", exhaustive=True) for k in range(30)]
    items += [Item(f"a.py::quick[{k}]") for k in range(100)]
    for t in range(60):
        monkeypatch.setitem(tiers.CASES_FOR_TEST_ALL, f"a.py::test_{t}", 3 if t < 30 else tiers.MOST)
    monkeypatch.delenv("POLYOP_PRODUCTS", raising=False)
    kept = tiers.drawn(items)
    counts = collections.Counter(item.nodeid.split("[")[0] for item in kept)
    assert (counts.pop("a.py::quick"), counts.pop(f"{whole_file}::test")) == (100, 30)
    assert 5 <= len(counts) <= 30
    assert {counts[f"a.py::test_{t}"] for t in range(30)} == {0, 3}
    assert {counts[f"a.py::test_{t}"] for t in range(30, 60)} == {0, tiers.MOST}
    assert kept == [item for item in items if item in kept] == tiers.drawn(items)
    monkeypatch.setenv("POLYOP_PRODUCTS", "1")
    assert tiers.drawn(items) == items


def test_the_table_is_of_the_slow_tests_of_a_run(tmp_path, monkeypatch):
    """A row stays of a test that was not drawn, and of one whose other cases would take too long."""
    before = {"tests/a/c.py::not_drawn": 2, "tests/a/b.py::quick": 3, "tests/a/b.py::one_ran": 1}
    monkeypatch.setattr(tiers, "CASES_FOR_TEST_ALL", before)
    times = {"slow": [6.0] * 9, "once": [200.0], "quick": [0.5] * 40, "long": [20.0, 25.0]}
    times["one_ran"] = [8.0]
    cases = [(name, t) for name, its_times in times.items() for t in its_times]
    (tmp_path / "results.xml").write_text(
        "<testsuites><testsuite>"
        + "".join(
            f'<testcase classname="tests.a.b" name="{n}[{k}]" time="{t}"/>' for k, (n, t) in enumerate(cases)
        )
        + "</testsuite></testsuites>"
    )
    table = tiers.measured(tmp_path / "results.xml")
    assert table == tiers.HEADER + "1 a/b.py::long\n1 a/b.py::one_ran\n1 a/b.py::slow\n2 a/c.py::not_drawn\n"
