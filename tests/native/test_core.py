"""The native core with kernels and arguments that misbehave."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polyop
from polyop.core.dtypes import dtype
from polyop.core.spec import Spec
from polyop.kernels.c_function import ROW_OF_DTYPE

X = np.ones(3, np.float32)
TWICE = """
#include "polyop/abi.h"
int twice_or_fail(int n, void **params, int *ndims, int64_t **shapes, const char **dtypes, void *s, void *extra) {
  if (params[0] == 0) return polyop_fail(extra, "no tensor");
  for (int64_t i = 0; i < shapes[0][0]; ++i) ((float *)params[1])[i] = 2 * ((float *)params[0])[i];
  return 0;
}
"""


def make(library: Path, name: str, arguments: str = "Tensor x") -> Any:
    return polyop.operator(f"core_{name}::{name}({arguments}) -> Tensor", f"{library}:{name}", infer="x")


def test_a_text_without_a_failure_is_not_the_next_ones_error(library: Path) -> None:
    make(library, "says_and_succeeds")(X)
    with pytest.raises(polyop.PolyopError, match="the kernel returned 9; any value other than 0"):
        make(library, "fails_silently")(X)


def test_an_error_text_that_is_not_utf8(library: Path) -> None:
    with pytest.raises(polyop.PolyopError, match=r"the kernel returned 7 \(caf\ufffd\)"):
        make(library, "fails_in_latin1")(X)


def test_a_list_that_holds_itself(library: Path) -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(polyop.PolyopError, match="by"):
        make(library, "twice", "Tensor x, int[] by")(X, endless)


def test_a_list_that_changes_while_the_kernel_runs(library: Path) -> None:
    # infer empties the list after the core has read its tensors, and before the kernel runs
    xs = [np.full(100_000, i, np.float32) for i in range(20)]

    def infer(specs: Any) -> Any:
        xs.clear()
        return specs[0], specs[0]

    two = polyop.operator("core::two(Tensor[] xs) -> (Tensor, Tensor)", f"{library}:two", infer=infer)
    total, count = two(xs)
    assert not xs
    assert (total == sum(range(20))).all()
    assert (count == 20).all()


def test_a_launch_with_pointers_of_its_caller() -> None:
    kernel = polyop.source(code=TWICE, function="twice_or_fail", language="c")
    spec = Spec((3,), dtype("float32"))
    launch = kernel.launch((spec,), (spec,), {})
    x, y, row = np.arange(3, dtype=np.float32), np.zeros(3, np.float32), ROW_OF_DTYPE["float32"]
    given = [(a.ctypes.data, a.shape, row) for a in (x, y)]
    assert launch.call_raw(given, 0) == (0, "", False)
    np.testing.assert_array_equal(y, 2 * x)
    assert launch.call_raw([(0, (), -1), given[1]], 0) == (1, "no tensor", False)
