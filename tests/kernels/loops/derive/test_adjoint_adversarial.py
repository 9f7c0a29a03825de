"""Gradients of kernels that were written to be got wrong, by the interpreter and compiled."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest


def _load(name):
    """Import a file of this folder, which is no package."""
    known = f"loops_derive_{name}"
    if known not in sys.modules:
        spec = importlib.util.spec_from_file_location(known, Path(__file__).with_name(f"{name}.py"))
        sys.modules[known] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[known])
    return sys.modules[known]


differences = _load("differences")
CASES = {f.__name__: (f, t, a) for name in ("hard_values", "hard_loops") for f, t, a in _load(name).CASES}


def arrays_of(tensors, seed=0):
    """Return inputs: reals no two of which are equal, whole numbers some of which are."""
    random = np.random.default_rng([seed, 5])
    found = []
    for text in tensors.split(","):
        dtype, *sizes = text.split()
        shape = tuple(int(s) for s in sizes if s[0] != "<")
        below = [int(s[1:]) for s in sizes if s[0] == "<"]
        found.append(
            random.integers(0, below[0], shape) if below else random.normal(size=shape).astype(dtype)
        )
    return found


@pytest.mark.parametrize("name", CASES)
def test_by_the_interpreter(name):
    function, tensors, attributes = CASES[name]
    derived = differences.Derived(function, arrays_of(tensors), attributes)
    for seed in range(3):
        differences.check_elements(derived, arrays_of(tensors, seed), rough=1e-5)
