# ruff: noqa: F821 - kernels, whose words are no names here
"""A kernel must not be wrapped by a decorator that does work, because only the function inside is compiled."""

import functools
import re

import numpy as np
import pytest

import polyop
from polyop import Custom, CustomRegOp, custom_info_register
from polyop.core.errors import UnsupportedError


def doubled(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = 2 * x[i]
    return y


def shifting(function):
    @functools.wraps(function)
    def shifted(x):
        return function(x + 1)

    return shifted


@pytest.mark.parametrize(
    ("wrapper", "words"),
    [
        (shifting(doubled), r"shifted \(.*test_wrapped.py:\d+\)"),
        (functools.lru_cache(doubled), "functools._lru_cache_wrapper"),
        (polyop.kernel(doubled), None),
        (custom_info_register(CustomRegOp().target("CPU").get_op_info())(polyop.kernel(doubled)), None),
        (polyop.kernel(polyop.kernel(doubled)), None),
    ],
    ids=["functools.wraps", "lru_cache", "kernel", "information", "kernel twice"],
)
def test_a_wrapper_is_refused_by_name_and_polyop_s_own_are_not(wrapper, words):
    x = np.arange(3.0)
    if words is None:
        np.testing.assert_array_equal(Custom(wrapper, func_type="hybrid")(x), 2 * x)
        return
    with pytest.raises(UnsupportedError, match=words) as caught:
        Custom(wrapper, func_type="hybrid")(x)
    text = str(caught.value)
    assert text.startswith("the loop kernel doubled: must not be wrapped")
    assert re.search(r"defined at .*test_wrapped.py:\d+", text)
    assert text.endswith("pass the function inside: doubled.__wrapped__")
    np.testing.assert_array_equal(Custom(wrapper.__wrapped__, func_type="hybrid")(x), 2 * x)


def test_a_wrapper_inside_the_kernel_decorator_is_refused_where_it_stands():
    with pytest.raises(UnsupportedError, match="must not be wrapped"):
        polyop.kernel(shifting(doubled))


def test_a_wrapper_around_the_kernel_decorator_is_refused():
    with pytest.raises(UnsupportedError, match="must not be wrapped"):
        Custom(shifting(polyop.kernel(doubled)), func_type="hybrid")
