"""Convert results of 64 bits to 32 for a runtime without 64-bit types: JAX in its default mode.

    int64, uint64         ->  int32, uint32          each value is checked: one that does not fit is an error
    float64, complex128   ->  float32, complex64     rounded, as JAX rounds them

The kernel writes what it always writes, and a copy is made for the runtime: here for Python kernels, in
csrc/narrow.cc for the others.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from ..core.dtypes import dtype
from ..core.errors import KernelError
from ..core.spec import Spec
from .operator import Operator

NARROW = {"int64": "int32", "uint64": "uint32", "float64": "float32", "complex128": "complex64"}


def narrowed(spec: Spec) -> Spec:
    """Return a spec with the dtype of 32 bits that stands for one of 64; any other spec as it is."""
    name = NARROW.get(spec.dtype.name)
    return spec if name is None else dataclasses.replace(spec, dtype=dtype(name))


def is_narrowed(wide: Any, narrow: Any) -> bool:
    """Whether a dtype stands for a wider one."""
    return NARROW.get(str(wide)) == str(narrow)


def cast(operator: Operator, number: int, value: Any, to: Any) -> Any:
    """Return output ``number``, an array, in the dtype that stands for its own.

    Raises ``KernelError`` for an integer that does not fit.
    """
    if value.dtype.kind in "iu" and value.size:
        limits = np.iinfo(to)
        low, high = int(value.min()), int(value.max())
        if low < limits.min or high > limits.max:
            raise unfit(operator, number, high if high > limits.max else low, dtype(value.dtype).name)
    with np.errstate(over="ignore"):  # a float beyond the greatest is infinite, as in JAX
        return value.astype(to)


def unfit(operator: Operator, number: int, value: int, wide: str) -> KernelError:
    """Return the error for an output that has an integer that does not fit."""
    subject = f"{operator.name}: output {number}"
    rule = (
        f"is {wide}, given as {NARROW[wide]} because JAX has 64-bit types switched off; a value does not fit"
    )
    hint = 'jax.config.update("jax_enable_x64", True) keeps 64 bits'
    return KernelError(subject, rule, value, where=operator.origin, hint=hint)
