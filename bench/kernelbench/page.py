"""The page of KernelBench's operators, and its pictures, from bench/results/kernelbench.json."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import report
import svg

Line = Mapping[str, Any]
START, BOTH_WAYS = "kernelbench: ", ", forward + backward"
RESULTS = Path(__file__).resolve().parents[1] / "results" / "kernelbench.json"
NOT_SLOWER = 1.05
AXIS = "time, as a multiple of PyTorch's; left of 1 is faster"
KINDS = {
    "": ("kernelbench", "Forward"),
    BOTH_WAYS: ("kernelbench_gradients", "Forward and backward"),
}
"""How the names of the rows end -> the name of the picture, and a title."""
WHY = {
    45: "windows of 11 want lanes along them, windows of 3 do not; the size is known at the call only",
    58: "16 rows, and lanes of 70",
    72: "8 rows, and lanes of 24 to 48 in strides of 2",
}
"""Problem -> why it takes longer, where that is known."""
HEAD = """\
The 100 operators of [KernelBench](https://github.com/ScalingIntelligence/KernelBench), level 1, as loop
kernels: the loops of a textbook, without a schedule. [How they are
measured](internals/bench.md#the-operators-of-kernelbench)."""


def write(lines: Sequence[Line], machine: Mapping[str, Any]) -> None:
    """Write the results of a run."""
    text = json.dumps({"machine": machine, "rows": list(lines)}, indent=1)
    RESULTS.write_text(text + "\n", encoding="utf-8")


def render(run: Mapping[str, Any]) -> dict[str, str]:
    """Return the text of each file, by its path in docs."""
    about = run["machine"]
    packages = ", ".join(f"{name} {version}" for name, version in about["packages"].items())
    page = ["# Operators of KernelBench", "", HEAD, ""]
    page += [
        f"{about['processor']}, {about['cores']} cores, load {about['load']} before the run.",
        packages + ".",
        "",
    ]
    page += [
        "| | rows | not slower than PyTorch | above 1.5 | geometric mean |",
        "| --- | --- | --- | --- | --- |",
    ]
    pictures, sections = {}, list[str]()
    for ending, (name, title) in KINDS.items():
        rows = sorted(_rows(run["rows"], ending), key=lambda line: line["value"])
        if not rows:
            continue
        page.append(_summary(title, [line["value"] for line in rows]))
        path = f"benchmarks/{name}.svg"
        pictures[path] = svg.bars(f"{title}, beside PyTorch", AXIS, [_bar(line) for line in rows])
        sections += ["", f"## {title}", "", f"![{title}, as sorted bars]({path})", "", *_slower(rows)]
    return {"kernelbench.md": "\n".join([*page, *sections]) + "\n", **pictures}


def _rows(lines: Sequence[Line], ending: str) -> Iterator[Line]:
    for line in lines:
        if "value" in line and line["name"].endswith(BOTH_WAYS) == bool(ending):
            yield line


def _title(line: Line) -> str:
    return str(line["name"]).removeprefix(START).removesuffix(BOTH_WAYS)


def _summary(title: str, values: Sequence[float]) -> str:
    mean = math.exp(sum(map(math.log, values)) / len(values))
    not_slower, above = sum(v <= NOT_SLOWER for v in values), sum(v > 1.5 for v in values)
    return f"| {title} | {len(values)} | {not_slower} | {above} | {mean:.2f} |"


def _bar(line: Line) -> svg.Bar:
    return svg.Bar(_title(line), line["value"], line["low"], line["high"], None, line["value"] > NOT_SLOWER)


def _slower(rows: Sequence[Line]) -> Iterator[str]:
    """Yield the table of the rows in which PyTorch is ahead."""
    yield f"PyTorch is ahead by more than {NOT_SLOWER - 1:.0%} in:"
    yield ""
    yield "| operator | polyop | PyTorch | found | why |"
    yield "| --- | --- | --- | --- | --- |"
    for line in reversed(rows):
        if line["value"] > NOT_SLOWER:
            cells = report.cells(line)
            why = WHY.get(int(_title(line).split()[0]), "")
            yield f"| {_title(line)} | {cells[2]} | {cells[3]} | {line['value']:.2f} | {why} |"
