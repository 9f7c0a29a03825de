"""How long each test took, from the report of pytest."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

NOT_RUN = float("inf")  # seconds of a test that failed or was skipped
BAD = frozenset(("failure", "error", "skipped"))


def key_of(test: str) -> tuple[str, str]:
    """Return the class and the name that pytest gives a test in its report.

    >>> key_of("tests/core/test_dims.py::test_names[a::b]")
    ('tests.core.test_dims', 'test_names[a::b]')
    """
    test, bracket, case = test.partition("[")
    path, *names = test.split("::")
    parts = [path.removesuffix(".py").replace("/", "."), *names]
    return ".".join(parts[:-1]), parts[-1] + bracket + case


def seconds_of(report: Path) -> dict[tuple[str, str], float]:
    """Return the seconds of each test of a report."""
    rows = ET.parse(report).iter("testcase")  # noqa: S314 - pytest wrote it
    seconds = {}
    for row in rows:
        is_bad = not BAD.isdisjoint(part.tag for part in row)
        key = row.get("classname", ""), row.get("name", "")
        seconds[key] = NOT_RUN if is_bad else float(row.get("time", 0))
    return seconds
