"""A sum in a register is the sum of its own loop, or goes on with the element where the loop is a strip of another."""
# ruff: noqa: F821 - the language's words are not names of this module

import pytest

from polyop.loops.frontend.parse import parse
from polyop.loops.ir.printing import shown
from polyop.loops.pipeline import schedule


def rows(x):
    y = output_tensor((1,), x.dtype)
    z = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        z[i] = x[i, 0]
        for k in range(x.shape[1]):
            y[0] += x[i, k]
    return y, z


def strips(x):
    y = output_tensor((1,), x.dtype)
    z = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        z[i] = x[i, 0]
        for k in range(8 * i, min(8 * i + 8, x.shape[1])):
            y[0] += x[0, k]
    return y, z


@pytest.mark.parametrize(("function", "is_partial"), [(rows, True), (strips, False)])
def test_a_strip_of_an_outer_sum_is_no_sum_of_its_own(function, is_partial):
    texts = {}
    kernel = parse(function, [("float32", 2)], {})
    schedule(kernel, watch=lambda one, program, _: texts.update({one.name: shown(program.kernel)}))
    assert ("y[0] += y_acc1" in texts["scalar_replacement"]) == is_partial
    assert ("y[0] = y_acc1" in texts["scalar_replacement"]) != is_partial
