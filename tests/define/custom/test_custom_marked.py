"""``Custom`` of a function that ``@kernel`` marks: a loop kernel, where it is not said otherwise."""

import numpy as np
import pytest

import polyop
from polyop.define.kernel import python_kernel


def doubled(x):
    y = output_tensor(x.shape, x.dtype)  # noqa: F821 - a word of the language
    for i in range(x.shape[0]):
        y[i] = 2 * x[i]
    return y


@pytest.mark.parametrize("mark", [polyop.kernel(name="custom_marked::doubled"), python_kernel])
def test_without_an_out_shape_it_is_hybrid(mark):
    op = polyop.Custom(mark(doubled))
    assert op.func_type == "hybrid"
    assert op(np.arange(3.0)).tolist() == [0.0, 2.0, 4.0]


def test_with_an_out_shape_it_runs_as_python():
    op = polyop.Custom(python_kernel(doubled), lambda x: x, lambda x: x)
    assert op.func_type == "pyfunc"
    assert op(np.arange(3.0)).tolist() == [0.0, 2.0, 4.0]


def test_both_spellings_of_the_docstring():
    for word in ("docs", "doc"):
        op = polyop.operator(
            f"custom_marked::{word}(Tensor x) -> Tensor", lambda x: x, infer="x", **{word: "It copies."}
        )
        assert op.__doc__ == "It copies."
