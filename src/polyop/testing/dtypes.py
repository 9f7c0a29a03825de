"""Run an operator in every dtype that its kernels or its information declare."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.dtypes import DType, dtype
from .case import Case, Check, NotRunError, one_line
from .compare import near, same_specs
from .samples import draw, registered_dtypes


def registered(case: Case) -> str | None:
    """Run each declared dtype; compare with the reference, or with the results for the sample's dtype."""
    kinds = registered_dtypes(case.operator)
    if not kinds:
        raise NotRunError("neither a kernel nor the information names dtypes")
    refused: list[str] = []
    for kind in kinds:
        variant = converted(case, kind)
        try:
            outputs = variant.prepare().outputs
        except Exception as problem:  # noqa: BLE001 - inputs of several dtypes may not all be converted to one
            refused.append(f"{kind}: {one_line(problem)}")
            continue
        results = variant.run()
        like = [np.empty(spec.shape, spec.dtype.numpy) for spec in outputs]
        same_specs(f"the operator for {variant}", results[: len(like)], like, "the infer rule")
        _values(variant, case, kind, results)
    if len(refused) == len(kinds):
        raise NotRunError(f"refused for this sample: {refused[0]}")
    return f"refused: {'; '.join(refused)}" if refused else ", ".join(map(str, kinds))


def _values(variant: Case, case: Case, kind: DType, results: list[Any]) -> None:
    expected, other = variant.expected(), "the reference"
    if expected is None:
        if not (kind.is_floating and all(dtype(x.dtype).is_floating for _, x in case.tensors())):
            return
        expected, other = case.run(), "the sample's own dtype"
    for number, (left, right) in enumerate(zip(results, expected, strict=True)):
        tolerance = max(
            variant.tolerance(left.dtype), variant.tolerance(kind), variant.tolerance(right.dtype)
        )
        near(f"the operator for {kind}", number, left, right, tolerance=tolerance, other=other)


def converted(case: Case, kind: DType) -> Case:
    """Return the case with ``kind`` in place of the dtype of its first tensor, wherever that occurs."""
    rng = case.rng("dtypes")
    leading = next((dtype(value.dtype) for _, value in case.tensors()), kind)

    def change(_: str, value: Any) -> Any:
        if value.dtype != leading.numpy:
            return value
        if leading.is_floating and kind.is_floating:
            return value.real.astype(kind.numpy) if kind.kind == "float" else value.astype(kind.numpy)
        return draw(value.shape, kind, rng)

    return case.mapped(change)


CHECKS = (Check("registered dtypes", "numpy", registered),)
