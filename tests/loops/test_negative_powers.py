# ruff: noqa: F821 - kernels, whose words are no names here
"""An integer to a negative power is an error where it is computed, as in NumPy."""

import numpy as np
import pytest

import polyop
from polyop.core.errors import ArgumentTypeError, KernelError
from polyop.loops.derive.forms import batched
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.interpret import interpret


def each(x, z):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = pow(x[i], z[i])
    return y


def where_it_is_one(x, z):
    y = output_tensor(x.shape, "int64")
    for i in range(x.shape[0]):
        y[i] = x[i] ** z[i] if z[i] >= 0 else 7
    return y


def in_a_branch(x, z):
    y = output_tensor(x.shape, "int64")
    for i in range(x.shape[0]):
        v = x[i]
        if z[i] > 1:
            v **= z[i]
        y[i] = v
    return y


def in_place(x, z):
    for i in range(x.shape[0]):
        x[i] = x[i] ** z[i]
    return x


def of_rows(x, z):
    y = output_tensor(x.shape, "int64")
    y[:] = x[:] ** z[:]
    return y


def by_number(x, k: int):
    y = output_tensor(x.shape, "float64")
    for i in range(x.shape[0]):
        if k >= -3:
            y[i] = 2.0 * x[i] ** k
    return y


def for_both_signs(x, k: int):
    y = output_tensor(x.shape, "float64")
    for i in range(x.shape[0]):
        y[i] = x[i] ** k if k >= 0 else 1 / x[i] ** -k
    return y


def of_its_dtype(x, k: int):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] ** k + x[i] ** (i + k)
    return y


def of_a_size(x, k: int):
    n = 2**k
    y = output_tensor((n,), x.dtype)
    for i in range(2**k):
        y[i] = x[i] * 2**i + n
    return y


BASES = np.arange(1, 41)
GOOD = np.arange(40) % 4
BAD = np.where(np.arange(40) == 33, -2, GOOD)
TENSORS = [
    (BASES, GOOD),
    (BASES, BAD),
    (BASES, GOOD.astype(np.uint8)),
    (BASES.astype(np.int32), BAD.astype(np.int32)),
    (BASES.astype(np.int8), BAD.astype(np.int8)),
    (BASES.astype(np.float64), BAD),
    (BASES[:0], BAD[:0]),
]
NUMBERS = [(x, k) for x in (BASES, BASES * 0.5, BASES[:0]) for k in (0, 3, -1, -5)]
CASES = [
    *((each, TENSORS), (where_it_is_one, TENSORS), (in_a_branch, TENSORS[:5]), (in_place, TENSORS)),
    *((of_rows, TENSORS), (by_number, NUMBERS), (for_both_signs, NUMBERS), (of_a_size, NUMBERS[:2])),
]


def outcome(call, arguments, errors, words="negative integer power"):
    """Return what a call gives, or that it raises."""
    try:
        return np.asarray(call(*(a.copy() if isinstance(a, np.ndarray) else a for a in arguments))).tolist()
    except errors as error:
        assert words in str(error) or "an integer to a negative power" in str(error), error
        return "raises"


@pytest.mark.parametrize(("function", "calls"), CASES, ids=lambda c: getattr(c, "__name__", None))
def test_a_negative_power_of_an_integer_raises_where_numpy_does(function, calls):
    kernel = polyop.kernel(function)
    for arguments in calls:
        wanted = outcome(kernel.python, arguments, ValueError)
        assert outcome(kernel, arguments, KernelError) == wanted, [getattr(a, "dtype", a) for a in arguments]


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64"])
def test_a_negative_power_of_an_unsigned_integer_raises(dtype):
    """An attribute of -1 is 255 as a uint8; NumPy refuses the number itself, with an OverflowError."""
    kernel = polyop.kernel(of_its_dtype)
    for k in (2, 0, -1, -3):
        wanted = outcome(kernel.python, (BASES[:3].astype(dtype), k), OverflowError, "out of bounds")
        assert outcome(kernel, (BASES[:3].astype(dtype), k), KernelError) == wanted, k


def test_the_exponents_of_a_batch_are_checked():
    kernel = batched(parse(each, [("int64", 1), ("int64", 1)], {}), (0, 0))
    good = np.stack([GOOD, GOOD])
    (found,) = interpret(kernel, [np.stack([BASES, BASES]), good])
    np.testing.assert_array_equal(found, BASES**good)
    with pytest.raises(IndexError):
        interpret(kernel, [np.stack([BASES, BASES]), np.stack([GOOD, BAD])])


def test_a_negative_number_in_the_text_is_refused_for_integers_alone():
    def reciprocal(x):
        y = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            y[i] = x[i] ** -1
        return y

    kernel = polyop.kernel(reciprocal)
    np.testing.assert_array_equal(kernel(np.array([2.0, 4.0])), [0.5, 0.25])
    with pytest.raises(ArgumentTypeError, match="an integer to a negative power is no integer"):
        kernel(np.array([2, 4]))
