"""Which cases of slow tests run, and in which order."""

import itertools
import pathlib
import subprocess
import sys

import pytest

from pairs import WHOLE, every_pair

SUPPORT = pathlib.Path(__file__).parent / "support"
CONFTEST = """
import selection
def pytest_addoption(parser): selection.add_options(parser)
def pytest_configure(config): config.addinivalue_line("markers", "slow(kept=0)")
def pytest_collection_modifyitems(config, items): selection.select(config, items)
"""
TESTS = {
    "test_a.py": """
import pytest
@pytest.mark.parametrize("number", range(8))
def test_quick(number): pass
""",
    "test_b.py": """
import pytest
@pytest.mark.slow(2)
@pytest.mark.parametrize("number", range(8))
def test_slow(number): pass
@pytest.mark.slow(more=9)
@pytest.mark.parametrize("number", range(3))
def test_slowest(number): pass
@pytest.mark.parametrize("number", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_partly(number): pass
""",
}


@pytest.fixture
def names(tmp_path):
    """Return a function from options to the names of the tests that run, in their order."""
    for name, text in {"conftest.py": CONFTEST, **TESTS}.items():
        (tmp_path / name).write_text(text)

    def collected(*options):
        command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", *options]
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env={"PYTHONPATH": str(SUPPORT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            capture_output=True,
            text=True,
            check=True,
        )
        return [line.partition("::")[2] for line in done.stdout.splitlines() if "::" in line]

    return collected


QUICK = [f"test_quick[{number}]" for number in range(8)]


def test_a_mark_and_a_number_say_how_many_cases_run(names):
    every_change = names("--order", "0")
    assert every_change == [*QUICK, "test_slow[0]", "test_slow[4]", "test_partly[0]"]
    one_more = {"test_slow[2]", *(f"test_slowest[{number}]" for number in range(3)), "test_partly[1]"}
    assert {*names("--more", "1")} == {*every_change} | one_more
    assert len(names("--more", "all")) == 8 + 8 + 3 + 2


def test_the_order_is_that_of_a_seed_and_files_with_slow_tests_are_first(names):
    seven = names("--more", "all", "--order", "7")
    assert seven == names("--more", "all", "--order", "7")
    assert seven != names("--more", "all", "--order", "8") != names("--more", "all", "--order", "0")
    assert {*seven[-8:]} == {*QUICK}
    assert [name for name in seven if "slow[" in name] == names(
        "--more", "all", "--order", "7", "-k", "test_slow and not slowest"
    )


@pytest.mark.parametrize("counts", [(4,), (3, 2), (4, 4, 3, 3, 3)])
def test_a_part_of_a_product_has_each_pair_of_choices(counts, monkeypatch):
    monkeypatch.delenv(WHOLE, raising=False)
    product = [*itertools.product(*map(range, counts))]
    part = every_pair(product)
    assert pairs_of(part) == pairs_of(product)
    assert len(counts) < 3 or len(part) < len(product) / 5
    assert part == every_pair(product)
    monkeypatch.setenv(WHOLE, "1")
    assert sorted(every_pair(product)) == product


def pairs_of(rows):
    return {pair for row in rows for pair in itertools.combinations_with_replacement(enumerate(row), 2)}
