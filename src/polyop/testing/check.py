"""``polyop.testing.check``: run every check on an operator, in order, and return the report."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from typing import Any

from ..call.host import host_of
from ..call.padded import DataSizeError
from ..core.errors import HostError, NoDtypeError, PolyopError
from ..core.origin import caller
from ..core.takes import checked_reference
from . import (
    beyond,
    compiled,
    crash,
    determinism,
    dtypes,
    frameworks,
    gradient,
    infer,
    memory,
    mesh,
    samples,
    values,
)
from .case import BrokenRuleError, Case, Check, NotRunError
from .dims import checks as dims_checks
from .report import FAILED, NOT_RUN, PASSED, CheckError, Report, Result

# memory and beyond come early: a kernel that writes outside its outputs must not run in ordinary memory
CHECKS: tuple[Check, ...] = (
    *crash.CHECKS,
    *infer.CHECKS,
    *memory.CHECKS,
    *beyond.CHECKS,
    *dims_checks.CHECKS,
    *values.CHECKS,
    *dtypes.CHECKS,
    *gradient.CHECKS,
    *determinism.CHECKS,
    *compiled.CHECKS,
    *mesh.CHECKS,
)


def check(
    op: Any,
    *args: Any,
    reference: Callable[..., Any] | None = None,
    hosts: Sequence[str] | None = None,
    seed: int = 0,
    rtol: float | None = None,
    atol: float | None = None,
    raise_on_failure: bool = True,
    **attributes: Any,
) -> Report:
    """Run all checks on an operator and return the report.

    ``args``       sample inputs, in schema order: arrays, framework tensors, or specs from
                   which values are drawn. Without any, float32 tensors of shape (3, 4), or of
                   sizes that fit ``dims=``.
    ``reference``  a NumPy function of the same arguments; the operator's own without it.
    ``hosts``      names among ``"numpy"``, ``"torch"``, ``"jax"``, ``"mindspore"``,
                   ``"paddle"``, ``"pyopencl"``; all that are installed, but PyOpenCL only by name.
    ``rtol, atol`` how far values may be apart; without them, by dtype.
    ``attributes`` further arguments of the schema, by name.

    A check that does not apply or cannot run is "not run", with the reason. Raises
    ``CheckError`` with each failed check (not with ``raise_on_failure=False``),
    ``ArgumentTypeError`` for samples that do not fit the schema, ``HostError`` for a host
    that does not exist.

    >>> import polyop
    >>> twice = polyop.operator("doc::twice(Tensor x) -> Tensor", lambda x: x * 2, infer="x")
    >>> check(twice, reference=lambda x: x + x, hosts=["numpy"]).ok
    True
    """
    chosen = frameworks.HOSTS if hosts is None else (hosts,) if isinstance(hosts, str) else tuple(hosts)
    for host in chosen:
        if host not in frameworks.FRAMEWORKS:
            raise HostError("hosts", f"must be among {', '.join(frameworks.FRAMEWORKS)}", repr(host))
    absent = {host: frameworks.absent(host) for host in chosen}
    case = Case(
        bound=op,
        arguments=samples.arguments(op.operator, args, attributes, seed),
        reference=checked_reference(reference, op.operator.schema, caller()) or op.operator.reference,
        hosts=chosen,
        seed=seed,
        user_tolerance=(rtol, atol),
        torch_device=_device(op, args),
    )
    crash.settle(case)
    results: list[Result] = []
    stopped = ""
    for row in CHECKS:
        if row.host in frameworks.ON_REQUEST and row.host not in chosen:
            continue
        reason = _skip(row, case, absent) or stopped
        results.append(Result(row.name, row.host, NOT_RUN, reason) if reason else _run(row, case))
        if results[-1].status == FAILED:
            stopped = stopped or row.stops
    report = Report(op.name, str(op.operator.origin or "unknown"), tuple(results))
    if raise_on_failure and not report.ok:
        raise CheckError(report)
    return report


def _run(row: Check, case: Case) -> Result:
    try:
        remark = row.run(case)
    except BrokenRuleError as problem:
        return Result(row.name, row.host, FAILED, str(problem))
    except Exception as problem:  # noqa: BLE001 - whatever an operator raises is what the check found
        reason = _why_not_run(row, problem)
        if reason is not None:
            return Result(row.name, row.host, NOT_RUN, reason)
        words = f"{_who(problem)} raised {type(problem).__name__}: {problem}"
        return Result(row.name, row.host, FAILED, words)
    return Result(row.name, row.host, PASSED, remark or "")


def _why_not_run(row: Check, problem: Exception) -> str | None:
    """Return why an error tells nothing of the operator: what the check or the framework lacks; or None."""
    match problem:
        case NotRunError():
            return str(problem)
        case DataSizeError():
            return str(problem).partition("\n")[0]
        case NoDtypeError():
            return f"{frameworks.FRAMEWORKS.get(row.host, row.host)} takes no {problem.seen}"
    return None if _who(problem) == _AUTHOR else frameworks.lacking(problem)


def _who(problem: Exception) -> str:
    """Return whose code raised an error: the framework's, this package's, or else that of the operator."""
    frames = [frame for frame, _ in traceback.walk_tb(problem.__traceback__)]
    modules = [frame.f_globals.get("__name__") or "" for frame in frames]
    packages = [module.partition(".")[0] for module in modules]
    if isinstance(problem, PolyopError) or not {*packages} <= {"polyop", *frameworks.FRAMEWORKS}:
        return _AUTHOR  # its code ran
    if modules[-1].startswith(f"{__package__}."):
        return "the check itself"
    return frameworks.FRAMEWORKS.get(packages[-1], _AUTHOR)


_AUTHOR = "it"
"""What a result calls the author of the operator."""


def _skip(row: Check, case: Case, absent: dict[str, str | None]) -> str | None:
    needed = "numpy" if row.host == "native" else row.host
    if needed not in case.hosts:
        return f"hosts= leaves out {needed}"
    if absent[needed] is not None or needed == "torch":
        return absent[needed]
    devices = {kernel.device for kernel in case.operator.kernels}
    if needed in _DEVICES:
        there = {kernel.device for kernel in case.operator.kernels_for(_DEVICES[needed])}
        if not there & {_DEVICES[needed], "any"}:
            return f"no kernel runs on {_DEVICES[needed]}"
    elif not case.has_cpu_kernel:
        return f"the kernels run on {', '.join(sorted(devices))} only"
    return None


_DEVICES = {"pyopencl": "opencl"}
"""Where the tensors of a host are that are not on the CPU."""


def _device(op: Any, args: Sequence[Any]) -> str:
    for value in args:
        host = host_of(value)
        if host is not None and host.name == "torch":
            return str(value.device)
    devices = {kernel.device for kernel in op.operator.kernels}
    return "cpu" if not devices or devices & {"cpu", "any"} else min(devices)
