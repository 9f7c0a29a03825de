"""Uses of C++ modules that are easy to get wrong: each works or raises a clear error."""

import pathlib
import shutil

import numpy as np
import pytest
import torch

from polyop import CustomOpBuilder
from polyop.core.errors import ArgumentTypeError, GradientError, KernelError, LibraryError

SOURCE = pathlib.Path(__file__).parents[2] / "sources" / "module_edges.cpp"
NOT_RECORDED = "it was computed outside of the Apply of a Function"


@pytest.fixture(scope="session")
def ops():
    return CustomOpBuilder("module_edges", [SOURCE]).load()


def leaf(*values):
    return torch.tensor(values, requires_grad=True)


@pytest.mark.slow
def test_arguments_by_value_of_many_dimensions(ops):
    x = torch.full((1, 1, 2, 1, 3), 2.0, requires_grad=True)
    y = ops.by_value(x)
    for _ in range(2):  # Backward clears what was saved, and can run again
        (gradient,) = torch.autograd.grad(y.sum(), x, retain_graph=True)
        assert torch.equal(gradient, torch.full_like(x, 4 * 2.0**3))


def test_a_returned_argument_does_not_turn_the_arguments_gradient(ops):
    x, w = leaf(1.0, 2.0), leaf(5.0, 7.0)
    same, product = ops.reverse(x, w)
    assert torch.equal(torch.autograd.grad(product.sum(), x, retain_graph=True)[0], w.detach())
    assert torch.equal(torch.autograd.grad(same.sum(), x)[0], -torch.ones(2))
    w = leaf(2.0)
    assert torch.autograd.grad(ops.reverse(w, w)[1].sum(), w)[0] == 4


def test_a_kernel_inside_a_kernel(ops):
    np.testing.assert_array_equal(ops.nested(np.float32([1, 2])), [2, 3])


def test_values_as_arguments_of_a_launch(ops):
    np.testing.assert_array_equal(ops.by_values(np.float32([[1, 2], [3, 4]])), [4, 6])


def test_in_place_for_some_attributes_only(ops):
    x = np.float32([1, -2])
    np.testing.assert_array_equal(ops.maybe(x.copy(), False), [-1, 2])
    assert ops.maybe(x, True) is x
    with pytest.raises(KernelError, match="bind two functions, one that works in place"):
        ops.maybe(x, False)


def test_in_place_has_no_gradient_while_it_is_traced(ops):
    x = leaf(1.0, 2.0)
    (gradient,) = torch.autograd.grad(ops.double_(x * 1).sum(), x)
    assert torch.equal(gradient, torch.full((2,), 2.0))

    def program(x):
        return ops.double_(x * 1).sum()

    with pytest.raises(Exception, match="has no gradient while it is traced"):
        torch.compile(program, backend="aot_eager", fullgraph=True)(x).backward()
    with pytest.raises(GradientError, match="has no gradient while it is traced"):
        torch.func.grad(program)(x.detach())


def test_a_dtype_as_argument_beside_a_gradient(ops):
    x = leaf(1.0, 2.0)
    for run in (ops.to, torch.compile(ops.to, backend="aot_eager", fullgraph=True)):
        y = run(x, wanted=torch.float64)
        assert y.dtype == torch.float64
        (gradient,) = torch.autograd.grad(y.sum(), x)
        assert gradient.dtype == torch.float32
        assert torch.equal(gradient, torch.ones(2))


def test_a_tensor_filled_from_what_was_read(ops):
    assert ops.read_and_filled(leaf(1.0, 2.0))[1] == 3


def test_numpy_arrays_written_before_the_pull(ops):
    x = np.float32([3.0])
    _, pull = ops.by_value.vjp(x)
    x[:] = 100
    np.testing.assert_array_equal(pull(np.ones(1, np.float32))[0], [4 * 27])


def test_an_output_that_overlaps_an_input(ops):
    np.testing.assert_array_equal(ops.overlapping(np.float32([2, 3, 4])), np.float32([4, 9, 16]) / 4)


def test_an_output_larger_than_the_inputs_together(ops):
    np.testing.assert_array_equal(ops.wide(np.float32([1, 2, 3, 4])), [1, 4, 9, 16])


def test_a_number_for_an_unsigned_argument(ops):
    np.testing.assert_array_equal(ops.times_n(np.float32([2]), n=3), [6])


ERRORS = {
    "gradient past a write through a view": (
        lambda ops: ops.through_a_view(leaf(1.0, 2.0)).sum().backward(), GradientError, NOT_RECORDED),
    "gradient past an overwritten tensor": (
        lambda ops: ops.overwritten(leaf(1.0, 2.0)).sum().backward(), GradientError, NOT_RECORDED),
    "gradient of a tensor filled from what was read": (
        lambda ops: ops.read_and_filled(leaf(1.0, 2.0))[1].sum().backward(), GradientError, NOT_RECORDED),
    "a list that is kept as data": (
        lambda ops: ops.keeps_a_list(leaf(1.0)), KernelError, r'saved_data\["both"\] is a list of tensors'),
    "an undefined output": (
        lambda ops: ops.undefined(leaf(1.0)), KernelError, "Forward returned an undefined tensor"),
    "an output larger than the inputs together": (
        lambda ops: ops.wide(np.float32([2])), KernelError, r"\(4,\)"),
    "a negative number for an unsigned argument": (
        lambda ops: ops.times_n(np.float32([2]), n=-1), KernelError, "the number -1 does not fit the unsigned type"),
    "data of another dtype": (
        lambda ops: ops.plain_read(np.ones(2)), KernelError,
        "the data of a tensor of float64 was asked for as float32"),
    "data of another layout": (
        lambda ops: ops.plain_read(np.ones((2, 3), np.float32).T), KernelError, r"use contiguous\(\) first"),
    "a number for a tensor": (lambda ops: ops.times_n(2.0, n=1), ArgumentTypeError, "x"),
}  # fmt: skip
"""Call -> its error and words of the message."""


@pytest.mark.parametrize(("call", "error", "message"), ERRORS.values(), ids=ERRORS)
def test_errors(ops, call, error, message):
    with pytest.raises(error, match=message):
        call(ops)


def test_a_module_for_a_newer_polyop(tmp_path):
    # the header of a later polyop has more functions than this one gives
    headers = tmp_path / "polyop"
    shutil.copytree(pathlib.Path(__file__).parents[3] / "include" / "polyop", headers)
    abi = headers / "module_abi.h"
    abi.write_text(
        abi.read_text().replace("  void (*left)(void);\n", "  void (*left)(void);\n  void (*later)(void);\n")
    )
    source = tmp_path / "later.cpp"
    source.write_text('#include "polyop/ms_extension.h"\nPYBIND11_MODULE(MS_EXTENSION_NAME, m) {}\n')
    with pytest.raises(LibraryError, match="built for a newer polyop than this one"):
        CustomOpBuilder("later", [source], include_paths=[tmp_path]).load()
