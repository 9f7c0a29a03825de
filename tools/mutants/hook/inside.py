"""A plugin of pytest that runs chosen tests in their order, until the time is up, and notes each as it goes.

POLYOP_MUTANT_TESTS names a JSON file: the ``tests``, a file whose existence says ``stop``, and the file for
``notes``, a line of JSON for each thing that happens. Tests that are not there any more are left out.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

PLAN = json.loads(Path(os.environ["POLYOP_MUTANT_TESTS"]).read_text())
TURNS = {test: turn for turn, test in enumerate(PLAN["tests"])}


def note(**what: Any) -> None:
    """Add a line to the notes."""
    with Path(PLAN["notes"]).open("a") as file:
        file.write(json.dumps(what) + "\n")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    """Keep the chosen tests; what others do to the order is undone."""
    items[:] = [item for item in items if item.nodeid in TURNS]
    yield
    items.sort(key=lambda item: TURNS[item.nodeid])
    note(event="collected", count=len(items))


def pytest_runtest_logstart(nodeid: str) -> None:
    """Note which test runs, for one that hangs."""
    note(event="started", test=nodeid)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note a failure, with its last line."""
    if report.failed:
        note(event="failed", test=report.nodeid, seconds=report.duration, why=last_line(str(report.longrepr)))


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Note a file that cannot be imported: a mutant can end the import of polyop."""
    if report.failed:
        note(event="failed", test=report.nodeid, seconds=0, why=last_line(str(report.longrepr)))


def last_line(text: str) -> str:
    """Return the error of a failure: its last line with an E, else its last line."""
    lines = [line for line in text.splitlines() if line.strip()] or [""]
    return next((line[1:].strip() for line in lines if line.startswith("E ")), lines[-1].strip())[:300]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Note when a test has ended, and begin no further one when the time is up."""
    result = yield
    note(event="ended", test=item.nodeid)
    if Path(PLAN["stop"]).exists():
        item.session.shouldstop = "the time is up"
    return result
