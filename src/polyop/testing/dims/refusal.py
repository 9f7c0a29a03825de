"""Calls whose sizes do not fit ``dims=``: each has to be refused before a kernel runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from ...core.dims.dims import Dims
from ...core.dims.entry import Name, Number
from ...core.errors import InferError
from ..case import Array, Case, first_line
from .slices import ELLIPSIS, argument_of, entries


def not_refused(case: Case, dims: Dims) -> tuple[list[str], int]:
    """Return a line for each wrong call that is not refused with ``InferError``, and how many were tried."""
    problems, count = [], 0
    for what, variant in misfits(case, dims):
        count += 1
        try:
            variant.prepare()
        except InferError:
            continue
        except Exception as problem:  # noqa: BLE001 - any other error is what the check found
            problems.append(f"{what}: must be refused with InferError, but got {first_line(problem)}")
            continue
        problems.append(f"{what}: must be refused, but a kernel would run on ({variant})")
    return problems, count


def misfits(case: Case, dims: Dims) -> Iterator[tuple[str, Case]]:
    """Yield (what is wrong, case) for each axis that has to fit another size, enlarged by one."""
    tensors = [(name, value, entries(case, dims)[argument_of(name)]) for name, value in case.tensors()]
    uses = Counter(name for _, _, entry in tensors for name in entry.names())
    uses.update(case.attributes().keys())  # a dimension that an attribute gives has to fit, too
    for name, value, entry in tensors:
        leading = value.ndim - len(entry.dimensions)
        if entry.ellipsis and uses[ELLIPSIS] > 1:
            if leading:
                yield f"{name}: dimension ... enlarged", _replaced(case, name, _enlarged(value, 0))
            yield f"{name}: one dimension more in ...", _replaced(case, name, np.stack([value, value]))
        if not entry.ellipsis:
            yield f"{name}: one dimension more", _replaced(case, name, np.stack([value, value]))
        for axis, size in enumerate(entry.dimensions, leading):
            if isinstance(size, Number) or (isinstance(size, Name) and uses[size.name] > 1):
                yield f"{name}: dimension {size} enlarged", _replaced(case, name, _enlarged(value, axis))


def _enlarged(value: Array, axis: int) -> Array:
    """Return an array with one more element along an axis, equal to its last ones."""
    size = value.shape[axis]
    if size == 0:
        return np.zeros((*value.shape[:axis], 1, *value.shape[axis + 1 :]), value.dtype)
    return np.take(value, [*range(size), size - 1], axis)


def _replaced(case: Case, name: str, array: Array) -> Case:
    return case.mapped(lambda other, value: array if other == name else value)
