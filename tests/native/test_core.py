"""The native core with kernels and arguments that misbehave."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polyop

X = np.ones(3, np.float32)


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
