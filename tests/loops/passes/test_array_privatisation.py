# ruff: noqa: F821 - kernels, whose words are no names here
"""Array privatisation: a private buffer is used only inside the loops that own it, in each copy of them."""

from dataclasses import replace

import numpy as np
import pytest

from polyop.loops.frontend.parse import parse
from polyop.loops.ir.interpret import interpret
from polyop.loops.ir.verify import unowned, violations
from polyop.loops.passes import index_set_splitting as splitting
from polyop.loops.pipeline import PIPELINE, schedule
from polyop.loops.runner import Pass


@pytest.fixture
def scheduled(programs):
    """A kernel whose outer loop owns a row, and was split into three copies."""
    kernel = parse(programs.private.filled_then_read_under_if, [("float32", 2)], {})
    return schedule(kernel)


def test_each_copy_of_a_loop_owns_a_buffer_of_its_own(scheduled):
    assert scheduled.owners == {"t": ("j",), "t_low1": ("j_low1",), "t_high1": ("j_high1",)}
    assert unowned(scheduled.kernel, scheduled.kernel, scheduled.owners) == []


def test_a_copy_that_uses_the_buffer_of_another_is_refused(scheduled):
    shared = {**scheduled.owners, "t_low1": ("j",)}
    faults = unowned(scheduled.kernel, scheduled.kernel, shared)
    assert len(faults) == 2  # the store and the load
    assert all("t_low1 is used outside of loop j, which owns it" in fault for fault in faults)


def test_a_buffer_without_its_axis_must_be_private(scheduled):
    kernel = scheduled.kernel
    t = kernel.buffers["t"]
    before = replace(kernel, buffers={**kernel.buffers, "t": replace(t, shape=(*t.shape, *t.shape))})
    owners = {name: loops for name, loops in scheduled.owners.items() if name != "t"}
    assert unowned(before, kernel, owners) == ["t lost an axis and has no owner"]


def index_set_splitting(program):
    """The pass, with a fault: all copies of the loop own the buffer of the first."""
    split = splitting.index_set_splitting(program)
    return split.with_(owners=dict.fromkeys(split.owners, program.owners["t"]))


def test_a_kernel_with_such_a_fault_is_not_compiled(programs):
    passes = [Pass(index_set_splitting, "") if one.name == "index_set_splitting" else one for one in PIPELINE]
    kernel = parse(programs.private.filled_then_read_under_if, [("float32", 2)], {})
    with pytest.raises(AssertionError, match="which owns it"):
        schedule(kernel, passes=passes)


def reads_itself_first(x):
    y = output_tensor(x.shape, x.dtype)
    t = allocate(x.shape, x.dtype)
    for i in range(x.shape[0]):
        t[i] = t[i] * 2.0 + x[i]
        y[i] = t[i]
    return y


def test_a_scalar_that_reads_itself_first_starts_as_zero():
    """Its first assignment reads it; without the zero it would read an undefined value."""
    kernel = schedule(parse(reads_itself_first, [("float64", 1)], {})).kernel
    assert violations(kernel) == []
    (x,) = arrays = [np.array([1.0, 2.0, 3.0])]
    np.testing.assert_array_equal(interpret(kernel, arrays)[0], x)
