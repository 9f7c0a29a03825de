"""Exhaustive tests have a group each and long groups are first; a part of a product has each pair of choices."""

import itertools
import os
import pathlib
import subprocess
import sys

import pytest

import turns
from parts import WHOLE, every_pair, one_in

TESTS = pathlib.Path(__file__).parent


class Item:
    """A test, as far as turns.py reads it."""

    def __init__(self, nodeid):
        self.nodeid = nodeid


def test_groups_and_rows_are_of_files():
    files = [*turns.NAMES, *turns.read(turns.TABLE.read_text())]
    assert [name for name in files if name not in turns.GROUPS and not (TESTS.parent / name).is_file()] == []
    assert len(turns.NAMES) == sum(len(files.split()) for files in turns.GROUPS.values())


def test_a_file_is_a_group_unless_it_shares_more():
    nodes = ["tests/a/test_b.py::test_c[d::e]", "tests/wheel/test_new_readme.py::test_f", "src/g.py::h"]
    assert [turns.group_of(node) for node in nodes] == ["tests/a/test_b.py", "wheels", "src/g.py"]


def test_the_longest_groups_are_first_and_the_others_in_their_order(monkeypatch, tmp_path):
    monkeypatch.setattr(turns, "TABLE", tmp_path / "seconds.txt")
    turns.TABLE.write_text("# seconds and group\n300 wheels\n40 tests/b.py\n")
    nodes = ["tests/a.py::x", "tests/b.py::x", "tests/wheel/test_new_readme.py::x", "tests/a.py::y"]
    items = [Item(node) for node in nodes]
    turns.sort(items)
    assert [item.nodeid for item in items] == [nodes[2], nodes[1], nodes[0], nodes[3]]


def test_the_table_is_that_of_a_run(tmp_path):
    cases = [("a.test_b", 12.4), ("a.test_b", 10), ("tests.wheel.test_new_readme", 300), ("a.short", 3)]
    rows = "".join(f'<testcase classname="{name}" name="x" time="{time}" />' for name, time in cases)
    (tmp_path / "results.xml").write_text(f"<testsuites><testsuite>{rows}</testsuite></testsuites>")
    assert turns.measured(tmp_path / "results.xml") == f"{turns.HEADER}300 wheels\n22 a/test_b.py\n"


CONFTEST = f"""
import sys
sys.path.insert(0, {str(TESTS / "support")!r})
import turns
def pytest_xdist_make_scheduler(config, log): return turns.Scheduler(config, log)
"""
TEST = """
import os, pathlib, time, pytest
@pytest.mark.parametrize("number", range(8))
def test(number):
    time.sleep(0.05)
    pathlib.Path(__file__).with_suffix(f".{os.environ['PYTEST_XDIST_WORKER']}").touch()
"""


@pytest.mark.exhaustive
def test_the_tests_of_a_file_run_on_one_worker(tmp_path):
    (tmp_path / "conftest.py").write_text(CONFTEST)
    for name in "abcd":
        (tmp_path / f"test_{name}.py").write_text(TEST)
    options = (
        "-n",
        "2",
        "--dist",
        "loadfile",
        "--no-loadscope-reorder",
        "-c",
        os.devnull,
        "--rootdir",
        tmp_path,
    )
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options, tmp_path]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "32 passed" in done.stdout, done.stdout + done.stderr
    assert len([*tmp_path.glob("test_*.gw*")]) == 4
    assert len({path.suffix for path in tmp_path.glob("test_*.gw*")}) == 2


@pytest.mark.parametrize("counts", [(4,), (3, 2), (4, 4, 3, 3, 3)])
def test_a_part_of_a_product_has_each_pair_of_choices(counts, monkeypatch):
    monkeypatch.delenv(WHOLE, raising=False)
    product = [*itertools.product(*map(range, counts))]
    part = every_pair(product)
    assert pairs(part) == pairs(product)
    assert len(counts) < 3 or len(part) < len(product) / 5
    assert part == every_pair(product)
    monkeypatch.setenv(WHOLE, "1")
    assert sorted(every_pair(product)) == product


def pairs(rows):
    return {pair for row in rows for pair in itertools.combinations_with_replacement(enumerate(row), 2)}


def test_a_part_of_a_list_has_each_kind(monkeypatch):
    monkeypatch.delenv(WHOLE, raising=False)
    rows = ["a1", "b1", "a2", "a3", "c1", "a4", "b2"]
    part = one_in(3, rows, kind=lambda row: row[0])
    assert sorted(row[0] for row in part) == ["a", "a", "b", "c"]
    assert part == [row for row in rows if row in part] == one_in(3, rows, kind=lambda row: row[0])
    monkeypatch.setenv(WHOLE, "1")
    assert one_in(3, rows, kind=lambda row: row[0]) == rows
