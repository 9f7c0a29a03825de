"""``polyop check``: run :func:`polyop.testing.check` on the operators that a file or module defines."""

from __future__ import annotations

import argparse
import dataclasses
import logging
import os
import sys
import warnings
from typing import Any

from ..core.errors import ArgumentTypeError, ArgumentValueError
from ..core.schema import MISSING
from ..testing import Report, check
from ..testing.report import COLUMNS, FAILED, NOT_RUN, PASSED
from .load import SAMPLES, operators_of
from .terminal import say, say_json, styled

DEVICES = "xla_force_host_platform_device_count"
_STYLES = {PASSED: "green", FAILED: "bold red", NOT_RUN: "dim"}


def add(verbs: Any) -> None:
    """Add the verb to the parser of ``polyop``."""
    parser = verbs.add_parser(
        "check",
        help="check operators: shapes, values, gradients, memory, layouts",
        description="Check every operator that a Python file or module defines. A file may hold "
        f"{SAMPLES}, a dictionary from an operator's name to a tuple of sample inputs, or to a "
        "dictionary of them by argument; other operators are checked on drawn inputs.",
    )
    parser.add_argument(
        "targets", nargs="+", metavar="MODULE_OR_FILE[:OPERATOR]", help="what defines the operators"
    )
    parser.add_argument(
        "--host",
        action="append",
        help="numpy, torch, jax, mindspore or paddle, without it all that are installed; or pyopencl",
    )
    parser.add_argument("--seed", type=int, default=0, help="the seed of drawn values")
    parser.add_argument(
        "--races",
        action="store_true",
        help="only run them on oclgrind's device of OpenCL, which finds races and invalid accesses",
    )
    parser.add_argument("--json", action="store_true", help="print a list of reports, or of races, as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print a report for each operator; return 0, or 1 if a check failed."""
    if options.races:
        from .races import check_races

        if options.host not in (None, ["pyopencl"]):
            rule = "runs operators on arrays of PyOpenCL alone"
            raise ArgumentValueError("--races", rule, f"--host {options.host[0]}", hint="leave out --host")
        return check_races(options.targets, options.seed, as_json=options.json)
    _allow_several_jax_devices()
    _quiet_frameworks()
    ok, reports = True, []
    found = [list(operators_of(target)) for target in options.targets]  # a wrong name is an error at once
    for operators in found:
        for bound, samples in operators:
            if sys.stderr.isatty():
                say(f"checking {bound.name} ...", file=sys.stderr)
            args, named = ((), samples) if isinstance(samples, dict) else (tuple(samples), {})
            keywords = {"hosts": options.host, "seed": options.seed, "raise_on_failure": False}
            try:
                report = check(bound, *args, **keywords, **named)
            except ArgumentTypeError as problem:  # the samples do not fit; go on with the next operator
                say(f"polyop check: {problem}\n  {_how_to_sample(bound)}\n", file=sys.stderr, flush=True)
                ok = False
                continue
            reports.append(report)
            if options.json:  # the list comes at the end, so say meanwhile what is finished
                say(f"{report.operator}: {report.summary}", file=sys.stderr, flush=True)
            else:
                _show(report)
            if not report.ok and not samples and any(row[:3:2] == _DREW_WRONG for row in report.rows):
                say(f"the inputs were drawn; if they do not fit, {_how_to_sample(bound)}\n", file=sys.stderr)
            ok = ok and report.ok
    if options.json:
        say_json([{**dataclasses.asdict(report), "ok": report.ok} for report in reports])
    return 0 if ok else 1


_DREW_WRONG = ("inferred specs", "failed")
"""The check, and its result, that fail where drawn inputs have the wrong number of dimensions."""


def _quiet_frameworks() -> None:
    """Keep log lines and warnings of frameworks about themselves out of the output."""
    os.environ.setdefault("GLOG_minloglevel", "2")  # Paddle's: errors alone
    for name in ("jax", "polyop"):  # Paddle shows all that is logged
        if logging.getLogger(name).level == logging.NOTSET:  # else POLYOP_LOG asks for it
            logging.getLogger(name).setLevel(logging.WARNING)
    warnings.filterwarnings("ignore", module=r"paddle\.")


def _allow_several_jax_devices() -> None:
    """Give JAX three CPU devices, unless the user says how many: the row "mesh" needs them.

    JAX reads the variable when it first needs a device.
    """
    flags = os.environ.get("XLA_FLAGS", "")
    if DEVICES not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} --{DEVICES}=3".strip()


def _how_to_sample(bound: Any) -> str:
    """Return the line that gives samples of an operator, to be written into the file."""
    needed = [a.name for a in bound.schema.arguments if not a.type.is_tensor and a.default is MISSING]
    values = "{" + ", ".join(f'"{name}": ...' for name in needed) + "}" if needed else "(...)"
    return f'give its samples in the file: {SAMPLES} = {{"{bound.name}": {values}}}'


def _show(report: Report) -> None:
    if not sys.stdout.isatty():
        say(f"{report}\n", flush=True)
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(
        *COLUMNS, title=styled(f"{report.operator}, defined at {report.where}"), title_justify="left"
    )
    for check_name, host, status, detail in report.rows:
        table.add_row(styled(check_name), styled(host), styled(status, style=_STYLES[status]), styled(detail))
    console = Console()
    console.print(table)
    for line in report.not_run_lines:
        console.print(styled(line, style=_STYLES[NOT_RUN]))
    console.print(styled(report.summary, style=_STYLES[PASSED if report.ok else FAILED]))
