"""Write docs/benchmarks.md and its pictures from bench/results/cpu.json.

    python bench/pages.py

A full run of run.py does so at its end. The same results give the same bytes. svg.py draws without a plotting
library: that would write colours for one theme, and other bytes in each version.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER))

import bars  # noqa: E402 - beside this file
import report  # noqa: E402 - same
import svg  # noqa: E402 - same
from kernelbench import page as operators  # noqa: E402 - same
from known_misses import KNOWN_MISSES  # noqa: E402 - same

RESULTS = FOLDER / "results"
DOCS = FOLDER.parent / "docs"
ROOF = "the roof measured in this run"
Line = Mapping[str, Any]


@dataclass(frozen=True)
class Family:
    """Rows that are drawn together: ``of_bar`` draws seconds as a share of the row's bar."""

    name: str
    title: str
    axis: str
    has: Callable[[Line], bool]
    of_bar: bool = False


def _starts(*words: str) -> Callable[[Line], bool]:
    return lambda line: line["name"].startswith(words)


GLANCE = ", 4 elements"
"""How the rows end of which the landing page shows the picture."""
LOOPS, GRADIENTS = _starts("loops:"), _starts("gradients:", "layers:")
SINGLE = ("'s own", "'s own, jitted")
"""How the peers end of which only the best is drawn."""


def _is_build(line: Line) -> bool:
    return line["unit"] == "s" or _starts("import ", "C++ module, cold build")(line)


CALLS = Family(
    "calls",
    "Calls beside the peer",
    "time, as a multiple of the peer's; left of 1 is faster",
    lambda line: not (LOOPS(line) or GRADIENTS(line) or _is_build(line)),
)
FAMILIES = (
    Family(
        "loops",
        "Loop kernels beside the best peer",
        "time, as a multiple of the best of the peers; left of 1 is faster",
        lambda line: LOOPS(line) and not _is_build(line) and line["beside"] != ROOF,
    ),
    Family(
        "gradients",
        "Forward and backward beside the best peer",
        "time, as a multiple of the best of the peers; left of 1 is faster",
        lambda line: GRADIENTS(line) and not _is_build(line) and not line["beside"].endswith(SINGLE),
    ),
    CALLS,
    Family(
        "builds",
        "Builds, compilations and imports",
        "seconds or ratio, as a share of the row's bar; left of 1 keeps it",
        _is_build,
        of_bar=True,
    ),
    Family(
        "roofs",
        "Loop kernels beside the roof of the machine",
        "time, as a multiple of the least that the roof allows",
        lambda line: line["beside"] == ROOF,
    ),
)
"""Each row is of one family at most."""


def family_of(line: Line) -> Family | None:
    """Return the family in which a row is drawn, if it is a number and has something to be compared with."""
    family = next((f for f in FAMILIES if f.has(line)), None)
    if family is None or "value" not in line or (family.of_bar and line["bar"] is None):
        return None
    return family


def write(results: Path = RESULTS / "cpu.json", folder: Path = DOCS) -> None:
    """Write the page and the pictures."""
    files = render(json.loads(results.read_text()), works())
    if operators.RESULTS.exists():
        files |= operators.render(json.loads(operators.RESULTS.read_text()))
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(exist_ok=True)
        target.write_text(text, encoding="utf-8")


def works() -> dict[str, Any]:
    """Return the operations and bytes of the loop kernels, which counts.py counted."""
    found: dict[str, Any] = json.loads((RESULTS / "work.json").read_text())
    return found


def render(run: Mapping[str, Any], work: Mapping[str, Any]) -> dict[str, str]:
    """Return the text of each file, by its path in docs."""
    lines = [with_verdict(line) for line in run["rows"]]
    pictures, page = {}, [*head(run["machine"]), "", *misses(lines)]
    for family in FAMILIES:
        rows = [line for line in lines if family_of(line) is family]
        if rows:
            path = f"benchmarks/{family.name}.svg"
            pictures[path] = svg.bars(family.title, family.axis, [bar_of(line, family) for line in rows])
            page += ["", f"## {family.title}", "", f"![{family.title}, as bars]({path})"]
    small = [line for line in lines if "value" in line and line["name"].endswith(GLANCE)]
    if small:
        pictures["benchmarks/glance.svg"] = glance(small)
    drawn = roofline(lines, work)
    if drawn:
        pictures["benchmarks/roofline.svg"] = drawn
        picture = "![Loop kernels under the roofs](benchmarks/roofline.svg)"
        page += ["", "## Roofline", "", ROOFLINE, "", picture]
    page += ["", "## All rows", "", *table(lines)]
    return {"benchmarks.md": "\n".join(page) + "\n", **pictures}


HEAD = """\
A ratio is the median of many rounds in which a row and its peer alternate; the line across a bar goes from
the 10 % to the 90 % quantile. A row misses its bar if its 10 % quantile is above it. In the pictures, rows
that miss their bar are orange; a short upright line is the bar, where that is not 1. Rows without a bar are
blue, however long. [The operators of KernelBench](kernelbench.md) have a page of their own, and so have
[other tools that derive gradients](comparison.md)."""
ROOFLINE = """\
Operations and bytes are counted from the loops: each element read once and written once. The roofs are the
highest that the run measured on this machine. A point above a slope has its numbers in a cache. A point above
its flat roof says that the roof was measured while other programs ran."""


def with_verdict(line: Line) -> dict[str, Any]:
    """Return a row with the verdict of today's table of known misses."""
    return {**line, "verdict": bars.verdict(line, KNOWN_MISSES)} if "value" in line else dict(line)


def head(about: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the page is and where it was measured."""
    packages = ", ".join(f"{name} {version}" for name, version in about["packages"].items())
    busy = "; other programs ran at the same time, so the numbers are less sure" if about["busy"] else ""
    yield "# Benchmarks"
    yield ""
    yield f"{about['processor']}, {about['cores']} cores, load {about['load']} before the run{busy}."
    yield f"Python {about['python']}, {packages}. Written by `make bench`; do not edit."
    yield ""
    yield HEAD


def misses(lines: Sequence[Line]) -> Iterator[str]:
    """Yield the rows that miss their bar with the reasons, then those near it, and those without a number."""
    missed = [line for line in lines if is_missed(line)]
    with_bar = sum("value" in line and line["bar"] is not None for line in lines)
    yield f"## Missed: {len(missed)} of {with_bar} rows with a bar"
    yield ""
    yield "| row | beside | found | bar | why |"
    yield "| --- | --- | --- | --- | --- |"
    for line in missed:
        cells = report.cells(line)
        yield f"| {line['name']} | {line['beside']} | {cells[4]} | {cells[6]} | {reason(line)} |"
    near = [
        line
        for line in lines
        if "value" in line and line["bar"] is not None and line["low"] <= line["bar"] < line["value"]
    ]
    if near:
        yield ""
        yield "Above the bar by the median, and not by the 10 % quantile, so by noise or nearly so:"
        yield ""
        for line in near:
            cells = report.cells(line)
            peer = f", beside {line['beside']}" if line["beside"] else ""
            yield f"* {line['name']}{peer}: {cells[4]} ({cells[5]}), bar {cells[6]}"
    absent = [line for line in lines if "value" not in line]
    if absent:
        yield ""
        yield "Without a number:"
        yield ""
        yield from (f"* {line['name']}: {line['verdict']}" for line in absent)


def is_missed(line: Line) -> bool:
    """Whether a row misses its bar, listed or not."""
    return line["verdict"] in ("MISSED", "WORSE", "known miss")


def reason(line: Line) -> str:
    """Return why a row misses its bar."""
    key = (line["name"], line["beside"])
    known = next((miss.reason for miss in KNOWN_MISSES if (miss.name, miss.beside) == key), None)
    worse = "worse than when it was listed; " if line["verdict"] == "WORSE" else ""
    return worse + known if known else "not known yet"


def bar_of(line: Line, family: Family) -> svg.Bar:
    """Return the bar of a row."""
    by = line["bar"] if family.of_bar else 1.0
    name = line["name"].removesuffix(", bound")
    for start in ("loops: ", "gradients: "):
        name = name.removeprefix(start)
    if line["beside"] == "C written by hand":
        name += ", beside C"
    return svg.Bar(
        name if len(name) < 44 else f"{name[:41]}...",
        line["value"] / by,
        line["low"] / by,
        line["high"] / by,
        None if line["bar"] is None else line["bar"] / by,
        is_missed(line),
    )


def glance(lines: Sequence[Line]) -> str:
    """Return the picture of the landing page: a call in each framework, of so few elements that it is all."""
    drawn = [bar_of(line, CALLS) for line in lines]
    rows = [replace(bar, name=bar.name.removesuffix(GLANCE)) for bar in drawn]
    return svg.bars(f"A call of{GLANCE.strip(',')}, beside the peer", CALLS.axis, rows, svg.NARROW)


def program_of(line: Line) -> str:
    """Return the program of a row beside the roof; its title may end in the instruction set."""
    return str(line["name"]).removeprefix("loops: ").split(", ")[0]


def roofline(lines: Sequence[Line], work: Mapping[str, Any]) -> str | None:
    """Return the picture of the loop kernels whose operations are known, or None."""
    measured = {program_of(line): line for line in lines if line["beside"] == ROOF and "value" in line}
    rates: dict[str, float] = {}
    for name, line in measured.items():
        for bound in work.get(name, {}).get("bounds", ()):
            key = bound["level"] if bound["unit"] == "bytes" else bound["dtype"]
            rates[key] = max(rates.get(key, 0.0), bound["amount"] / line["peer_s"])
    points = [
        svg.Point(
            name,
            one["flops"] / one["bytes"],
            one["flops"] / measured[name]["ours_s"],
            is_missed(measured[name]),
        )
        for name, one in work.items()
        if name in measured and one["flops"]
    ]
    slopes = [(level, rates[level]) for level in ("dram", "l3", "l2") if level in rates]
    flats = [(name, rates[name]) for name in ("float32", "float64") if name in rates]
    if not (points and slopes and flats):
        return None
    return svg.roofline("Loop kernels under the roofs of the machine", slopes, flats, points)


def table(lines: Iterable[Line]) -> Iterator[str]:
    """Yield the table of all rows, folded."""
    rows = [report.cells(line) for line in lines]
    yield "<details>"
    yield f"<summary>{len(rows)} rows</summary>"
    yield ""
    yield from (f"| {' | '.join(row)} |" for row in (report.HEAD, ("---",) * len(report.HEAD), *rows))
    yield ""
    yield "</details>"


if __name__ == "__main__":
    write()
