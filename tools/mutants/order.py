"""The order of a mutant's tests: in turn one of a file with a near name, and one that runs what few run."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, zip_longest
from typing import NamedTuple

MOST_FILES = 24  # all are imported before the first test runs
START_S = 0.3  # added to the time of a test where its worth is divided by it


class Order(NamedTuple):
    """For which source file tests are, how long one takes, and what one is worth.

    The worth of a test grows with lines that few other tests run. ``dearest_first``: of a file those that
    take longest come first, not the cheapest.
    """

    file: str
    time_of: Callable[[str], float]
    worth: Mapping[str, float]
    dearest_first: bool = False


def ordered(tests: Iterable[str], order: Order, most: int, seconds: float) -> Iterator[str]:
    """Yield tests in their order, at most so many, and as many as take ``seconds``."""
    both = [*tests]
    pairs = zip_longest(by_name(both, order), by_worth(both, order))
    files: set[str] = set()
    limit = max(MOST_FILES, most // 6)
    for test in dict.fromkeys(chain.from_iterable(pairs)):
        if test is None or order.time_of(test) > seconds or not most:
            continue
        file = test.partition("::")[0]
        if file in files or len(files) < limit:
            files.add(file)
            most, seconds = most - 1, seconds - order.time_of(test)
            yield test


def by_name(tests: Iterable[str], order: Order) -> Iterator[str]:
    """Yield tests of the files with the nearest names, in turn one of each."""
    sign = -1 if order.dearest_first else 1
    turns: Counter[str] = Counter()
    rows = []
    for test in sorted(tests, key=lambda test: (sign * order.time_of(test), test)):
        file = test.partition("::")[0]
        turns[file] += 1
        rows.append((turns[file], -nearness(file, order.file), test))
    return (test for _, _, test in sorted(rows))


def by_worth(tests: Iterable[str], order: Order) -> Iterator[str]:
    """Yield tests by their worth for their time, further cases of a function later."""

    def gain(test: str) -> float:
        return order.worth.get(test, 0.0) / (order.time_of(test) + START_S)

    turns: Counter[str] = Counter()
    rows = []
    for test in sorted(tests, key=lambda test: (-gain(test), test)):
        function = test.partition("[")[0]
        turns[function] += 1
        rows.append((turns[function], -gain(test), test))
    return (test for _, _, test in sorted(rows))


def nearness(test: str, file: str) -> int:
    """Return how alike the paths of a test and of a source file are.

    >>> nearness("tests/core/test_dtypes.py", "core/dtypes.py"), nearness("tests/call/test_x.py", "core/x.py")
    (4, 2)
    """
    if test == f"src/polyop/{file}":
        return 9
    room, *folders, name, _ = re.split(r"[/.]", file)
    theirs = {*re.split(r"[/_.]", test)}
    same_name = all(word in theirs for word in name.strip("_").split("_"))
    return 2 * (room in theirs) + 2 * same_name + sum(folder in theirs for folder in folders)
