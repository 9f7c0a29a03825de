"""Print the tests that may be slow: what they reach is reached by others that run for every change.

    python tools/mutants/redundant.py

The dearest come first. A test that is printed counts no more for those behind it. `make mutants` makes the
database and the report. A test in processes that were not measured is not printed: nothing is known of it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

from coverage import CoverageData
from covering import function_of
from durations import NOT_RUN, key_of, seconds_of

RESULTS = Path(__file__).resolve().parents[2] / "build" / "mutants"
LEAST = 2.0  # seconds of all cases of a test, below which a mark is not worth its line

Lines = dict[str, set[tuple[str, int]]]


def lines_reached(data: CoverageData) -> tuple[Lines, set[str]]:
    """Return the lines of src/polyop that each test reaches, and all tests with their cases."""
    lines: Lines = defaultdict(set)
    cases: set[str] = set()
    for file in data.measured_files():
        for line, contexts in data.contexts_by_lineno(file).items():
            for context in contexts:
                test = context.rpartition("|")[0]
                if test:
                    cases.add(test)
                    lines[function_of(test)].add((file, line))
    return lines, cases


def main() -> None:
    """Print a line for each test: seconds, cases, its name."""
    data = CoverageData(str(RESULTS / "coverage.db"))
    data.read()
    lines, cases = lines_reached(data)
    seconds = seconds_of(RESULTS / "tests.xml")
    times, counts = Counter[str](), Counter(map(function_of, cases))
    for case in cases:
        time = seconds.get(key_of(case), NOT_RUN)
        times[function_of(case)] += time if time < NOT_RUN else 0  # type: ignore[assignment]
    reached = Counter(line for own in lines.values() for line in own)
    for test, time in times.most_common():
        if time >= LEAST and all(reached[line] > 1 for line in lines[test]):
            reached.subtract(lines[test])
            print(f"{time:6.1f} s {counts[test]:4} cases  {test}")


if __name__ == "__main__":
    main()
