"""Derived kernels hold what every kernel does: types that fit, names that are bound, indices that are whole."""

import importlib.util
import sys
from pathlib import Path

import pytest

from polyop.loops.derive.adjoint import adjoint
from polyop.loops.derive.batch import batched
from polyop.loops.derive.saving import saving
from polyop.loops.derive.tangent import tangent
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.verify import violations


def _load(name):
    """Import a file of this folder, which is no package."""
    known = f"loops_derive_{name}"
    if known not in sys.modules:
        spec = importlib.util.spec_from_file_location(known, Path(__file__).with_name(f"{name}.py"))
        sys.modules[known] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[known])
    return sys.modules[known]


OPERATORS = _load("kernels").OPERATORS


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize(("function", "shapes", "whole"), OPERATORS, ids=lambda f: getattr(f, "__name__", ""))
def test_what_is_derived_is_sound(function, shapes, whole, dtype):
    """``whole`` is how many rows the last input, of whole numbers, picks from."""
    count = len(shapes) - bool(whole)
    rows = [("int32" if k >= count else dtype, len(shape)) for k, shape in enumerate(shapes)]
    kernel = parse(function, rows, {})
    moved = (0,) * len(rows)
    made = {
        "gradient": adjoint(kernel, (True,) * len(kernel.outputs)).kernel,
        "in segments": adjoint(kernel, (True,) * len(kernel.outputs), segments=True).kernel,
        "saving": saving(kernel, "all"),
        "tangent": tangent(kernel, tuple(k < count for k in range(len(rows)))),
        "batch": batched(kernel, moved),
    }
    found = {name: violations(part) for name, part in made.items() if part is not None}
    assert all(wrong == [] for wrong in found.values()), found
