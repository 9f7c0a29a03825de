# ruff: noqa: F821 - kernels, whose words are no names here
"""Gradients of kernels that were written to be got wrong, by the interpreter and compiled."""

import numpy as np
import pytest

import polyop
from derive_samples import differences, hard_loops, hard_values

CASES = {f.__name__: (f, t, a) for f, t, a in (*hard_values.CASES, *hard_loops.CASES)}


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


@pytest.mark.slow(6)
@pytest.mark.parametrize("name", CASES)
def test_by_the_interpreter(name):
    function, tensors, attributes = CASES[name]
    derived = differences.Derived(function, arrays_of(tensors), attributes)
    for seed in range(3):
        differences.check_elements(derived, arrays_of(tensors, seed), rough=1e-5)


def test_what_is_kept_is_read_only_where_its_condition_holds():
    function, tensors, _ = CASES["kept_only_where_it_exists"]
    differences.check_elements(differences.Derived(function, arrays_of(tensors)), arrays_of(tensors))


@pytest.mark.parametrize("size", range(5))
def test_what_is_kept_has_no_negative_size(size):
    def late(x):
        y = output_tensor(x.shape, x.dtype)
        t = allocate(x.shape, x.dtype)
        for i in range(x.shape[0]):
            t[i] = x[i]
        for i in range(3, x.shape[0]):
            y[i] = t[i] * t[i] * t[i - 2]
        for i in range(x.shape[0]):
            t[i] = x[i] * 2.0
        for i in range(3, x.shape[0]):
            y[i] += t[i] * t[i]
        return y

    arrays = arrays_of(f"float64 {size}")
    differences.check_elements(differences.Derived(late, arrays), arrays)


def test_what_is_whole_has_no_gradient_and_hides_none():
    def both(x, k):
        y = output_tensor(x.shape, x.dtype)
        n = output_tensor(x.shape, "int32")
        for i in range(x.shape[0]):
            n[i] = int32(x[i] * 3.0) + int32(k[i])
            y[i] = x[i] * n[i]
        return y, n

    arrays = arrays_of("float64 6, int64 6 <6")
    derived = differences.Derived(both, arrays)
    differences.check_elements(derived, arrays)
    weights = derived.weights(derived.outputs(arrays))
    assert [w is None for w in weights] == [False, True]
    assert derived.gradients(arrays, weights)[1] is None


def test_ties():
    """Of equal elements a maximum over a loop hands all to the last, of two values to the first."""

    def largest(x):
        y = output_tensor((2,), x.dtype)
        y[0] = x[0]
        for i in range(x.shape[0]):
            y[0] = max(y[0], x[i])
        y[1] = max(x[0], x[1])
        return y

    arrays = [np.array([2.0, 2.0, 1.0])]
    derived = differences.Derived(largest, arrays)
    (found,) = derived.gradients(arrays, [np.array([5.0, 7.0])])
    np.testing.assert_array_equal(found, [7, 5, 0])


def test_a_number_of_iterations_that_depends_on_data_within_a_bound():
    """A tape has room for as many as there can be."""

    def decayed(x, steps):
        y = output_tensor((x.shape[0],), x.dtype)
        for b in range(x.shape[0]):
            s = x[b, 0]
            for k in range(min(4, steps[b])):
                s = sin(s) * x[b, k]
            y[b] = s
        return y

    arrays = arrays_of("float64 3 4, int64 3 <5")
    derived = differences.Derived(decayed, arrays)
    differences.check_elements(derived, arrays)


def largest(x, w):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        m = -1000.0
        for j in range(x.shape[1]):
            m = max(m, tanh(x[i, j]) * w[j] * w[j] + x[i, j])
        y[i] = m * m
    return y


def largest_of_scalars(x, w):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        m = -1000.0
        for j in range(x.shape[1]):
            t = tanh(x[i, j]) * w[j] * w[j] + x[i, j]
            m = max(m, t)
        y[i] = m * m
    return y


@pytest.mark.slow(2)
@pytest.mark.parametrize("tape", ["auto", "all", "none"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("function", [largest, largest_of_scalars])
def test_a_computed_maximum_is_found_again(function, dtype, tape):
    """The compiler may round what is compared in one way forwards and in another one backwards."""
    import torch

    random = torch.Generator().manual_seed(0)
    x, w = (torch.randn(s, generator=random).to(getattr(torch, dtype)) for s in ((64, 37), (37,)))
    x.requires_grad_()
    op = polyop.Custom(polyop.kernel(function, compile_attrs={"tape": tape}), func_type="hybrid")
    op(x, w).sum().backward()
    assert ((x.grad != 0).sum(1) == 1).all()


@pytest.mark.slow(1)
@pytest.mark.parametrize(
    "name", ["two_gated_states", "indices_of_indices", "maxima_so_far_of_rows", "cholesky"]
)
def test_compiled(name):
    import torch

    function, tensors, attributes = CASES[name]
    op = polyop.Custom(function, func_type="hybrid")
    given = [torch.tensor(a, requires_grad=a.dtype.kind == "f") for a in arrays_of(tensors)]
    assert torch.autograd.gradcheck(lambda *a: op(*a, **attributes), given)
