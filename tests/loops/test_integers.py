# ruff: noqa: F821 - kernels, whose words are no names here
"""Integers beyond 64 bits: an error names the line where one is folded, and no proof relies on sums that wrap."""

import numpy as np
import pytest

import polyop
from polyop import Custom, CustomRegOp, kernel
from polyop.core.errors import FallbackWarning, InferError, KernelError, PolyopError
from polyop.loops.analysis.affine import linear, text
from polyop.loops.frontend.plain import plain
from polyop.loops.ir.grammar import INT, Const, Op, Var

WIDE = 2**64


def sum_with_a_power(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] + 2**64
    return y


def loop_over_a_power(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = 0
        for j in range(2**70):
            y[i] = x[i] + j
    return y


def product_of_constants(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * (2**40 * 2**40)
    return y


def named_sum(x):
    y = output_tensor(x.shape, x.dtype)
    n = 9223372036854775807 + 1
    for i in range(min(x.shape[0], n)):
        y[i] = x[i]
    return y


def module_constant(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] + WIDE
    return y


def scalar(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        t = 2**63
        t = t + i
        y[i] = t
    return y


def choice(x):
    y = output_tensor(x.shape, "int64")
    for i in range(x.shape[0]):
        y[i] = 2**63 if x[i] > 0 else 1
    return y


def narrow_cast(x):
    y = output_tensor(x.shape, "int32")
    for i in range(x.shape[0]):
        y[i] = int32(2**63)
    return y


def index(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i + 3**50]
    return y


def step(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(0, x.shape[0], 2**65):
        y[i] = x[i]
    return y


def power_of_powers(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] + 9**9**9**9
    return y


def power_in_place(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        n = 2
        n **= 3
        y[i] = x[i] + 3**99
    return y


BEYOND = [
    (sum_with_a_power, 3, "18446744073709551616"),
    (loop_over_a_power, 4, "1180591620717411303424"),
    (product_of_constants, 3, "1208925819614629174706176"),
    (named_sum, 3, "9223372036854775808"),
    (module_constant, 3, "18446744073709551616"),
    (scalar, 3, "9223372036854775808"),
    (choice, 3, "9223372036854775808"),
    (narrow_cast, 3, "9223372036854775808"),
    (index, 3, "717897987691852588770249"),
    (step, 2, "36893488147419103232"),
    (power_of_powers, 3, ""),
    (power_in_place, 5, ""),
]


@pytest.mark.parametrize(("function", "line", "number"), BEYOND, ids=[row[0].__name__ for row in BEYOND])
@pytest.mark.parametrize("of", ["float32", "int64"])
def test_a_constant_beyond_64_bits_is_refused_with_its_line(function, line, number, of):
    with pytest.raises(PolyopError, match="must fit into 64 bits") as caught:
        Custom(function, func_type="hybrid")(np.ones(3, of))
    text = str(caught.value)
    assert number in text
    assert f"test_integers.py:{function.__code__.co_firstlineno + line}\n" in text


def smallest(x):
    y = output_tensor(x.shape, "int64")
    for i in range(x.shape[0]):
        y[i] = -(2**63) + i
    return y


def literal_smallest(x):
    y = output_tensor(x.shape, "int64")
    for i in range(x.shape[0]):
        y[i] = -9223372036854775808 + (2**64 - 2**64)
    return y


def steps_on_the_way(x):
    y = output_tensor(x.shape, "int64")
    for i in range(x.shape[0]):
        y[i] = 2**100 // 2**97 + i + 2**70 % 1000 + (-1) ** 99 + 0**80
    return y


def masked(x):
    y = output_tensor(x.shape, "uint64")
    for i in range(x.shape[0]):
        y[i] = uint64(x[i]) ^ 0xFFFFFFFFFFFFFFFF ^ (2**64 - 1 - 2**60)
    return y


def compared(x):
    y = output_tensor(x.shape, "int64")
    for i in range(x.shape[0]):
        y[i] = 0
        if i < 2**70:
            y[i] = 1
    return y


def unsigned_in_floats(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] + 2**63
    return y


WITHIN = [smallest, literal_smallest, steps_on_the_way, masked, compared, unsigned_in_floats]


@pytest.mark.parametrize("function", WITHIN, ids=lambda f: f.__name__)
def test_constants_are_folded_as_python_does_where_the_result_fits(function):
    x = np.arange(1.0, 5.0)
    with np.errstate(all="ignore"):
        expected = plain(function)(x)
    np.testing.assert_array_equal(Custom(function, func_type="hybrid")(x), expected)


def default(x, seed=2**70):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] + seed
    return y


def test_a_default_beyond_64_bits_is_refused_by_its_name():
    with pytest.raises(
        PolyopError, match="the attribute seed must fit into 64 bits, but got 1180591620717411303424"
    ):
        Custom(default, func_type="hybrid")(np.ones(2))


def wide_temporary(x):
    y = output_tensor(x.shape, x.dtype)
    t = allocate((x.shape[0] * 2**62 * 4,), x.dtype)
    for i in range(x.shape[0]):
        t[i] = x[i]
    for i in range(x.shape[0]):
        y[i] = t[x.shape[0] - 1 - i]
    return y


def wide_output(x):
    y = output_tensor((x.shape[0] * 2**60,), x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i]
    return y


def narrow_again(x):
    y = output_tensor(((x.shape[0] * 2**62) // 2**61,), x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i]
    return y


@pytest.mark.parametrize("function", [wide_temporary, wide_output, narrow_again], ids=lambda f: f.__name__)
def test_sizes_that_64_bits_do_not_hold_are_refused_with_the_tensor(function):
    name = "t" if function is wide_temporary else "y"
    with pytest.raises(
        InferError, match=rf"{name} must be (computed within 62 bits|of at most 2\*\*62 bytes)"
    ):
        Custom(function, func_type="hybrid")(np.arange(6.0))


def registered(function):
    information = CustomRegOp().attr("k", "required", "int").target("CPU").get_op_info()
    return Custom(function, func_type="hybrid", reg_info=information)


def guarded(x, k):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = 0
        if k >= 0 and k + i < x.shape[0]:
            y[i] = x[k + i]
    return y


def test_no_proof_relies_on_a_sum_that_wraps():
    """Proofs know no width: ``k + i < n`` is true once the sum has wrapped, and x[k + i] is far outside."""
    op = registered(guarded)
    np.testing.assert_array_equal(op(np.arange(6.0), 2), [2, 3, 4, 5, 0, 0])
    with (
        pytest.warns(FallbackWarning, match="beyond 2\\*\\*42"),
        pytest.raises(KernelError, match="is outside dimension 0 of x"),
    ):
        op(np.arange(6.0), 2**63 - 1)


def thirds_of_range(x, lo: int, hi: int):
    y = np.zeros((4,), x.dtype)
    for i in range(lo, hi):
        y[0] += x[i * 3]
    return y


def thirds_of_scalar(x, lo: int, hi: int):
    y = np.zeros((4,), x.dtype)
    j = lo
    for i in range(hi - lo):
        y[i] += x[j * 3]
    return y


@pytest.mark.parametrize("function", [thirds_of_range, thirds_of_scalar], ids=lambda f: f.__name__)
def test_nor_on_a_product_with_what_an_attribute_bounds(function):
    op = kernel(function)
    np.testing.assert_array_equal(op(np.arange(1.0, 7), 1, 2), [4, 0, 0, 0])
    with (
        pytest.warns(FallbackWarning, match="beyond 2\\*\\*42"),
        pytest.raises(KernelError, match="is outside dimension 0 of x"),
    ):
        op(np.arange(6.0), 2**62 // 3 * 2, 2**62 // 3 * 2 + 1)


def bare(x, k):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] if i < k else 0
    return y


def test_a_large_attribute_that_is_only_compared_causes_no_fallback():
    np.testing.assert_array_equal(registered(bare)(np.arange(6.0), 2**63 - 1), np.arange(6.0))


def wide_factor(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[(i * 2**62) // 2**62]
    return y


def test_no_proof_relies_on_a_product_that_wraps():
    """For isl the index is ``i``; compiled, it wraps below 0, and unchecked that is memory before the tensor."""
    x = np.arange(1.0, 17.0)
    assert set(Custom(wide_factor, func_type="hybrid")(x)) <= set(x)


def test_no_linear_form_has_a_number_beyond_64_bits():
    i = Var("i", INT)
    for factor, held in ((2**20, True), (2**21, False)):
        product = Op("*", (i, Const(factor, INT)), INT)
        quotient = Op("//", (product, Const(8, INT)), INT)
        assert (linear(product) is not None) == held
        assert (text(quotient, frozenset("i")) is not None) == held


def kinds_of_floats(x):
    y = output_tensor((x.shape[0], 4), "int32")
    total = prod(x[::-1])
    for i in range(x.shape[0]):
        y[i, 0] = isnan(x[i]) + 2 * isinf(x[i]) + 4 * isfinite(x[i])
        y[i, 1] = isfinite(total) and not isnan(i)
        if isnan(total) or isinf(x[i] ** 2):
            y[i, 2] = 1
        y[i, 3] = 7 if isfinite(min(x[i], 1)) else x[i]
    return y


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "int64", "uint64"])
def test_an_integer_is_finite_and_a_number(dtype):
    op = polyop.kernel(kinds_of_floats, name=f"integers::tests_of_{dtype}")
    x = np.array([1, 0, 3, 1, 5]).astype(dtype)
    np.testing.assert_array_equal(op(x), op.python(x))
