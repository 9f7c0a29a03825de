# ruff: noqa: F821 - output_tensor is a word of the language
"""The inputs that ``check`` draws."""

import string

import pytest

import polyop
from polyop.testing import samples


@polyop.kernel(name="dims_of_samples::scaled_rows")
def scaled_rows(x, w):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * w[j]
    return y


def test_samples_have_the_dimensions_that_loops_tell():
    x, w = samples.arguments(scaled_rows.operator, (), {}, 0)
    assert (x.shape, w.shape) == ((4, 4), (4,))


@pytest.mark.parametrize("count", [4, 20, 26])
def test_all_dimensions_of_a_rule_have_different_sizes(count):
    names = [*string.ascii_lowercase[:count]]
    rule = f"{', '.join(names)} -> {' '.join(names[:2])}"
    vectors = ", ".join(f"Tensor {name}" for name in names)
    op = polyop.operator(f"dims_of_samples::outer{count}({vectors}) -> Tensor", lambda *xs: xs[0], dims=rule)
    sizes = [x.size for x in samples.arguments(op.operator, (), {}, 0)]
    assert len({*sizes}) == count


def test_sizes_that_fit_are_drawn_for_many_dimensions():
    names = [*"abcdefgh", "n", "k"]
    vectors = ", ".join(f"Tensor {name}" for name in names)
    rule = f"{', '.join(names)} -> n-k+1"
    op = polyop.operator(f"dims_of_samples::valid({vectors}) -> Tensor", lambda *xs: xs[0], dims=rule)
    *_, n, k = samples.arguments(op.operator, (), {}, 0)
    assert n.size >= k.size
