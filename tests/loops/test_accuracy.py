"""The functions of the language beside mpmath, over the whole range of their arguments."""

import importlib.util
import pathlib
import re

import numpy as np
import pytest

import polyop
from polyop.loops.frontend.language import WORDS
from polyop.loops.ir.operators import OPERATORS

mpmath = pytest.importorskip("mpmath", reason="it computes the exact values")
MATH = pathlib.Path(__file__).parents[2] / "include/polyop/loops/math.h"
PI = 3.141592653589793
TABLE = {  # function: what is exact; where it is sampled densely
    "exp": (mpmath.exp, -105, 90), "expm1": (mpmath.expm1, -20, 90), "exp2": (lambda x: mpmath.mpf(2) ** x, -150, 128),
    "log": (mpmath.log, 0.2, 4), "log1p": (mpmath.log1p, -1, 3), "log2": (lambda x: mpmath.log(x, 2), 0.2, 4),
    "sqrt": (mpmath.sqrt, 0, 9), "rsqrt": (lambda x: 1 / mpmath.sqrt(x), 0, 9),
    "cbrt": (lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)), -9, 9), "sinh": (mpmath.sinh, -5, 5), "cosh": (mpmath.cosh, -5, 5), "tanh": (mpmath.tanh, -10, 10),
    "sigmoid": (lambda x: 1 / (1 + mpmath.exp(-x)), -105, 20), "erf": (mpmath.erf, -6, 6),
    "erfc": (mpmath.erfc, -6, 10), "sin": (mpmath.sin, -30, 30), "cos": (mpmath.cos, -30, 30),
    "tan": (mpmath.tan, -30, 30), "asin": (mpmath.asin, -1, 1), "acos": (mpmath.acos, -1, 1),
    "atan": (mpmath.atan, -3, 3), "lgamma": (lambda x: mpmath.loggamma(x).real, 0, 12),
    "digamma": (mpmath.digamma, 0, 12), "trigamma": (lambda x: mpmath.psi(1, x), 0, 12),
}  # fmt: skip
DOMAIN = dict.fromkeys(("log", "log2", "sqrt", "rsqrt", "lgamma", "digamma", "trigamma"), (0, np.inf))
DOMAIN |= {"log1p": (-1, np.inf), "asin": (-1, 1), "acos": (-1, 1), "erfc": (-np.inf, 1e3)}
ZEROS = {
    "log": [1],
    "log2": [1],
    "lgamma": [1, 2],
    "digamma": [1.4616321449683622],
    "sin": [PI],
    "cos": [PI / 2],
}
OF_NUMPY = 4
"""Units in the last place for the interpreter and plain Python, whose functions are NumPy's."""


def bounds():
    rows = re.findall(r"^ \* +(\w+) +(\d\.\d+) +(\d\.\d+)$", MATH.read_text(), re.MULTILINE)
    stated = {name: (float(single), float(double)) for name, single, double in rows}
    return stated | dict.fromkeys(("lgamma", "digamma", "trigamma"), (4.0, 4.0))


def samples(name, dtype, count):
    """Return every magnitude of both signs, the range where the function lives, and the sides of its zeros."""
    random, info = np.random.default_rng(7), np.finfo(dtype)
    smallest, greatest = np.log2(float(info.smallest_subnormal)), np.log2(float(info.max))
    sign = random.choice([-1.0, 1.0], count)
    parts = [sign * np.exp2(random.uniform(smallest, greatest - 0.01, count))]
    parts.append(random.uniform(*TABLE[name][1:], count))
    parts += [zero + sign * np.exp2(random.uniform(-info.nmant, -1, count)) for zero in ZEROS.get(name, ())]
    low, high = DOMAIN.get(name, (-np.inf, np.inf))
    x = np.concatenate(parts).astype(dtype)
    return x[(x > low) & (x < high)]


def units(exact, value, dtype):
    """Return how many units in the last place of the exact value a value is from it."""
    info = np.finfo(dtype)
    if not np.isfinite(value):
        largest = mpmath.mpf(float(info.max)) * (1 + mpmath.mpf(2) ** (-info.nmant - 2))
        return 0.0 if abs(exact) > largest else np.inf
    exponent = int(mpmath.floor(mpmath.log(abs(exact), 2))) if exact else info.minexp
    return float(
        abs(mpmath.mpf(float(value)) - exact) / mpmath.mpf(2) ** (max(exponent, info.minexp) - info.nmant)
    )


def compiled(name, folder):
    file = folder / f"of_{name}.py"
    file.write_text(
        "import polyop\n\n\n@polyop.kernel\ndef f(x):\n    y = output_tensor(x.shape, x.dtype)\n"
        f"    for i in range(x.shape[0]):\n        y[i] = {name}(x[i])\n    return y\n"
    )
    spec = importlib.util.spec_from_file_location(f"accuracy_of_{name}", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.f


def test_each_function_of_the_language_has_a_row():
    exact = {"abs", "sign", "floor", "ceil", "trunc", "round", "isnan", "isinf", "isfinite", "max", "min"}
    exact |= {"copysign", "fmod", "mod", "gcd", "lcm", "ceil_div", "where", "stop_gradient", "with_gradient"}
    exact |= {"pow", "power", "atan2", "hypot"}  # loop_math.c
    assert {name for name, word in WORDS.items() if word.kind == "math"} - exact == set(TABLE)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n == "digamma" else pytest.mark.slow) for n in TABLE]
)
def test_the_error_in_units_in_the_last_place(name, dtype, tmp_path):
    count = 200 if name == "digamma" else 1500
    x = samples(name, dtype, count)
    with mpmath.workprec(160), np.errstate(all="ignore"):
        exact = [TABLE[name][0](mpmath.mpf(float(value))) for value in x]
        rows = {
            "compiled": (compiled(name, tmp_path)(x), bounds()[name][dtype == "float64"]),
            "interpreter": ([OPERATORS[name].meaning(value) for value in x], OF_NUMPY),
            "Python": ([WORDS[name].meaning(value) for value in x], OF_NUMPY),
        }
        for where, (values, bound) in rows.items():
            errors = [units(e, v, dtype) for e, v in zip(exact, values, strict=True)]
            worst = int(np.argmax(errors))
            assert errors[worst] <= bound, f"{where}: {errors[worst]:.2f} units at {x[worst]!r}"


def test_where_the_derivatives_of_lgamma_end(tmp_path):
    torch = pytest.importorskip("torch", reason="gradients are compared with differences by PyTorch")
    f, x = (
        compiled("lgamma", tmp_path),
        torch.tensor([0.3, 1.0, 2.5], dtype=torch.float64, requires_grad=True),
    )
    assert torch.autograd.gradcheck(f, x) and torch.autograd.gradgradcheck(f, x)
    (first,) = torch.autograd.grad(f(x).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x, create_graph=True)
    with pytest.raises(polyop.PolyopError, match=r"the derivative of trigamma is not .*(?s:.)*with_gradient"):
        torch.autograd.grad(second.sum(), x)


@pytest.mark.parametrize("name", ["lgamma", "digamma", "trigamma"])
def test_gamma_of_what_is_not_positive(name, tmp_path):
    x = np.concatenate([-np.random.default_rng(3).uniform(0, 30, 300), [-1e-30, -0.5, -2.5]])
    with mpmath.workprec(160):
        exact = [TABLE[name][0](mpmath.mpf(float(value))) for value in x]
        for values in (compiled(name, tmp_path)(x), [OPERATORS[name].meaning(value) for value in x]):
            for value, right in zip(values, exact, strict=True):
                assert abs(value - right) <= 1e-14 * max(1, abs(right))
    special = np.array([0.0, -0.0, -1.0, -2.0, np.inf, -np.inf, np.nan])
    expected = {
        "lgamma": [np.inf, np.inf, np.inf, np.inf, np.inf, np.inf, np.nan],
        "digamma": [-np.inf, np.inf, np.nan, np.nan, np.inf, np.nan, np.nan],
        "trigamma": [np.inf, np.inf, np.inf, np.inf, 0.0, np.nan, np.nan],
    }[name]
    np.testing.assert_array_equal(polyop.kernel(compiled(name, tmp_path))(special), expected)
    np.testing.assert_array_equal([OPERATORS[name].meaning(value) for value in special], expected)
