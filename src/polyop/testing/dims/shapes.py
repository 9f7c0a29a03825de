"""The shapes that a kernel and the reference return, beside those of the rule, in small sizes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from ...core.dims.dims import Dims
from ...core.dims.infer import DisagreementError
from ...core.errors import PolyopError
from ...core.texts import first_line
from ...kernels.base import LoopKernelBase
from ...kernels.python import PythonKernel
from ..case import BrokenRuleError, Case, NotRunError
from ..infer import compare_specs
from .slices import Dimension, resized, sizes_of
from .smallest import limited, resizable

SIZES = (1, 2, 3, 4)
"""The sizes of each dimension, one by one."""


def compare_shapes(case: Case, dims: Dims) -> str:
    """Compare shapes, the smallest ones first; raises ``BrokenRuleError`` with the first that differs."""
    if case.reference is None and not _gives_shapes(case.prepare().kernel):
        raise NotRunError("a native kernel writes into outputs of these shapes: see guard bands")
    refusals = []
    count = 0
    for variant in small_cases(case, dims):
        count += 1
        refusal = compare_specs(variant, lenient=True)
        if refusal is not None:
            refusals.append(refusal)
    if len(refusals) == count:
        raise NotRunError(refusals[-1] if refusals else "no dimension can have another size")
    return f"in {count - len(refusals)} sizes"


def _gives_shapes(kernel: Any) -> bool:
    """Whether a kernel, or its library, says what the shapes of its outputs are."""
    if isinstance(kernel, PythonKernel):
        return not kernel.fills
    if kernel.allocates:
        return True
    return kernel.native and not isinstance(kernel, LoopKernelBase) and kernel.has_infer_shape


def small_cases(case: Case, dims: Dims) -> Iterator[Case]:
    """Yield the case with each dimension in a few sizes, those that the rule accepts."""
    own, tried = sizes_of(case, dims), set()
    names = [name for name in dims.names if name not in case.attributes() and own.get(name)]
    for size, name in itertools.product(SIZES, names):
        shrinkable = resizable(case, dims, name)
        smaller = {key: limited(value, size) if key in shrinkable else value for key, value in own.items()}
        for others in (smaller, own):
            sizes = Dimension(name).with_size(others, size)
            key = tuple(sorted(sizes.items()))
            variant = resized(case, dims, sizes)
            if key not in tried and _is_accepted(variant):
                yield variant
            tried.add(key)


def _is_accepted(variant: Case) -> bool:
    """Whether the rule gives outputs that have an element: a kernel may refuse a window beyond its tensor.

    Raises ``BrokenRuleError`` where a function that infers beside ``dims=`` gives other shapes.
    """
    try:
        outputs = variant.prepare().outputs
    except DisagreementError as problem:
        raise BrokenRuleError(f"{first_line(problem)}, for {variant}") from problem
    except PolyopError:
        return False
    return all(0 not in spec.shape for spec in outputs)
