# ruff: noqa: F821 - kernels, whose words are no names here
"""Random expressions, ranges and programs: the interpreter gives what the plain function gives."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from polyop.kernels.loops.interpret import interpret
from polyop.kernels.loops.language import DTYPES
from polyop.kernels.loops.parse import parse
from polyop.kernels.loops.plain import plain
from polyop.kernels.loops.verify import violations

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


@numpy_2
@given(EXPRESSIONS, st.sampled_from(DTYPES), st.sampled_from(DTYPES))
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
    (found,) = interpret(kernel, arrays)
    np.testing.assert_array_equal(expected, found)


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
    (found,) = interpret(parse(visits, [("float64", 1)], given), [x], given)
    np.testing.assert_array_equal(plain(visits)(x, **given), found)


class Programs:
    """Draws the lines of a random program: nested loops, ifs, scalars and elements, in float64.

    In one dtype, and with Python's numbers small, a scalar that changes from int to float on the
    way has the same values as one that is a float all along.
    """

    def __init__(self, data):
        self.draw = lambda *choices: data.draw(st.sampled_from(choices))

    def element(self, loops):
        variable = self.draw(*loops, "0")
        return f"{self.draw('x', 'y', 'y')}[({variable} + {self.draw(0, 1, 2)}) % 4]"

    def value(self, scalars, loops):
        def leaf():
            return self.draw(*scalars, *loops, "1", "0.5", self.element(loops))

        shape = self.draw("{}", "{} + {}", "{} - {}", "max({}, {})", "{} / 2 + {}", "{} if {} > {} else 2")
        return shape.format(*(leaf() for _ in range(3)))

    def block(self, scalars, loops, depth):
        lines = []
        for _ in range(self.draw(1, 2, 3)):
            kind = (
                self.draw("scalar", "element", "for", "if") if depth < 2 else self.draw("scalar", "element")
            )
            lines += getattr(self, "make_" + kind)(scalars, loops, depth)
        return lines

    def make_scalar(self, scalars, loops, depth):
        name, value = self.draw("s", "t", "u"), self.value(scalars, loops)
        if name in scalars:
            return [f"{name} {self.draw('=', '+=', '-=')} {value}"]
        scalars.append(name)
        return [f"{name} = {value}"]

    def make_element(self, scalars, loops, depth):
        target = "y" + self.element(loops)[1:]
        value = self.value(scalars, loops)
        return [
            self.draw(f"{target} += {value}", f"{target} = min({target}, {value})", f"{target} = {value}")
        ]

    def make_for(self, scalars, loops, depth):
        (variable, *_) = [name for name in ("i", "j", "k") if name not in loops]
        bounds = self.draw("4", "1, 4", "3, -1, -1", "0, 5, 2", *(f"{name} + 1" for name in loops))
        body = self.block(list(scalars), [*loops, variable], depth + 1)
        return [f"for {variable} in {self.draw('range', 'parallel')}({bounds}):", *("    " + b for b in body)]

    def make_if(self, scalars, loops, depth):
        one, other = list(scalars), list(scalars)
        then, otherwise = (self.block(names, loops, depth + 1) for names in (one, other))
        test = f"if ({self.value(scalars, loops)}) > 1:"
        scalars += [name for name in one if name in other and name not in scalars]
        return [test, *("    " + b for b in then), "else:", *("    " + b for b in otherwise)]


@given(st.data())
def test_any_program_has_the_values_that_numpy_gives(generate, data):
    lines = Programs(data).block([], [], 0)
    head = ["def f(x):", "    y = output_tensor((4,), x.dtype)"]
    text = "\n".join([*head, *("    " + line for line in lines), "    return y", ""])
    x = np.array([0.5, -1.0, 2.0, 3.0])
    kernel = parse(generate.function_of(text), [("float64", 1)], {})
    assert violations(kernel) == []
    np.testing.assert_array_equal(
        plain(generate.function_of(text))(x), interpret(kernel, [x])[0], err_msg=text
    )
