# ruff: noqa: F821 - kernels, whose words are no names here
"""Complex functions at the limits of their dtype, at zeros of both signs, infinities and NaN: beside NumPy.

``DIFFERENT`` is the list of what differs; the guide has it in words.
"""

import numpy as np
import pytest

import polyop
from polyop.loops.frontend.language import WORDS
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.interpret import interpret

FUNCTIONS = {
    "sqrt": lambda z, w: np.sqrt(z),
    "log": lambda z, w: np.log(z),
    "exp": lambda z, w: np.exp(z),
    "sinh": lambda z, w: np.sinh(z),
    "cosh": lambda z, w: np.cosh(z),
    "sin": lambda z, w: np.sin(z),
    "cos": lambda z, w: np.cos(z),
    "abs, angle": lambda z, w: joined(np.abs(z), np.angle(z)),
    # of two scalars: arrays fuse one of the products with the sum, or do not
    "/": lambda z, w: np.array([b / a for a, b in zip(z, w, strict=True)]),
    "*": lambda z, w: np.array([b * a for a, b in zip(z, w, strict=True)]),
}


def edges(z, w):
    y = output_tensor((10, z.shape[0]), z.dtype)
    for i in range(z.shape[0]):
        y[0, i] = sqrt(z[i])
        y[1, i] = log(z[i])
        y[2, i] = exp(z[i])
        y[3, i] = sinh(z[i])
        y[4, i] = cosh(z[i])
        y[5, i] = sin(z[i])
        y[6, i] = cos(z[i])
        y[7, i] = complex(abs(z[i]), angle(z[i]))
        y[8, i] = w[i] / z[i]
        y[9, i] = w[i] * z[i]
    return y


def joined(re, im):
    whole = np.zeros(re.shape, np.result_type(re, 1j))
    whole.real, whole.imag = re, im
    return whole


def limits(of):
    return np.finfo(np.zeros(1, of).real.dtype)


def numbers(of):
    """Return pairs of numbers whose parts are all edges."""
    f = limits(of)
    end = np.log(f.max) + 1  # exp overflows
    ends = [0.0, -0.0, 1.0, -0.7, 2.5, f.tiny, 3 * f.smallest_subnormal, f.max, -f.max / 2, end]
    ends = np.array([*ends, np.inf, -np.inf, np.nan], f.dtype)
    z = joined(np.repeat(ends, len(ends)), np.tile(ends, len(ends)))
    return z, np.roll(z, 4 * len(ends) + 5)


def growing(name, z):
    """Return the part in whose exponential a function grows, and the part that is an angle."""
    return (z.real, z.imag) if name in ("exp", "sinh", "cosh") else (z.imag, z.real)


WAVES = ("exp", "sinh", "cosh", "sin", "cos")


def parts(z):
    return z.real, z.imag


DIFFERENT = {
    "a NaN part: all is NaN where NumPy keeps a zero or an infinity": (
        ("log", *WAVES, "/"),
        lambda name, z, w: np.isnan(z) | (np.isnan(w) if name == "/" else False),
    ),
    "an infinite angle: all is NaN where NumPy keeps a zero": (
        WAVES,
        lambda name, z, w: np.isinf(growing(name, z)[1]),
    ),
    "exp of a part overflows, and its product with a sine or cosine would not": (
        WAVES,
        lambda name, z, w: np.isfinite(z) & (np.abs(growing(name, z)[0]) > np.log(limits(z.dtype).max)),
    ),
    "NumPy multiplies by the reciprocal of a divisor, which overflows": (
        ("/",),
        lambda name, z, w: np.isfinite(z) & (np.abs(z) < 1 / limits(z.dtype).max),
    ),
    "a product of two parts overflows, but not where it is fused with the sum": (
        ("*",),
        lambda name, z, w: np.any([np.isinf(a * b) for a in parts(z) for b in parts(w)], 0),
    ),
}
FUSED = tuple(DIFFERENT)[-1]
"""What only compiled code does, as NumPy's arrays do."""


def differs(one, other, rtol):
    close = [
        np.isclose(getattr(one, p), getattr(other, p), rtol, 0, equal_nan=True) for p in ("real", "imag")
    ]
    return ~(close[0] & close[1])


@pytest.mark.slow(1)
@pytest.mark.parametrize("of", ["complex64", "complex128"])
@pytest.mark.parametrize("way", ["compiled", "interpreter", "plain Python"])
def test_the_edges_are_numpys_but_for_a_list(of, way):
    z, w = numbers(of)
    op = polyop.kernel(edges)
    with np.errstate(all="ignore"):
        if way == "compiled":
            found = op(z, w)
        elif way == "interpreter":
            (found,) = interpret(parse(edges, [(of, 1)] * 2, {}), [z, w], {})
        else:
            found = op.python(z, w)
        expected = {name: function(z, w) for name, function in FUNCTIONS.items()}
        masks = {
            text: {name: is_excused(name, z, w) for name in names}
            for text, (names, is_excused) in DIFFERENT.items()
        }
    wrong = {
        name: differs(one, expected[name], 1e-4 if of == "complex64" else 1e-12)
        for name, one in zip(FUNCTIONS, found, strict=True)
    }
    for name, one in zip(FUNCTIONS, found, strict=True):
        excused = np.zeros(z.shape, bool)
        for rows in masks.values():
            excused |= rows.get(name, False)
        rest = wrong[name] & ~excused
        shown = [(z[k], w[k], one[k], expected[name][k]) for k in np.flatnonzero(rest)[:5]]
        assert not rest.any(), f"{name}: (z, w, found, NumPy's): {shown}"
    if way != "plain Python":
        unused = [t for t, rows in masks.items() if not any((wrong[n] & m).any() for n, m in rows.items())]
        unused = set(unused) - ({FUSED} if way == "interpreter" else set())
        assert not unused, "these agree now: take them from the list and from the guide"


def typed(number, of):
    if of is None:
        return number
    return polyop.dtype(of).numpy.type(number if of.find("int") < 0 or np.isfinite(number) else 0)


@pytest.mark.parametrize(
    ("dtypes", "result"),
    [
        (("float32", "float32"), "complex64"),
        (("float64", "float32"), "complex128"),
        (("float32", "float64"), "complex128"),
        (("bfloat16", "float16"), "complex64"),
        (("float32", "int8"), "complex64"),
        (("int8", "int8"), "complex128"),
        (("float16", "float16"), "complex64"),
        (("int32", "float64"), "complex128"),
        ((None, "float32"), "complex64"),
        (("float64", None), "complex128"),
    ],
    ids=str,
)
def test_complex_run_as_python_keeps_its_parts(dtypes, result):
    complex_ = WORDS["complex"].meaning
    for re in (0.0, -0.0, 1.0, np.inf, -np.inf, np.nan):
        for im in (0.0, -0.0, -1.0, np.inf, np.nan):
            pair = [typed(x, of) for x, of in zip((re, im), dtypes, strict=True)]
            number = complex_(*pair)
            assert number.dtype == result
            for ours, part in ((number.real, pair[0]), (number.imag, pair[1])):
                np.testing.assert_array_equal(ours, float(part))
                if part == part:
                    assert np.signbit(ours) == np.signbit(part)
    assert type(complex_(1.0, -0.0)) is complex
    assert str(complex_(-0.0, -0.0)) == "(-0-0j)"
    rows = complex_(np.array([np.inf, 1.0], np.float32), np.float32(-0.0))
    assert rows.dtype == "complex64"
    assert rows.imag.tolist() == [0.0, 0.0]
    assert np.signbit(rows.imag).all()


def roots(z):
    y = output_tensor((2, z.shape[0]), z.dtype)
    for i in range(z.shape[0]):
        y[0, i] = sqrt(z[i])
        y[1, i] = log(z[i])
    return y


@pytest.mark.slow
def test_derivatives_on_the_axes():
    """Real and imaginary numbers are where absolute values of parts have no derivative."""
    z = np.array([4.0, 0.25, -2j, 3j, 1 + 1j, -1 + 1j, -1 - 1j, 2 - 2j, -4 + 1e-3j])
    _, pull = polyop.kernel(roots).vjp(z)
    for seed in (1.0, 1j):
        for row, derivative in ((0, 0.5 / np.sqrt(z)), (1, 1 / z)):
            weights = np.zeros((2, len(z)), complex)
            weights[row] = seed
            (gradient,) = np.atleast_2d(pull(weights)[0])
            np.testing.assert_allclose(gradient, seed * np.conj(derivative), 1e-12)
