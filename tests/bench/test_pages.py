"""docs/benchmarks.md and its pictures say what the results say; the line counter of bench/beside counts lines."""

import importlib
import json
import math
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

ROOT = Path(__file__).parents[2]
BENCH = ROOT / "bench"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(autouse=True, scope="module")
def pages():
    """The files of bench import each other by their own names."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCH / "beside"))
        patch.syspath_prepend(str(BENCH))
        yield importlib.import_module("pages")
    for name in ("pages", "svg", "bars", "report", "known_misses", "count"):
        sys.modules.pop(name, None)


@pytest.fixture(scope="session")
def run():
    return json.loads((BENCH / "results" / "cpu.json").read_text())


@pytest.fixture(scope="module")
def files(pages, run):
    return pages.render(run, pages.works())


def line(name, value, *, bar=1.0, beside="peer", unit="x", spread=0.05):
    low, high = value * (1 - spread), value * (1 + spread)
    numbers = {"value": value, "low": low, "high": high, "ours_s": value, "peer_s": 1.0, "verdict": "ok"}
    return {"name": name, "beside": beside, "bar": bar, "unit": unit, **numbers}


def page_of(pages, lines):
    machine = {"processor": "x", "cores": 2, "load": 0.1, "busy": False, "python": "3", "packages": {}}
    return pages.render({"machine": machine, "rows": lines}, {})


def test_the_same_results_give_the_same_files(pages, run, files):
    assert pages.render(json.loads(json.dumps(run)), pages.works()) == files


def test_the_files_in_docs_are_those_of_the_results(files):
    for path, text in files.items():
        assert (ROOT / "docs" / path).read_text() == text, f"{path}: run python bench/pages.py"


def test_each_row_is_once_in_the_table(run, files):
    table = files["benchmarks.md"].split("<details>")[1]
    rows = [
        tuple(cell.strip() for cell in row.split("|")[1:3]) for row in table.splitlines() if row[:1] == "|"
    ]
    assert sorted(rows[2:]) == sorted((row["name"], row["beside"]) for row in run["rows"])


def test_misses_come_first_with_their_reason(pages):
    miss = pages.KNOWN_MISSES[0]
    lines = [
        line("torch call", 0.4),
        {**line(miss.name, miss.ratio, bar=miss.ratio / 2), "beside": miss.beside},
        line("torch call, new", 3.0),
        line("torch call, noisy", 1.04, spread=0.2),
        {"name": "JAX call", "beside": "", "bar": None, "unit": "x", "verdict": "not measured: no JAX"},
    ]
    text = page_of(pages, lines)["benchmarks.md"]
    first = text.split("\n## ")[1]
    assert first.startswith("Missed: 2 of 4 rows with a bar")
    assert f"| {miss.name} | {miss.beside} |" in first
    assert miss.reason in first
    assert "| torch call, new | peer | 3.00 x | 1.00 x | not known yet |" in first
    assert "* torch call, noisy, beside peer: 1.04 x" in first
    assert "* JAX call: not measured: no JAX" in first
    assert "| torch call |" not in first


def test_every_miss_of_the_results_is_named(pages, run, files):
    first = files["benchmarks.md"].split("\n## ")[1]
    missed = [row for row in run["rows"] if row["bar"] is not None and row.get("low", 0) > row["bar"]]
    assert missed
    for row in missed:
        assert f"| {row['name']} | {row['beside']} |" in first


def bars_of(text):
    return list(ET.fromstring(text).iter(f"{SVG}rect"))


def test_bars_are_as_long_as_the_numbers_say(pages):
    """Halves, quarters and doubles: on a logarithmic axis a quarter is twice as far from 1 as a half."""
    values = {"a": 0.5, "b": 0.25, "c": 2.0, "d": 4.0}
    found = bars_of(
        page_of(pages, [line(f"torch call {k}", v, bar=None) for k, v in values.items()])[
            "benchmarks/calls.svg"
        ]
    )
    widths = [float(bar.get("width")) for bar in found]
    starts = [float(bar.get("x")) for bar in found]
    assert widths[1] == pytest.approx(2 * widths[0], abs=0.02)
    assert widths[2] == pytest.approx(widths[0], abs=0.02)
    assert widths[3] == pytest.approx(widths[1], abs=0.02)
    one = starts[2]
    assert starts[3] == pytest.approx(one)
    assert [s + w for s, w in zip(starts[:2], widths[:2], strict=True)] == pytest.approx([one, one], abs=0.02)


def test_the_landing_page_shows_the_calls_of_4_elements_whether_they_miss_or_not(pages):
    lines = [line("torch call, 4 elements", 0.5), line("JAX call, 4 elements", 3.0), line("torch call", 2.0)]
    text = page_of(pages, lines)["benchmarks/glance.svg"]
    assert [bar.get("class") for bar in bars_of(text)] == ["good", "miss"]
    assert ">torch call<" in text and ">JAX call<" in text and ">2.00<" not in text


def test_kernelbench_has_a_page_with_sorted_pictures(pages):
    values = {"7 slow": 3.0, "23 softmax": 0.5, "24 even": 1.02}
    lines = [line(f"kernelbench: {name}", value, bar=None) for name, value in values.items()]
    lines.append(line("kernelbench: 23 softmax, forward + backward", 2.0, bar=None))
    about = {"processor": "a processor", "cores": 2, "load": 0.1, "packages": {"torch": "2"}}
    files = pages.operators.render({"machine": about, "rows": lines})
    text = files["kernelbench.md"]
    assert "| Forward | 3 | 2 | 1 | 1.15 |" in text and "| Forward and backward | 1 | 0 | 1 | 2.00 |" in text
    assert "| 7 slow | " in text and "| 24 even | " not in text
    drawn = files["benchmarks/kernelbench.svg"]
    assert drawn.index(">23 softmax<") < drawn.index(">24 even<") < drawn.index(">7 slow<")
    assert [bar.get("class") for bar in bars_of(drawn)] == ["good", "good", "miss"]


def test_the_pictures_of_the_results(pages, run, files):
    pictures = {path: text for path, text in files.items() if path.endswith(".svg")}
    families = [f for f in pages.FAMILIES if any(pages.family_of(row) is f for row in run["rows"])]
    assert {"loops", "gradients", "calls", "builds", "roofs"} <= {family.name for family in families}
    names = [*(family.name for family in families), "roofline", "glance"]
    assert set(pictures) == {f"benchmarks/{name}.svg" for name in names}
    for family in families:
        rows = [row for row in run["rows"] if pages.family_of(row) is family]
        bars = bars_of(pictures[f"benchmarks/{family.name}.svg"])
        assert len(bars) == len(rows) > 0
        values = [row["value"] / (row["bar"] if family.of_bar else 1) for row in rows]
        scale = [(float(b.get("width")), abs(math.log(v))) for b, v in zip(bars, values, strict=True)]
        unit = max(w for w, _ in scale) / max(distance for _, distance in scale)
        for width, distance in scale:  # a bar is never thinner than a pixel
            assert width == pytest.approx(max(1.0, distance * unit), abs=0.05)
        shown = [float(bar.find(f"{SVG}title").text.split(": ")[-1].split(" (")[0]) for bar in bars]
        assert shown == pytest.approx(values, rel=6e-3)
    circles = list(ET.fromstring(pictures["benchmarks/roofline.svg"]).iter(f"{SVG}circle"))
    assert len(circles) == sum(one["flops"] > 0 for one in pages.works().values())


def test_every_loop_kernel_of_the_results_has_counts(pages, run):
    measured = {pages.program_of(row) for row in run["rows"] if row["beside"] == pages.ROOF}
    assert measured <= pages.works().keys()


SOURCE = '''
"""The docstring of a file."""
import math

SIZE, LIMIT = 4, 5
UNUSED = 6


@decorated
def kernel(x):
    """One line.

    And more.
    """
    # a comment

    total = sum(
        x,
    )
    return total + SIZE


def other():
    return UNUSED


def helper(x): return kernel(x)


def entry(x):
    def inner():
        """Only a docstring."""
    return helper(x)
'''


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("other", 2 + 1),  # def, return; UNUSED
        ("kernel", 4 + 1),  # decorator, def, total, return; SIZE, LIMIT
        ("helper", 2 + 5),  # a statement a line
        ("entry", 4 + 7),  # def, def, pass, return
    ],
)
def test_lines_are_counted_without_comments_docstrings_and_blank_lines(pages, name, lines):
    count = importlib.import_module("count")
    assert count.lines(SOURCE, name) == lines


def test_formatting_does_not_count(pages):
    count = importlib.import_module("count")
    assert count.lines("def f(a,\n      b):\n\n    return (a +\n       b)", "f") == count.lines(
        "def f(a, b):\n    return a + b", "f"
    )
