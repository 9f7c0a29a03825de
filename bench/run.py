"""Measure every row of bench/rows and its peer, in this run, on this machine, and check the bars.

    python bench/run.py [--quick] [--plain] [--compare OLD.json] [WORD ...]

With words, only rows run whose name or file name has one of them, and nothing is written. A full run writes
bench/results/<kind of machine>.md and .json, and on a CPU docs/benchmarks.md and docs/kernelbench.md. Rows
of the latter are in bench/results/kernelbench.json. The word "kernelbench" alone writes these two. A file of
bench/rows has its rows in a table ROWS or a function rows().

The exit code is

* 1 if a row misses its bar and is not in bench/known_misses.py, if a known miss is worse beyond noise, or if
  a row with a bar failed. bench/bars.py has the rule. Known misses are printed with their reasons, and
  so are those that are no longer missed.
* 2 if, with --compare, a row with a bar is slower than in an earlier run. bench/regression.py has the rule. A
  row that looks slower is measured twice more, and must be slower each time.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import importlib.util
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER))

import bars  # noqa: E402 - beside this file
import pages  # noqa: E402 - same
import regression  # noqa: E402 - same
import report  # noqa: E402 - same
from kernelbench import page as kernelbench_page  # noqa: E402 - same
from known_misses import KNOWN_MISSES  # noqa: E402 - same
from measure import Missing, Row, Settings, keep_memory  # noqa: E402 - same


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "words", nargs="*", metavar="WORD", help="run only rows that have one of these in their name"
    )
    parser.add_argument("--quick", action="store_true", help="fewer rounds; the numbers are less sure")
    parser.add_argument("--plain", action="store_true", help="print plain text")
    parser.add_argument(
        "--compare", type=Path, metavar="OLD.json", help="exit 2 when a row with a bar is slower than there"
    )
    options = parser.parse_args(arguments)
    earlier = regression.read(options.compare) if options.compare else None
    settings = Settings(rounds=15, slice_s=0.002, processes=3) if options.quick else Settings()
    machine = report.machine()
    keep_memory()  # for all rows and all peers
    print(f"load average {machine['load']} on {machine['cores']} cores, before the first row", flush=True)
    if machine["busy"]:
        print("warning: the machine is busy; the ratios are less sure", file=sys.stderr, flush=True)
    lines = list(all_lines(options.words, settings))
    report.show(lines, plain=options.plain)
    if options.words in ([], ["kernelbench"]) and not options.quick:
        write(machine, lines, all_rows=not options.words)
    text = bars.describe(lines, KNOWN_MISSES)
    if not options.words:
        text += bars.without_rows(lines, KNOWN_MISSES)
    print("\n".join(text), flush=True)
    if earlier is not None and compare(earlier, machine, lines, settings):
        return 2
    return 1 if any(bars.is_error(line) for line in lines) else 0


def write(machine: dict[str, Any], lines: Sequence[dict[str, Any]], *, all_rows: bool) -> None:
    """Write the results of a run, those of KernelBench's operators to a file of their own, and the pages."""
    operators = [line for line in lines if line["name"].startswith(kernelbench_page.START)]
    if all_rows:
        report.write(FOLDER / "results", machine, [line for line in lines if line not in operators])
    if machine["kind"] == "cpu":
        kernelbench_page.write(operators, machine)
        pages.write()


def compare(
    earlier: dict[str, Any], machine: dict[str, Any], lines: Sequence[dict[str, Any]], settings: Settings
) -> bool:
    """Print the rows that are slower than in an earlier run; return whether there are any."""
    old = regression.with_bar(earlier["rows"])

    def again(keys: set[regression.Key]) -> list[dict[str, Any]]:
        names = [name for name, _ in keys]
        return [line for line in all_lines(names, settings) if line["name"] in names]

    pairs = regression.confirmed(old, regression.with_bar(lines), again)
    print("\n".join(regression.describe(pairs, earlier["machine"], machine)), flush=True)
    return bool(pairs)


def all_lines(words: Sequence[str], settings: Settings) -> Iterator[dict[str, Any]]:
    """Yield the lines of all files of rows."""
    for path in sorted((FOLDER / "rows").glob("*.py")):
        yield from measure(path, words, settings)


def measure(path: Path, words: Sequence[str], settings: Settings) -> Iterator[dict[str, Any]]:
    """Yield one line per row of a file; the verdict of a row that cannot be measured is the reason."""
    whole = not words or any(word in path.stem for word in words)
    try:
        rows = load(path)
    except Missing as problem:
        if whole:
            yield {
                "name": path.stem,
                "beside": "",
                "bar": None,
                "unit": "x",
                "verdict": f"not measured: {problem}",
            }
        return
    for row in rows:
        if whole or any(word in row.name for word in words):
            print(f"  {row.name} ...", file=sys.stderr, flush=True)
            yield line_of(row, settings)


@functools.cache
def load(path: Path) -> Sequence[Row]:
    """Return the rows of a file, which defines its operators once."""
    spec = importlib.util.spec_from_file_location(f"bench_rows_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    rows: Sequence[Row] = module.rows() if hasattr(module, "rows") else module.ROWS
    return rows


def line_of(row: Row, settings: Settings) -> dict[str, Any]:
    """Measure a row; return it with the result as plain data."""
    line: dict[str, Any] = {"name": row.name, "beside": row.beside, "bar": row.bar, "unit": row.unit}
    try:
        result = row.measure(settings)
    except Missing as problem:
        return {**line, "verdict": f"not measured: {problem}"}
    except Exception as problem:  # noqa: BLE001 - one broken row must not hide the others
        return {
            **line,
            "verdict": f"failed: {type(problem).__name__}: {str(problem).strip().splitlines()[-1:]}",
        }
    measured = {**line, **dataclasses.asdict(result)}
    return {**measured, "verdict": bars.verdict(measured, KNOWN_MISSES)}


if __name__ == "__main__":
    os.chdir(FOLDER.parent)
    sys.exit(main(sys.argv[1:]))
