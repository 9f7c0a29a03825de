# ruff: noqa: F821 - output_tensor is a word of the language
"""The inputs that ``check`` draws."""

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
