"""Write docs/comparison.md from the results of ``run.py``. The same results give the same bytes.

python bench/beside/page.py
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER))

import facts  # noqa: E402 - beside this file
from problems import PROBLEMS  # noqa: E402 - same

PAGE = FOLDER.parents[1] / "docs" / "comparison.md"
RESULTS = FOLDER.parent / "results" / "beside.json"
NAMES = {
    "polyop": "polyop",
    "warp": "Warp",
    "taichi": "Taichi",
    "numba": "Numba",
    "torch": "PyTorch",
    "jax": "JAX",
}
Run = Mapping[str, Any]
Row = Mapping[str, Any]

HOW = """\
Each problem is written in each framework as its documentation writes such things: [the
files](../bench/beside). PyTorch has eager operations, without `torch.compile`; JAX is jitted; Warp has
`wp.Tape`, Taichi fields with `needs_grad` and `kernel.grad()`, polyop `@polyop.kernel`, called with NumPy
arrays. The first way follows the loops of the problem: what they overwrite is overwritten, if the framework
can do that. Where its gradient is not right there is a second way, which avoids what the documentation says
is not differentiated. polyop has one too, for `newton`: its times are those of that one.

* **Values** are compared with NumPy in float64, and **gradients** with central differences of that in
  float64, for each element, at small sizes. All frameworks compute in float32. An error of at most 0.001 of
  the largest element is right. The gradients that are timed are checked again at that size, in one
  direction.
* **Lines** are those of the function and of all that it reaches in its file, printed again from the syntax
  tree: a line for each statement, without comments, docstrings, blank lines and imports. The arrays that a
  user has to make are among them, and so is what asks for the gradient.
* **Times** are medians of slices that alternate between processes which are alive together on one CPU.
  Warp, Taichi and Numba write into arrays that were made before; polyop, PyTorch and JAX make new ones at
  each call.
* **The first call** is forward and backward, from NumPy arrays to the gradient, at small sizes, after the
  imports. "Again" is the same in a new process that finds the first one's cache. JAX and Numba have a cache
  that can be switched on; it was not.
* Each function runs in a process of its own, so that a crash is a result.
"""


def write(run: Run) -> None:
    """Write the page."""
    PAGE.write_text(text(run), encoding="utf-8")


def text(run: Run) -> str:
    """Return the page."""
    about = run["machine"]
    packages = ", ".join(f"{NAMES[name]} {version}" for name, version in run["versions"].items())
    busy = "; other programs ran at the same time, so the times are less sure" if about["busy"] else ""
    parts = [
        "# Beside Warp, Taichi, Numba, PyTorch and JAX, on the CPU",
        "",
        "Six small problems, each written in each framework.",
        f"{packages}.",
        f"{about['processor']}, one thread, load {about['load']} before the run{busy}.",
        "Written by `make compare`; do not edit.",
        "",
        "## Where polyop is behind",
        "",
        *losses(run),
        "",
        *table(("what polyop cannot do", "what it has", "who can"), facts.CANNOT),
        "",
        "## Gradients",
        "",
        *gradients(run),
        "",
        "## Lines of user code, forward and gradient",
        "",
        "Of the first way with a right gradient. Numba's are of the forward alone.",
        "",
        *by_problem(run, lambda row: f"{row['lines']}" if row else "-"),
        "",
        "## Time of the forward",
        "",
        *times(run, "forward"),
        "",
        "## Time of forward and backward",
        "",
        "Only of right gradients.",
        "",
        *times(run, "gradient"),
        "",
        "## The first call",
        "",
        "Seconds with an empty cache / again, in a new process.",
        "",
        *by_problem(run, first_call),
        "",
        "## How it was measured",
        "",
        HOW.rstrip(),
    ]
    return "\n".join(parts) + "\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table."""
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]


def rows_of(run: Run, problem: str, framework: str) -> list[Row]:
    """Return the one or two ways in which a problem is written."""
    return [r for r in run["rows"] if (r["problem"], r["framework"]) == (problem, framework)]


def chosen(run: Run, problem: str, framework: str) -> Row | None:
    """Return the first way with a right gradient; without one, the first."""
    rows = rows_of(run, problem, framework)
    return next((r for r in rows if r["verdict"] == "right"), rows[0] if rows else None)


def by_problem(run: Run, cell: Any) -> list[str]:
    """Return a table of a cell for each problem and framework."""
    names = [name for name in NAMES if name in run["versions"]]
    problems = [name for name in PROBLEMS if any(r["problem"] == name for r in run["rows"])]
    return table(
        ("", *(NAMES[name] for name in names)),
        [(f"`{problem}`", *(cell(chosen(run, problem, name)) for name in names)) for problem in problems],
    )


def gradients(run: Run) -> Iterator[str]:
    """Yield the table of verdicts, and what is to be said on each that is not right."""
    names = [name for name in NAMES if name in run["versions"]]
    problems = [name for name in PROBLEMS if any(r["problem"] == name for r in run["rows"])]
    yield "The number is the largest relative error. A second line in a cell is the second way of writing it."
    yield ""
    yield from table(
        ("", *(NAMES[name] for name in names)),
        [
            (
                f"`{problem}`: {PROBLEMS[problem].title}",
                *("<br>".join(map(outcome, rows_of(run, problem, name))) or "-" for name in names),
            )
            for problem in problems
        ],
    )
    yield ""
    values = [r for r in run["rows"] if r["verdict"] != "forward wrong" and "forward_error" in r]
    yield f"Values are right in {len(values)} of {len(run['rows'])} functions. Numba has no gradients."
    yield ""
    yield from table(
        ("not right", "what the user sees", "documented", "the second way"),
        list(remarks(run, problems, names)),
    )
    if run.get("default_stack"):
        crashed = ", ".join(f"`{n}`" for n, verdict in run["default_stack"].items() if verdict == "crashed")
        yield ""
        yield (
            f"Taichi ran with `ad_stack_size=2048`, because [its default is too small]({facts.STACK}) for "
            f"long loops. With the default, at the timed sizes, the process crashed in: {crashed or 'none'}."
        )
    yield ""
    yield facts.CHECKERS


def outcome(row: Row) -> str:
    """Return the words for a gradient."""
    verdict = str(row["verdict"])
    if verdict in ("right", "wrong"):
        return (
            f"{verdict} ({row['gradient_error']:.0e})" if verdict == "right" else f"**wrong** ({error(row)})"
        )
    return f"**{verdict}**" if verdict != "none" else "none"


def error(row: Row) -> str:
    """Return the relative error of a wrong gradient."""
    return f"{row['gradient_error']:.2g}"


def remarks(run: Run, problems: Sequence[str], names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each first way whose gradient is not right."""
    for name in names:
        for problem in problems:
            rows = rows_of(run, problem, name)
            if not rows or rows[0]["verdict"] in ("right", "none"):
                continue
            seen, where, other = facts.DOCUMENTED.get((name, problem), ("", "", ""))
            if "refused" in rows[0]:
                seen = f"`{short(rows[0]['refused'])}`"
            ends = f": {rows[1]['verdict']}" if len(rows) > 1 else ""
            yield (f"{NAMES[name]}, `{problem}`", seen, where, f"{other}{ends}")


def short(words: str, most: int = 150) -> str:
    """Return the beginning of an error, without what would end a cell of the table."""
    words = words.replace("|", "/").replace("`", "'")
    return words if len(words) <= most else words[: most - 3].rsplit(" ", 1)[0] + " ..."


def first_call(row: Row | None) -> str:
    """Return the seconds of the first call, with an empty cache and again."""
    if row is None or row.get("cold_s") is None:
        return "-"
    again = f" / {row['warm_s']:.2f}" if row.get("warm_s") is not None else ""
    return f"{row['cold_s']:.2f}{again}"


def time_of(run: Run, problem: str, framework: str, what: str) -> Row | None:
    """Return the measured seconds, if there are any."""
    key = (problem, framework, what)
    return next((t for t in run["times"] if (t["problem"], t["framework"], t["what"]) == key), None)


def times(run: Run, what: str) -> list[str]:
    """Return the table of times, with polyop's ratio to each peer."""

    def cell(row: Row | None) -> str:
        found = row and time_of(run, row["problem"], row["framework"], what)
        if not found:
            return "-"
        seconds, ratio = f"{found['seconds']['median'] * 1e3:.3g} ms", found["ratio"]
        if row is not None and (row["framework"] == "polyop" or not ratio):
            return seconds
        return f"{seconds}<br>{ratio['median']:.2f} ({ratio['low']:.2f} - {ratio['high']:.2f})"

    about = "The ratio is polyop's time to the peer's, with the bounds of 80 %: below 1 polyop is faster."
    return [about, "", *by_problem(run, cell)]


def losses(run: Run) -> list[str]:
    """Return what polyop is behind in, one line each: verdicts, times, first calls, lines."""
    found = [*lost_gradients(run), *lost_times(run), *lost_firsts(run), *lost_lines(run)]
    return [f"* {line}" for line in found] or ["In none of what was measured."]


def lost_gradients(run: Run) -> Iterator[str]:
    """Yield the problems whose first way is not right in polyop."""
    for problem in PROBLEMS:
        rows = rows_of(run, problem, "polyop")
        if rows and rows[0]["verdict"] != "right":
            right = [
                NAMES[name]
                for name in NAMES
                if any(r["verdict"] == "right" for r in rows_of(run, problem, name)[:1])
            ]
            also = f"; right as first written in {', '.join(right)}" if right else "; right in no other"
            yield f"`{problem}`: the gradient is {rows[0]['verdict']} as first written{also}"


def lost_times(run: Run) -> Iterator[str]:
    """Yield the times in which a peer is faster, the worst first."""
    slower = [
        t for t in run["times"] if t["ratio"] and t["framework"] != "polyop" and t["ratio"]["median"] > 1
    ]
    for t in sorted(slower, key=lambda t: -t["ratio"]["median"]):
        what = "forward" if t["what"] == "forward" else "forward and backward"
        spread = f"{t['ratio']['low']:.2f} - {t['ratio']['high']:.2f}"
        yield (
            f"`{t['problem']}`, {what}: {t['ratio']['median']:.2f} times the time of {NAMES[t['framework']]} "
            f"({spread})"
        )


def lost_firsts(run: Run) -> Iterator[str]:
    """Yield, for each peer, where its first call is shorter than polyop's."""
    for key, words in (("cold_s", "with an empty cache"), ("warm_s", "again, in a new process")):
        for name, title in NAMES.items():
            pairs = [
                (problem, chosen(run, problem, "polyop"), chosen(run, problem, name)) for problem in PROBLEMS
            ]
            ours = {
                problem: (a[key], b[key])
                for problem, a, b in pairs
                if a and b and name != "polyop" and None not in (a.get(key), b.get(key)) and b[key] < a[key]
            }
            if ours:
                own, theirs = (between([pair[k] for pair in ours.values()]) for k in (0, 1))
                where = ", ".join(f"`{problem}`" for problem in ours) if len(ours) < len(PROBLEMS) else "all"
                yield (
                    f"the first call {words}: {title} takes {theirs} s where polyop takes {own} s ({where})"
                )


def between(numbers: Sequence[float]) -> str:
    """Return the least and the largest number, or the one that there is."""
    low, high = f"{min(numbers):.2f}", f"{max(numbers):.2f}"
    return low if low == high else f"{low} to {high}"


def lost_lines(run: Run) -> Iterator[str]:
    """Yield, for each peer, the problems that take fewer lines in it."""
    for name, title in NAMES.items():
        fewer = [
            f"`{problem}` {theirs['lines']} to {ours['lines']}"
            for problem in PROBLEMS
            if (ours := chosen(run, problem, "polyop"))
            and (theirs := chosen(run, problem, name))
            and theirs["verdict"] == "right"
            and theirs["lines"] < ours["lines"]
        ]
        if fewer:
            yield f"lines: fewer in {title}: {', '.join(fewer)}"


if __name__ == "__main__":
    write(json.loads(RESULTS.read_text(encoding="utf-8")))
