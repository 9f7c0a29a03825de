"""Which tests run for a mutant: those that reach its lines, then those that are near to it.

Three steps, until there are enough:

    covering   run a changed line; for a table, or the default of an argument, a function that uses it
    near       run another line of the same function, or of the same file
    by folder  tests of the folder with the name of the room, and doctests of the file: what child
               processes run is not measured. Those that take longest come first: they start processes
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from coverage import CoverageData
from durations import NOT_RUN, key_of, seconds_of
from listing import Mutant, room_of
from order import Order, ordered
from places import Change, place_of
from uses import FunctionNode, function_at, lines_that_use

MOST, FEWEST = 150, 40  # tests of a mutant; below the second, further steps are taken
SECONDS = 30.0  # that they took when they were measured
SLOW = 15.0  # seconds: no test that takes longer, or shares what it needs with such a one
UNKNOWN = 1.0  # seconds of a test that has no measured time
TESTED_ELSEWHERE = {"bench": "measuring", "tune": "measuring"}


Worth = dict[str, float]  # of each test: how much it runs that few tests run


class Chosen(NamedTuple):
    """The tests of a mutant in their order; how many of them cover it, and how many of all tests do."""

    tests: list[str]
    covering: int
    reaching: int


class Tests:
    """The tests of a run under coverage: what each reaches, and how long it takes."""

    def __init__(self, tree: Path, database: Path, report: Path) -> None:
        self.source = tree / "src" / "polyop"
        self.data = CoverageData(str(database))
        self.data.read()
        self.files = {name.partition("/src/polyop/")[2]: name for name in self.data.measured_files()}
        self.seconds = seconds_of(report)
        contexts = {context.rpartition("|")[0] for context in self.data.measured_contexts()} - {""}
        exist = functools.cache(lambda file: (tree / file).exists())
        present = [test for test in contexts if exist(file_of(test))]
        slow = {function_of(test) for test in present if SLOW < self.time_of(test) < NOT_RUN}
        self.usable = {
            test for test in present if function_of(test) not in slow and self.time_of(test) < NOT_RUN
        }

    def leave_out(self, names: Iterable[str]) -> None:
        """Use some tests no longer, in none of their cases, or all tests of a file."""
        out = {*names}
        self.usable = {test for test in self.usable if out.isdisjoint((function_of(test), file_of(test)))}
        self.by_line.cache_clear()

    def time_of(self, test: str) -> float:
        """Return the seconds of a test; ``NOT_RUN`` for one that failed or was skipped."""
        return self.seconds.get(key_of(test), UNKNOWN)

    @functools.lru_cache(maxsize=64)  # noqa: B019 - there is one object
    def by_line(self, file: str) -> dict[int, frozenset[str]]:
        """Return the tests of each line of a file."""
        if file not in self.files:
            return {}
        contexts = self.data.contexts_by_lineno(self.files[file])
        return {
            line: frozenset(one.rpartition("|")[0] for one in names) & self.usable
            for line, names in contexts.items()
        }

    def of_lines(self, file: str, lines: Iterable[int], around: Iterable[int] = ()) -> Worth:
        """Return the tests that run one of these lines; for their worth those ``around`` count too."""
        by_line = self.by_line(file)
        tests = dict.fromkeys((test for line in lines for test in by_line.get(line, ())), 0.0)
        for line in {*lines, *around}:
            all_tests = by_line.get(line, frozenset())
            for test in all_tests & tests.keys():
                tests[test] += 1 / len(all_tests)
        return tests

    def chosen(self, mutant: Mutant, scale: int = 1) -> Chosen:
        """Choose the tests of a mutant; ``scale``: so many times as many, and as much time."""
        file, most, seconds = mutant.changes[0].file, MOST * scale, SECONDS * scale
        reaching = added(map(self.covering, mutant.changes))
        tests = [*ordered(reaching, Order(file, self.time_of, reaching), most, seconds)]
        covering = len(tests)
        for step in (self.near, self.by_folder) if covering < FEWEST else ():
            worth = added(map(step, mutant.changes))
            order = Order(file, self.time_of, worth, dearest_first=step == self.by_folder)
            left = seconds - sum(map(self.time_of, tests))
            tests += ordered(worth.keys() - {*tests}, order, FEWEST, left / 2)
        return Chosen(tests, covering, len(reaching))

    def covering(self, change: Change) -> Worth:
        """Return the tests that run a changed line, or a function that uses a changed table."""
        text = (self.source / change.file).read_text()
        place = place_of(change, text)
        function = function_at(text, place.first)
        if function and place.first >= function.body[0].lineno:
            inner = innermost(function, place.first, place.last)
            lines = {*range(place.first, place.last + 1), inner.lineno}
            return self.of_lines(change.file, lines, body_of(function))
        if function:  # a default
            return self.of_lines(change.file, body_of(function))
        uses = lines_that_use(self.source, change.file, change.scope)
        return added(self.of_lines(file, lines) for file, lines in uses.items())

    def near(self, change: Change) -> Worth:
        """Return the tests that run another line of the function, else of any function of the file."""
        text = (self.source / change.file).read_text()
        function = function_at(text, place_of(change, text).first)
        if function and (tests := self.of_lines(change.file, body_of(function))):
            return tests
        bodies = [body_of(node) for node in ast.walk(ast.parse(text)) if isinstance(node, FunctionNode)]
        return self.of_lines(change.file, {line for body in bodies for line in body})

    def by_folder(self, change: Change) -> Worth:
        """Return the tests of the room's folder."""
        room = room_of(change.file)
        folder = f"tests/{TESTED_ELSEWHERE.get(room, room)}/"
        own = [test for test in self.usable if test.startswith((folder, f"src/polyop/{change.file}::"))]
        first = f"tests/{room.partition('/')[0]}/"
        return dict.fromkeys(own or (test for test in self.usable if test.startswith(first)), 0.0)


def added(parts: Iterable[Worth]) -> Worth:
    """Return the worth of each test in all parts together."""
    worth: Worth = {}
    for part in parts:
        for test, value in part.items():
            worth[test] = worth.get(test, 0.0) + value
    return worth


def innermost(function: ast.AST, first: int, last: int) -> ast.stmt:
    """Return the smallest statement around some lines."""
    around = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.stmt) and node.lineno <= first and last <= (node.end_lineno or 0)
    ]
    return max(around, key=lambda node: (node.lineno, -(node.end_lineno or 0)))


def body_of(function: FunctionNode) -> range:
    """Return the lines of a function's body."""
    return range(function.body[0].lineno, (function.end_lineno or 0) + 1)


def file_of(test: str) -> str:
    """Return the file of a test."""
    return test.partition("::")[0]


def function_of(test: str) -> str:
    """Return the name of a test without its case."""
    return test.partition("[")[0]
