"""Compare real shapes and dtypes with inferred ones, in several sizes, and trace symbolic sizes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..call.padded import refuse_data_sizes
from ..core.infer import DefaultRule, ShapeAndDtype
from ..core.sizes import data_sizes_of, real_shape
from ..core.spec import Spec
from ..kernels.python import PythonKernel
from .case import BrokenRuleError, Case, Check, NotRunError, as_list, one_line, spec_of
from .crash import must_refuse_politely
from .sizes import resized


def real_against_inferred(case: Case) -> str | None:
    """Compare the outputs of a Python kernel and of the reference with the inferred specs.

    A native kernel writes into outputs of the inferred sizes; the check "guard bands" covers it.
    """
    compare_specs(case)
    remark = None
    for variant in resized(case):
        must_refuse_politely(variant)
        try:
            variant.prepare()
        except Exception as problem:  # noqa: BLE001 - an infer rule may refuse other sizes in any way
            remark = f"other sizes are refused: {one_line(problem)}"
            continue
        remark = compare_specs(variant, lenient=True) or remark
    return remark


def compare_specs(case: Case, *, lenient: bool = False) -> str | None:
    """Compare the outputs of a kernel that makes them, and of the reference, with the inferred specs.

    Native kernels are run if the operator has ``dims=``.

    Raises ``BrokenRuleError`` if they differ. With ``lenient``, sizes that the kernel or the reference
    refuses are no error; the remark that is returned says so.
    """
    prepared = case.prepare()
    expected = prepared.outputs
    produced: list[tuple[str, list[Any]]] = []  # by the kernel, by the reference
    try:
        if isinstance(prepared.kernel, PythonKernel) and not prepared.kernel.fills:
            produced.append((str(prepared.kernel), _result(prepared.kernel, case)))
        elif prepared.kernel.allocates and case.operator.dims is not None:
            produced.append((str(prepared.kernel), as_list(case.run())[: len(expected)]))
        reference = case.expected()
    except Exception as problem:
        if not lenient:
            raise
        return f"other sizes are refused: {one_line(problem)}"
    if reference is not None:
        produced.append(("the reference", reference[: len(expected)]))
    for what, outputs in produced:
        _same(what, outputs, expected, case)
    return None


def _result(kernel: PythonKernel, case: Case) -> list[Any]:
    views = case.map(lambda _, value: value.item() if kernel.scalars and value.ndim == 0 else value.copy())
    return as_list(kernel.function(*views, **case.operator.attributes))


def _same(what: str, outputs: list[Any], expected: tuple[Spec, ...], case: Case) -> None:
    if len(outputs) != len(expected):
        raise BrokenRuleError(
            f"the infer rule gives {len(expected)} outputs", f"{len(outputs)} from {what}, for {case}"
        )
    for number, (value, spec) in enumerate(zip(outputs, expected, strict=True)):
        if isinstance(value, (bool, int, float, complex)):  # takes the inferred dtype
            value = np.asarray(value, spec.dtype.numpy)  # noqa: PLW2901
        if not isinstance(value, (np.ndarray, np.generic)):
            raise BrokenRuleError(f"output {number} of {what} must be an array", type(value).__name__)
        if not _fits(spec_of(value), spec):
            rule = f"output {number}: the infer rule gives {spec}"
            raise BrokenRuleError(rule, f"{spec_of(value)} from {what}, for {case}")


def _fits(seen: Spec, expected: Spec) -> bool:
    """Whether a spec is the inferred one, whose sizes may depend on data."""
    if data_sizes_of(expected.shape, seen.shape) is None:
        return False
    return replace(expected, shape=real_shape(expected.shape, seen.shape)) == seen


def symbolic_sizes(case: Case) -> str | None:
    """Trace the operator with PyTorch's fake tensors; no size may become a number."""
    rule = case.operator.infer
    if isinstance(rule, ShapeAndDtype) and isinstance(rule.out_shape, DefaultRule):
        raise NotRunError("InferShape of the library is compiled code and sees numbers, never symbols")
    refuse_data_sizes(case.operator, "this check compares sizes that are traced")
    if case.bound.is_module and case.operator.dims is None:
        raise NotRunError(
            "Forward is compiled code and sees numbers: another size is traced again, without dims="
        )
    if not any(value.ndim for _, value in case.tensors()):
        raise NotRunError("the sample has no sizes")
    variant = next(resized(case), case)
    try:
        expected = variant.prepare().outputs
    except Exception:  # noqa: BLE001 - other sizes are refused: the sample's own then
        variant, expected = case, case.prepare().outputs
    from .frameworks import torch_compiler

    torch_compiler.check_symbolic(variant, expected)
    return None


CHECKS = (
    Check("inferred specs", "numpy", real_against_inferred, "the inferred specs are wrong"),
    Check("symbolic sizes", "torch", symbolic_sizes),
)
