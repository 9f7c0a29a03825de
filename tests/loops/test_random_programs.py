# ruff: noqa: F821 - kernels, whose words are no names here
"""Random expressions, ranges and programs: the interpreter gives the results of plain Python."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from polyop.loops.frontend.language import BYTE_FLOATS, NUMBERS
from polyop.loops.frontend.parse import parse
from polyop.loops.frontend.plain import plain
from polyop.loops.ir.interpret import interpret
from polyop.loops.ir.verify import violations

numpy_2 = pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.0.0",
    reason="NumPy 1 promotes Python numbers by their value; a kernel promotes as NumPy 2",
)


def values(name, shape, seed=0):
    """Small numbers, negative ones too where the dtype has them."""
    random = np.random.default_rng(seed)
    low = 0 if name.startswith(("u", "bool")) else -4
    return random.integers(low, 5, shape).astype(np.dtype(getattr(ml_dtypes, name, name)))


LEAVES = st.sampled_from(["x[i]", "z[i]", "i", "2", "0.5", "3", "x[0]"])
BINARY = [
    "{} + {}",
    "{} - {}",
    "{} * {}",
    "{} / {}",
    "{} // {}",
    "{} % {}",
    "max({}, {})",
    "min({}, {})",
    "({} < {}) + 0",
    "{} == {}",
]
UNARY = ["-({} * 1)", "abs({})", "float32({})", "int16({})", "float16({})", "trunc({})", "sqrt(abs({}))"]
PICKED = "(float32({0}) if {1} > {2} and {0} or i else float32({2}))"
EXPRESSIONS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(lambda op, a, b: f"({op})".format(a, b), st.sampled_from(BINARY), inner, inner),
        st.builds(lambda op, a: op.format(a), st.sampled_from(UNARY), inner),
        st.builds(PICKED.format, inner, inner, inner),
    ),
    max_leaves=6,
)


REAL = (*NUMBERS, *BYTE_FLOATS)


@pytest.mark.slow
@numpy_2
@given(EXPRESSIONS, st.sampled_from(REAL), st.sampled_from(REAL))
def test_any_expression_has_the_value_that_numpy_gives(generate, expression, one, other):
    text = f"""def f(x, z):
    y = output_tensor(x.shape, "float64")
    for i in range(x.shape[0]):
        y[i] = {expression}
    return y
"""
    arrays = [values(one, (3,)), values(other, (3,), 1)]
    try:
        expected = plain(generate.function_of(text))(*arrays)
    except (OverflowError, ZeroDivisionError, TypeError, np.exceptions.DTypePromotionError):
        reject()  # Python's numbers raise where a dtype wraps; NumPy has no - for bool, and no bfloat16 in max
    kernel = parse(generate.function_of(text), [(str(a.dtype), 1) for a in arrays], {})
    assert violations(kernel) == []
    (result,) = interpret(kernel, arrays)
    np.testing.assert_array_equal(expected, result)


@pytest.mark.slow
@numpy_2
@given(st.data())
def test_loops_over_any_range(data):
    lo, hi = (data.draw(st.integers(-3, 9)) for _ in range(2))
    step = data.draw(st.sampled_from([-4, -3, -2, -1, 1, 2, 3, 5]))

    def visits(x, lo, hi):
        y = output_tensor((16,), "int64")
        for i in range(lo, hi, step):
            y[i + 4] = y[i + 4] + i + 100
        return y

    x, given = np.zeros(1), {"lo": lo, "hi": hi}
    (result,) = interpret(parse(visits, [("float64", 1)], given), [x], given)
    np.testing.assert_array_equal(plain(visits)(x, **given), result)


@pytest.mark.slow
@numpy_2
@given(st.randoms(use_true_random=False))
def test_any_program_has_the_values_that_numpy_gives(generate, random):
    program = generate.Generator(random)
    kernel = parse(program.function(), program.types, {})
    assert violations(kernel) == []
    arrays = program.arrays()
    try:
        expected = interpret(kernel, arrays)
    except IndexError:
        with pytest.raises(IndexError):
            plain(program.function())(*(a.copy() for a in arrays))
        return
    results = plain(program.function())(*(a.copy() for a in arrays))
    results = results if isinstance(results, tuple) else (results,)
    if not (generate.exact(expected, program.dtype) and generate.exact(results, program.dtype)):
        reject()
    for one, other in zip(results, expected, strict=True):
        np.testing.assert_array_equal(one, other, err_msg=program.text)
