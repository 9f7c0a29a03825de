"""lgamma, digamma and trigamma of Python's floats: as include/polyop/loops/math_gamma.h computes them.

Python's own ``math.lgamma`` has no correct digits near its zeros at 1 and 2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

# fmt: off
LGAMMA_RATIO = (
    0.42278433509846713, -0.10031730167435392, 0.03296500062115691, -0.012384192193371805,
    0.004998641164627129, -0.0021081308339216706, 0.0009153769240386907,
    -0.0004057073983775151, 0.0001825526153982638, -8.309511477709561e-05,
    3.816907658276081e-05, -1.7661767658452517e-05, 8.221234475942905e-06,
    -3.846858091533014e-06, 1.8113906873056685e-06, -8.54560908975883e-07,
    3.958940459367468e-07, -1.878442644643758e-07, 1.042041826608264e-07,
    -4.9827532071170234e-08, 5.910565853507869e-09, -2.7296358592514825e-09,
    1.6194359237484174e-08, -7.842557720538356e-09, -4.312495770350818e-09,
    2.0986002157033107e-09, 1.5746606982777302e-09, -7.639292345836201e-10,
)
"""lgamma(x) / ((x - 1) (x - 2)) for 1 <= x <= 3, in x - 2."""
LGAMMA_TAIL = (
    0.08333333333333333, -0.002777777777777778, 0.0007936507936507937, -0.0005952380952380953,
    0.0008417508417508417, -0.0019175269175269176, 0.00641025641025641, -0.029550653594771242,
)
"""Of the asymptotic series: B_2k / (2k (2k - 1))."""
DIGAMMA_RATIO = (
    0.7853075386041053, -0.2607389546830014, 0.10899991701762626, -0.04955103291767291,
    0.023447309597724546, -0.011338432553333682, 0.005552254171350814, -0.0027395728831692795,
    0.0013581421903714414, -0.000675313369799565, 0.00033643237613001386,
    -0.00016781518722379935, 8.377966540530644e-05, -4.184622931937881e-05,
    2.0891708911121205e-05, -1.044106631983514e-05, 5.26871942897218e-06,
    -2.6338311326151924e-06, 1.2119815782595426e-06, -6.059322795045256e-07,
    4.6173797029851077e-07, -2.3086248081342955e-07, -5.6422994902202784e-08,
    2.821220170829738e-08, 1.1540536834062045e-07, -5.77025926771739e-08,
    -3.5705337308985145e-08, 1.7852672191376552e-08, 1.0201545142033868e-08,
    -5.100770214989469e-09,
)
"""digamma(x) / (x - its zero) for 1 <= x <= 3, in x - 2."""
DIGAMMA_TAIL = (
    0.08333333333333333, -0.008333333333333333, 0.003968253968253968, -0.004166666666666667,
    0.007575757575757576, -0.021092796092796094, 0.08333333333333333, -0.4432598039215686,
)
"""B_2k / 2k."""
TRIGAMMA_TAIL = (
    0.16666666666666666, -0.03333333333333333, 0.023809523809523808, -0.03333333333333333,
    0.07575757575757576, -0.2531135531135531, 1.1666666666666667, -7.092156862745098,
    54.971177944862156,
)
"""B_2k."""
# fmt: on


def _horner(x: float, terms: Sequence[float]) -> float:
    total = 0.0
    for term in reversed(terms):
        total = total * x + term
    return total


def _from_integer(x: float) -> float:
    return math.pi * (x - round(x))


def _lgamma_above_zero(x: float) -> float:
    if x < 1:  # of x + 1; log1p is for the zero at 1
        y = _horner(x - 1, LGAMMA_RATIO) * (x * (x - 1))
        return y - (math.log(x) if x < 0.5 else math.log1p(x - 1))
    if x >= 10:
        u = 1 / x
        return (x - 0.5) * (math.log(x) - 1) + (0.4189385332046727 + _horner(u * u, LGAMMA_TAIL) * u)
    product = 1.0
    while x > 3:
        x -= 1
        product *= x
    y = _horner(x - 2, LGAMMA_RATIO) * ((x - 1) * (x - 2))
    return y + math.log(product) if product > 1 else y


def lgamma(x: float) -> float:
    """Return the logarithm of the absolute value of the gamma function."""
    if math.isnan(x):
        return x
    if abs(x) > 1e306 or (x <= 0 and x == math.floor(x)):
        return math.inf
    if x > 0:
        return _lgamma_above_zero(x)
    if x > -(2.0**-60):
        return -math.log(-x)
    s = abs(x * math.sin(_from_integer(x)))
    return math.log(math.pi / s) - _lgamma_above_zero(-x)


def digamma(x: float) -> float:
    """Return the derivative of :func:`lgamma`."""
    if math.isinf(x) or math.isnan(x):
        return math.nan if x < 0 else x
    reflected = total = 0.0
    if x <= 0:
        if x == 0:
            return math.copysign(math.inf, -math.copysign(1.0, x))
        if x == math.floor(x):
            return math.nan
        reflected = -math.pi / math.tan(_from_integer(x))
        x = 1 - x
    if x >= 10:
        u = 1 / x
        return math.log(x) - (0.5 * u + _horner(u * u, DIGAMMA_TAIL) * (u * u)) + reflected
    if x < 1:
        total = -1 / x if x > 5.6e-309 else -math.inf
        x += 1
    while x > 3:
        x -= 1
        total += 1 / x
    zero = (x - 1.4616321449683622) - 9.549995429965697e-17
    return _horner(x - 2, DIGAMMA_RATIO) * zero + total + reflected


def _trigamma_above_zero(x: float) -> float:
    steps = 0
    while x + steps < 10:
        steps += 1
    u = 1 / (x + steps)
    total = u + (0.5 + _horner(u * u, TRIGAMMA_TAIL) * u) * (u * u)
    for step in range(steps - 1, -1, -1):  # the greatest comes last
        square = (x + step) * (x + step)
        total += 1 / square if square > 5.6e-309 else math.inf
    return total


def trigamma(x: float) -> float:
    """Return the derivative of :func:`digamma`."""
    if math.isinf(x) or math.isnan(x):
        return math.nan if x < 0 else 0.0 if x > 0 else x
    if x > 0:
        return _trigamma_above_zero(x)
    s = math.sin(_from_integer(x))
    return math.inf if s == 0 else (math.pi / s) ** 2 - _trigamma_above_zero(1 - x)
