"""Derived kernels hold what every kernel does: types that fit, names that are bound, indices that are whole."""

import pytest

from derive_samples import kernels
from polyop.loops.derive.forms import adjoint, batched, saving, tangent
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.verify import violations

OPERATORS = kernels.OPERATORS


@pytest.mark.slow(6)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize(("function", "shapes", "whole"), OPERATORS, ids=lambda f: getattr(f, "__name__", ""))
def test_what_is_derived_is_sound(function, shapes, whole, dtype):
    """``whole`` is how many rows the last input, of whole numbers, picks from."""
    count = len(shapes) - bool(whole)
    rows = [("int32" if k >= count else dtype, len(shape)) for k, shape in enumerate(shapes)]
    kernel = parse(function, rows, {})
    moved = (0,) * len(rows)
    forms = {
        "gradient": adjoint(kernel, (True,) * len(kernel.outputs)).kernel,
        "in segments": adjoint(kernel, (True,) * len(kernel.outputs), segments=True).kernel,
        "saving": saving(kernel, "all"),
        "tangent": tangent(kernel, tuple(k < count for k in range(len(rows)))),
        "batch": batched(kernel, moved),
    }
    problems = {name: violations(part) for name, part in forms.items() if part is not None}
    assert all(wrong == [] for wrong in problems.values()), problems
