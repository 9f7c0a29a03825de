"""``polyop tune``: search the fastest schedule of a loop operator, and keep it beside the source."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ..core.errors import ArgumentValueError
from .bench import add_inputs, cases
from .load import add_target
from .terminal import say, say_json

if TYPE_CHECKING:
    from ..tune.variants import Subject


def add(verbs: Any) -> None:
    """Add the verb to the parser."""
    verb = verbs.add_parser(
        "tune",
        help="search the fastest schedule of a loop operator",
        description="Search schedules of a loop operator for some inputs: proved legal, ranked by a cost "
        "model, then measured. The best one is kept in FILE.tuned.json, or in the folder of the build cache, "
        "and used for inputs of the same dtypes and of about the same sizes. Results keep the bits of the "
        "default, unless --any-order allows sums in another order.",
    )
    add_target(verb)
    add_inputs(verb)
    verb.add_argument("--seconds", type=float, default=60.0, help="the time for each kernel and inputs (60)")
    verb.add_argument("--gradient", action="store_true", help="tune the derived gradient as well")
    verb.add_argument("--any-order", action="store_true", help="allow schedules that add in another order")
    verb.add_argument("--dry-run", action="store_true", help="keep nothing")
    verb.add_argument("--seed", type=int, default=0, help="the seed of the search")
    verb.add_argument("--json", action="store_true", help="print the result as JSON")
    verb.set_defaults(verb="tune")


def run(options: argparse.Namespace) -> int:
    """Search, print what was tried, keep the best; return 0."""
    from ..bench.timing import keep_memory
    from ..tune.as_text import data, table
    from ..tune.keep import check_can_keep, keep
    from ..tune.search import search

    if not options.seconds > 0:
        raise ArgumentValueError("--seconds", "must be more than 0", options.seconds)
    keep_memory()  # else chance decides which schedule gets new pages
    facts = []
    for subject in _subjects(options):
        if not options.dry_run:
            check_can_keep(subject.typed.file, subject.typed.name)
        report = _progress(subject.bound.name)
        how = {"seed": options.seed, "any_order": options.any_order, "report": report}
        outcome = search(subject, options.seconds, **how)
        report("")
        path = "" if options.dry_run else keep(outcome)
        facts.append({**data(outcome), "file": path or None})
        if not options.json:
            kept = [f"kept in {os.path.relpath(path)}"] if path else []
            say("\n".join([*table(outcome), *kept, ""]), flush=True)
    if options.json:
        say_json(facts)
    return 0


def _subjects(options: argparse.Namespace) -> Iterator[Subject]:
    from ..tune.variants import Subject

    for bound, inputs, attributes in cases(options):
        subject = Subject.of(bound, inputs, attributes)
        yield subject
        if options.gradient:
            yield from subject.gradient()


def _progress(name: str) -> Callable[[str], None]:
    """Return what writes one line of progress over the last, on a terminal alone."""

    def report(text: str) -> None:
        if sys.stderr.isatty():
            line = f"{name}: {text}" if text else ""
            sys.stderr.write(f"\r\x1b[K{line}")
            sys.stderr.flush()

    return report
