"""What a check found: one result per check, a report of all, and the error that it raises."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ..core.errors import PolyopError
from ..core.texts import aligned

PASSED: Final = "passed"
FAILED: Final = "failed"
NOT_RUN: Final = "not run"

COLUMNS: Final = ("check", "host", "result", "detail")


@dataclass(frozen=True, slots=True)
class Result:
    """One check under one host. ``status`` is ``"passed"``, ``"failed"`` or ``"not run"``.

    ``detail`` is the rule that was broken and what was seen, the reason why the check did not
    run, or a remark on a passed one.
    """

    check: str
    host: str
    status: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """All results of one operator; ``str()`` is a plain table.

    >>> print(Report("demo::f", "ops.py:3", (Result("repeated runs", "numpy", "passed"),)))
    demo::f, defined at ops.py:3
    check          host   result  detail
    repeated runs  numpy  passed
    1 passed, 0 failed, 0 not run
    """

    operator: str
    where: str
    results: tuple[Result, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing failed."""
        return not self.failed

    @property
    def failed(self) -> tuple[Result, ...]:
        """The results that failed."""
        return tuple(result for result in self.results if result.status == FAILED)

    @property
    def rows(self) -> tuple[tuple[str, str, str, str], ...]:
        """One row of text per result that ran, in the order of the columns."""
        return tuple((r.check, r.host, r.status, r.detail) for r in self.results if r.status != NOT_RUN)

    @property
    def not_run(self) -> dict[str, tuple[str, ...]]:
        """The checks that did not run, by the reason."""
        reasons: dict[str, dict[str, None]] = {}
        for result in self.results:
            if result.status == NOT_RUN:
                reasons.setdefault(result.detail, {})[result.check] = None
        return {reason: tuple(checks) for reason, checks in reasons.items()}

    @property
    def not_run_lines(self) -> tuple[str, ...]:
        """One line for each reason why checks did not run."""
        return tuple(f"not run: {'; '.join(checks)}: {reason}" for reason, checks in self.not_run.items())

    @property
    def summary(self) -> str:
        """How many results have each status."""
        statuses = [result.status for result in self.results]
        return ", ".join(f"{statuses.count(status)} {status}" for status in (PASSED, FAILED, NOT_RUN))

    def __str__(self) -> str:
        """Return the operator, the table, a line for each reason why checks did not run, and the summary."""
        lines = [*aligned((COLUMNS, *self.rows)), *self.not_run_lines]
        return "\n".join([f"{self.operator}, defined at {self.where}", *lines, self.summary])


class CheckError(PolyopError, AssertionError):
    """One or more checks of an operator failed; ``report`` holds all results."""

    def __init__(self, report: Report) -> None:
        """Make the text: each failed check with the rule that was broken and what was seen."""
        failed = [f"{r.check} ({r.host}): {r.detail}" for r in report.failed]
        text = "\n  ".join(line.replace("\n", "\n    ") for line in failed)
        noun = "check" if len(failed) == 1 else "checks"
        super().__init__(report.operator, f"{len(failed)} {noun} failed\n  {text}", where=report.where)
        self.report = report
