"""The verdicts of rows: kept, missed, known misses; and the lines that the bench prints on them."""

import importlib
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture(autouse=True, scope="module")
def bench():
    """The files of bench import each other by their own names."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCH))
        yield importlib.import_module("bars")
    for name in ("bars", "known_misses"):
        sys.modules.pop(name, None)


def line(low, bar=1.0, value=None, name="row", verdict="", unit="x"):
    return {
        "name": name,
        "beside": "peer",
        "bar": bar,
        "unit": unit,
        "value": low if value is None else value,
        "low": low,
        "verdict": verdict,
    }


@pytest.mark.parametrize(
    ("low", "bar", "listed", "verdict"),
    [
        (0.9, 1.0, None, "ok"),
        (1.0, 1.0, None, "ok"),
        (1.01, 1.0, None, "MISSED"),
        (1.01, None, None, ""),
        (1.01, 1.0, 1.2, "known miss"),
        (1.25, 1.0, 1.2, "known miss"),  # four per cent more than listed
        (1.27, 1.0, 1.2, "WORSE"),
        (0.9, 1.0, 1.2, "ok"),
        (0.06, 0.05, 0.06, "known miss"),  # seconds are as ratios
    ],
)
def test_verdict(bench, low, bar, listed, verdict):
    known = [bench.KnownMiss("row", "peer", listed, "it is hard")] if listed else []
    assert bench.verdict(line(low, bar), known) == verdict
    assert bench.is_error(line(low, bar, verdict=verdict)) == (verdict in ("MISSED", "WORSE"))


def test_a_median_above_the_bar_is_noise(bench):
    assert bench.verdict(line(0.9, 1.0, value=1.3), []) == "ok"


def test_another_peer_is_another_row(bench):
    known = [bench.KnownMiss("row", "another peer", 1.2, "it is hard")]
    assert bench.verdict(line(1.1), known) == "MISSED"


@pytest.mark.parametrize(
    ("verdict", "bar", "error"),
    [
        ("failed: OSError", 1.0, True),
        ("failed: OSError", None, False),  # there to be looked at
        ("not measured: no numba", 1.0, False),
    ],
)
def test_rows_without_a_number(bench, verdict, bar, error):
    row = {"name": "row", "beside": "", "bar": bar, "unit": "x", "verdict": verdict}
    assert bench.is_error(row) == error
    assert bench.describe([row], []) == [f"row: {verdict}"] * error


@pytest.mark.parametrize(
    ("verdict", "low", "text"),
    [
        ("MISSED", 1.1, "missed: row beside peer: 1.15 x (10 %: 1.1 x), and the bar is 1 x"),
        ("WORSE", 1.4, "worse than listed: row beside peer: 1.15 x (10 %: 1.4 x), listed 1.2 x"),
        ("known miss", 1.1, "known miss: row beside peer: 1.15 x (10 %: 1.1 x), listed 1.2 x: it is hard"),
        (
            "ok",
            0.9,
            "no longer missed: row beside peer: 1.15 x (10 %: 0.9 x); take it out of bench/known_misses.py",
        ),
    ],
)
def test_description(bench, verdict, low, text):
    known = [bench.KnownMiss("row", "peer", 1.2, "it is hard")]
    assert bench.describe([line(low, value=1.15, verdict=verdict)], known) == [text]


def test_rows_that_keep_their_bar_are_not_mentioned(bench):
    assert bench.describe([line(0.9, verdict="ok"), line(9.0, None)], []) == []


def test_a_listed_row_that_does_not_exist(bench):
    known = [bench.KnownMiss(name, "peer", 1.2, "it is hard") for name in ("row", "gone")]
    assert bench.without_rows([line(1.1)], known) == ["listed, and no row of this run: gone"]


def test_the_table():
    table = importlib.import_module("known_misses").KNOWN_MISSES
    keys = [(miss.name, miss.beside) for miss in table]
    assert len(set(keys)) == len(keys)
    assert all(miss.ratio > 0 and len(miss.reason.split()) > 5 for miss in table)
