"""Write the schedule that a search found to the file from which the compiler reads it."""

from __future__ import annotations

import datetime as dt
import os

from .. import _core
from ..core.errors import UnsupportedError
from ..loops.library import shipped, tuned
from ..loops.targets import isa
from .search import Outcome


def check_can_keep(outcome_file: str, name: str) -> None:
    """Raise ``UnsupportedError`` for a function without a file, as of a notebook."""
    if not os.path.isabs(outcome_file):  # noqa: PTH117 - it need not be a path
        rule = "is defined in no file, so that no schedule can be kept beside it"
        raise UnsupportedError(
            name, rule, outcome_file, hint="give schedule= to @polyop.kernel, or use a file"
        )


def keep(outcome: Outcome) -> str:
    """Keep the best schedule; where the default is the best, forget an earlier one. Return the file, or "".

    Raises ``OSError`` where neither the file beside the source nor that in the cache can be written.
    """
    subject, best = outcome.subject, outcome.best
    kernel, options = subject.typed, subject.kernel.options
    target = isa.available()[0] if options.isa == isa.PORTABLE else options.isa
    sizes = tuned.size_class([None if spec is None else spec.shape for spec in subject.specs])
    entry = tuned.Entry(
        function=kernel.name,
        signature=shipped.signature(kernel),
        digest=tuned.content(kernel, options),
        base=repr(options.schedule),
        target=target,
        sizes=sizes,
        schedule=options.schedule if best is None else best.schedule,
        date=dt.datetime.now(tz=dt.timezone.utc).date().isoformat(),
        inputs=subject.inputs,
        threads=_core.thread_count(),
        gain=round(outcome.gain[0], 3),
        values="" if best is None else best.values,
    )
    if best is None:
        tuned.discard(kernel.file, entry.key)
        return ""
    return tuned.save(kernel.file, entry)
