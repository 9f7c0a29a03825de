"""``polyop audit x.whl``: show what a wheel holds, and check what its tag promises."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from typing import Any

from ..build.show import progress
from ..core.errors import one_line
from ..wheel.audit import audit
from .terminal import fact, say, say_json


def add(verbs: Any) -> None:
    """Add the verb to the parser of ``polyop``."""
    parser = verbs.add_parser(
        "audit",
        help="show what is inside a wheel, and check what its tag promises",
        description="Show the libraries and operators of a wheel, and check it: no symbols of a framework or "
        "of Python, no glibc newer than the tag's, no library that is not there, files as recorded. "
        "None of its code runs. The exit code is 1 when something is broken.",
    )
    parser.add_argument("wheel", nargs="+", metavar="WHEEL", help="a .whl file")
    parser.add_argument("--json", action="store_true", help="print a list of reports as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print a report on each wheel; return 0, or 1 if one breaks a rule. Raises ``LibraryError``."""
    with progress("reading the wheels"):
        reports = [audit(path) for path in options.wheel]
    if options.json:
        rows = [{**dataclasses.asdict(report), "ok": not report.breaches} for report in reports]
        say_json(rows)
        return int(any(report.breaches for report in reports))
    code = 0
    for report in reports:
        for label, text in report.facts:
            fact(label, text)
        for note in report.notes:
            say(one_line(f"note: {note}"))
        for breach in report.breaches:
            say(one_line(f"polyop audit: {breach}"), file=sys.stderr)
        say("broken" if report.breaches else "it keeps what its name promises")
        code |= bool(report.breaches)
    return code
