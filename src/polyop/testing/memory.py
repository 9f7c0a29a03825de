"""Check what a kernel writes: its outputs and the arguments that the schema declares as written, no more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.errors import KernelError
from ..kernels.c_function import CFunctionKernel
from ..kernels.python import PythonKernel
from .case import BrokenRuleError, Case, Check, NotRunError, one_line, spec_of
from .native import Guarded, run_guarded
from .sizes import resized

FILLS = (0xA5, 0x5A)
"""Two fills of fresh memory: a byte that has both, one in each run, was not written by the kernel."""


def guard_bands(case: Case) -> str | None:
    """Run the native kernel in guarded buffers, in the sample's sizes and others."""
    return _in_sizes(case, _guarded)


def depends_on_inputs_alone(case: Case) -> str | None:
    """Run the native kernel twice, with different bytes around its inputs and in its outputs before."""
    return _in_sizes(case, _stale)


def _in_sizes(case: Case, judge: Callable[[Case, CFunctionKernel], None]) -> str | None:
    kernel = case.prepare().kernel
    if not isinstance(kernel, CFunctionKernel):
        what = "allocates its outputs itself" if case.bound.is_module else "is no native kernel"
        raise NotRunError(f"{kernel} {what}")
    if kernel.device != "cpu":
        raise NotRunError(f"{kernel} runs on {kernel.device}")
    judge(case, kernel)
    remark = None
    for variant in resized(case):
        try:
            other = variant.prepare().kernel
        except Exception as problem:  # noqa: BLE001 - an infer rule may refuse other sizes in any way
            remark = f"other sizes are refused: {one_line(problem)}"
            continue
        if isinstance(other, CFunctionKernel):
            try:
                judge(variant, other)
            except KernelError as problem:  # it may return an error code for other sizes
                remark = f"other sizes are refused: {one_line(problem)}"
    return remark


def _guarded(case: Case, kernel: CFunctionKernel) -> None:
    results: list[list[Any]] = []
    for fill in FILLS:
        inputs, outputs = run_guarded(case, case.prepare(), kernel, fill)
        _inputs(case, inputs)
        for number, output in enumerate(outputs):
            _border(f"output {number}", output, case)
        results.append([output.array for output in outputs])
    for number, pair in enumerate(zip(*results, strict=True)):
        left, right = (np.frombuffer(x.tobytes(), np.uint8).reshape(-1, x.dtype.itemsize) for x in pair)
        stale = np.all(left == FILLS[0], axis=1) & np.all(right == FILLS[1], axis=1)
        if stale.any():
            rule = f"output {number}: the kernel must write every element of {spec_of(pair[0])}, as inferred"
            raise BrokenRuleError(rule, f"{int(stale.sum())} of {stale.size} unwritten, for {case}")


def _stale(case: Case, kernel: CFunctionKernel) -> None:
    first, second = (run_guarded(case, case.prepare(), kernel, fill)[1] for fill in FILLS)
    for number, (left, right) in enumerate(zip(first, second, strict=True)):
        if left.array.tobytes() != right.array.tobytes():
            rule = f"output {number}: must depend on the values of the inputs alone"
            seen = (
                "other results when the bytes around the inputs, and in the outputs before the call, differ"
            )
            raise BrokenRuleError(rule, f"{seen}, for {case}")


def _border(name: str, guarded: Guarded, case: Case) -> None:
    offset = guarded.border()
    if offset is not None:
        seen = f"a write {offset} bytes from its start, for {case}"
        raise BrokenRuleError(f"{name}: the kernel must stay within its {guarded.array.nbytes} bytes", seen)


def _inputs(case: Case, inputs: list[Guarded | None]) -> None:
    schema = case.operator.schema
    at = 0
    for position in schema.tensor_positions:
        argument, value = schema.arguments[position], case.arguments[position]
        items = value if isinstance(value, (list, tuple)) else (value,)
        for item, guarded in zip(items, inputs[at : at + len(items)], strict=True):
            if guarded is not None:
                _border(argument.name, guarded, case)
                if not argument.type.writes:
                    _unchanged(argument.name, guarded.array, item)
        at += len(items)


def _unchanged(name: str, after: Any, before: Any) -> None:
    if after.tobytes() != before.tobytes():
        declared = "Tensor(a!)"
        raise BrokenRuleError(
            f"{name}: an input must not be written unless the schema says {declared} {name}", "a write"
        )


def inputs_unchanged(case: Case) -> None:
    """Call the operator on writeable arrays and compare the inputs before and after."""
    kernels = case.operator.kernels
    arguments = case.copy()
    try:
        case.call(arguments)
    except ValueError as problem:
        if (
            not case.operator.schema.mutates
            and "read-only" in str(problem)
            and any(isinstance(k, PythonKernel) for k in kernels)
        ):
            rule = "an input must not be written unless the schema says Tensor(a!)"
            raise BrokenRuleError(rule, f"a write ({problem})") from None
        raise
    _compare(case, arguments)


def _compare(case: Case, arguments: tuple[Any, ...]) -> None:
    schema = case.operator.schema
    for argument, after, before in zip(schema.arguments, arguments, case.arguments, strict=True):
        if argument.type.is_tensor and not argument.type.writes and before is not None:
            pairs = (
                zip(after, before, strict=True) if isinstance(before, (list, tuple)) else [(after, before)]
            )
            for left, right in pairs:
                _unchanged(argument.name, left, right)


def declared_writes(case: Case) -> None:
    """Call the operator; each argument that the schema declares as written must have changed."""
    schema = case.operator.schema
    if not schema.mutates:
        raise NotRunError("the schema declares no writes")
    arguments = case.copy()
    case.call(arguments)
    for argument, after, before in zip(schema.arguments, arguments, case.arguments, strict=True):
        if argument.type.writes and before is not None:
            pairs = (
                zip(after, before, strict=True) if isinstance(before, (list, tuple)) else [(after, before)]
            )
            if all(left.tobytes() == right.tobytes() for left, right in pairs):
                raise BrokenRuleError(f"{argument.name}: the schema says that it is written", "no change")


CHECKS = (
    Check("guard bands", "native", guard_bands, "the kernel failed in guarded memory"),
    Check("inputs alone", "native", depends_on_inputs_alone),
    Check("inputs unchanged", "numpy", inputs_unchanged, "the operator failed on the sample"),
    Check("declared writes", "numpy", declared_writes),
)
