"""What a kernel writes: only its outputs and the arguments that the schema declares as written."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernels.library import LibraryKernel
from ..kernels.python import PythonKernel
from .case import BrokenRuleError, Case, Check, NotRunError
from .native import Guarded, run_guarded
from .samples import resized

FILLS = (0xA5, 0x5A, 0x00)


def refused(variant: Case) -> str | None:
    """Return why an operator does not take a variant of the sample, or None when it does."""
    try:
        variant.run()
    except Exception as problem:  # noqa: BLE001 - an infer rule, a kernel or NumPy may refuse in any way
        return f"{type(problem).__name__}: {problem}".splitlines()[0]
    return None


def guard_bands(case: Case) -> str | None:
    """Run the native kernel in guarded buffers, in the sample's sizes and others."""
    _guarded(case)
    remark = None
    for variant in resized(case):
        try:
            variant.prepare()
        except Exception as problem:  # noqa: BLE001 - as above: other sizes may be refused in any way
            remark = f"other sizes are refused: {type(problem).__name__}"
            continue
        try:
            _guarded(variant)
        except RuntimeError as problem:  # a kernel may return an error code for other sizes
            remark = f"other sizes are refused: {problem}".splitlines()[0]
    return remark


def _guarded(case: Case) -> None:
    prepared = case.prepare()
    if not isinstance(prepared.kernel, LibraryKernel):
        raise NotRunError(f"{prepared.kernel} is no native kernel")
    if prepared.kernel.device != "cpu":
        raise NotRunError(f"{prepared.kernel} runs on {prepared.kernel.device}")
    results: list[list[Any]] = []
    for fill in FILLS:
        inputs, outputs = run_guarded(case, prepared, fill, outside=fill)
        _inputs(case, inputs)
        for number, made in enumerate(outputs):
            _border(f"output {number}", made, case)
        results.append([made.array for made in outputs])
    for number, (first, second, _) in enumerate(zip(*results, strict=True)):
        _filled(number, first, second, case)


def _filled(number: int, first: Any, second: Any, case: Case) -> None:
    """Compare outputs whose buffers held different bytes before the kernel ran."""
    width = first.dtype.itemsize
    left, right = (np.frombuffer(x.tobytes(), np.uint8).reshape(-1, width) for x in (first, second))
    stale = np.all(left == FILLS[0], axis=1) & np.all(right == FILLS[1], axis=1)
    rule = f"output {number}: the kernel must write every element of {prepared_spec(first)}"
    if stale.any():
        raise BrokenRuleError(rule, f"{int(stale.sum())} of {first.size} unwritten, for {case}")
    if not np.array_equal(left, right):
        rule = f"output {number}: must depend on the values of the inputs alone"
        raise BrokenRuleError(
            rule,
            f"other results when the memory around the inputs, or in the outputs before the call, differs, for {case}",
        )


def prepared_spec(array: Any) -> str:
    """Return the inferred dtype and shape of an output."""
    return f"{array.dtype.name}{list(array.shape)}, as inferred"


def _border(name: str, made: Guarded, case: Case) -> None:
    offset = made.border()
    if offset is not None:
        seen = f"a write {offset} bytes from its start, for {case}"
        raise BrokenRuleError(f"{name}: the kernel must stay within its {made.array.nbytes} bytes", seen)


def _inputs(case: Case, inputs: list[Guarded | None]) -> None:
    schema = case.operator.schema
    at = 0
    for position in schema.tensor_positions:
        argument, value = schema.arguments[position], case.arguments[position]
        items = value if isinstance(value, (list, tuple)) else (value,)
        for item, made in zip(items, inputs[at : at + len(items)], strict=True):
            if made is not None:
                _border(argument.name, made, case)
                if not argument.type.writes:
                    _unchanged(argument.name, made.array, item)
        at += len(items)


def _unchanged(name: str, after: Any, before: Any) -> None:
    if after.tobytes() != before.tobytes():
        declared = "Tensor(a!)"
        raise BrokenRuleError(f"{name}: an input must not be written unless the schema says {declared} {name}", "a write")


def inputs_kept(case: Case) -> None:
    """Call the operator on writeable arrays and compare the inputs before and after."""
    kernels = case.operator.kernels
    given = case.copy()
    try:
        case.call(given)
    except ValueError as problem:
        if "read-only" in str(problem) and any(isinstance(k, PythonKernel) for k in kernels):
            rule = "an input must not be written unless the schema says Tensor(a!)"
            raise BrokenRuleError(rule, f"a write ({problem})") from None
        raise
    _compare(case, given)


def _compare(case: Case, given: tuple[Any, ...]) -> None:
    for argument, after, before in zip(case.operator.schema.arguments, given, case.arguments, strict=True):
        if argument.type.is_tensor and not argument.type.writes and before is not None:
            pairs = zip(after, before, strict=True) if isinstance(before, (list, tuple)) else [(after, before)]
            for left, right in pairs:
                _unchanged(argument.name, left, right)


def declared_writes(case: Case) -> None:
    """Call the operator and see that each argument declared as written did change."""
    if not case.operator.schema.mutates:
        raise NotRunError("the schema declares no writes")
    given = case.copy()
    case.call(given)
    for argument, after, before in zip(case.operator.schema.arguments, given, case.arguments, strict=True):
        if argument.type.writes and before is not None:
            pairs = zip(after, before, strict=True) if isinstance(before, (list, tuple)) else [(after, before)]
            if all(left.tobytes() == right.tobytes() for left, right in pairs):
                raise BrokenRuleError(f"{argument.name}: the schema says that it is written", "no change")


CHECKS = (
    Check("guard bands", "native", guard_bands),
    Check("inputs unchanged", "numpy", inputs_kept),
    Check("declared writes", "numpy", declared_writes),
)
