"""Loop kernels run as plain Python on exact dual numbers: values and derivatives in one direction.

A dual number is a value and its derivative (Clifford, 1873). Every operation follows the chain rule, so the
derivative has no step size and no error but rounding.
"""

import math

import numpy as np

from polyop.loops.frontend.random_numbers import random, random_normal
from polyop.loops.ir import gamma


class Kink(ArithmeticError):
    """Two equal values with different derivatives were compared: there is no derivative there."""


class Dual:
    """A number and its derivative.

    ``largest`` is the largest magnitude that any of them had, ``noise`` a relative error of all functions.
    """

    __slots__ = ("tangent", "value")
    largest = 0.0
    noise = 0.0

    def __init__(self, value, tangent=0.0):
        self.value, self.tangent = float(value), float(tangent)
        Dual.largest = max(Dual.largest, abs(self.value), abs(self.tangent))
        if not math.isfinite(self.value + self.tangent):
            raise OverflowError("a value or derivative is not finite")

    def __add__(self, other):
        other = dual(other)
        return Dual(self.value + other.value, self.tangent + other.tangent)

    def __sub__(self, other):
        other = dual(other)
        return Dual(self.value - other.value, self.tangent - other.tangent)

    def __mul__(self, other):
        other = dual(other)
        return Dual(self.value * other.value, self.tangent * other.value + self.value * other.tangent)

    __radd__, __rmul__ = __add__, __mul__

    def __truediv__(self, other):
        other = dual(other)
        slope = self.tangent * other.value - self.value * other.tangent
        return Dual(self.value / other.value, slope / other.value**2)

    def __rtruediv__(self, other):
        return dual(other) / self

    def __pow__(self, exponent):
        return Dual(self.value**exponent, exponent * self.value ** (exponent - 1) * self.tangent)

    def __rsub__(self, other):
        return dual(other) - self

    def __neg__(self):
        return Dual(-self.value, -self.tangent)

    def __abs__(self):
        return -self if self < 0 else self

    def __lt__(self, other):
        return self.compared(other) < 0

    def __gt__(self, other):
        return self.compared(other) > 0

    def __le__(self, other):
        return self.compared(other) <= 0

    def __ge__(self, other):
        return self.compared(other) >= 0

    def __eq__(self, other):
        return self.compared(other) == 0

    def __ne__(self, other):
        return self.compared(other) != 0

    __hash__ = None

    def compared(self, other):
        other = dual(other)
        difference = self.value - other.value
        # rounding may decide otherwise in the compiled code
        if abs(difference) <= 1e-9 * max(abs(self.value), abs(other.value)) and self.tangent != other.tangent:
            raise Kink(f"{self.value} and {other.value} are compared")
        return difference


def dual(number):
    """Return a number as a dual number; a constant has no derivative."""
    return number if isinstance(number, Dual) else Dual(number)


def function(value, slope):
    """Return a function of dual numbers, from the function and its derivative."""
    return lambda x: Dual(value(dual(x).value) * (1 + Dual.noise), slope(dual(x).value) * dual(x).tangent)


def tensor(shape, dtype):
    """Return a tensor of zeros, as the words of the language that make one."""
    if dtype != "float64":
        return np.zeros(shape, dtype)
    array = np.empty(shape, object)
    for index in np.ndindex(*array.shape):
        array[index] = Dual(0.0)
    return array


def angle(y, x):
    """Return atan2 of dual numbers."""
    slope = (x.value * y.tangent - y.value * x.tangent) / (x.value**2 + y.value**2)
    return Dual(math.atan2(y.value, x.value), slope)


WORDS = {
    "output_tensor": tensor,
    "allocate": tensor,
    "float64": dual,
    "int64": int,
    "parallel": range,
    "vectorize": range,
    "reduce": range,
    "serial": range,
    "sin": function(math.sin, math.cos),
    "tanh": function(math.tanh, lambda x: 1 - math.tanh(x) ** 2),
    "exp": function(math.exp, math.exp),
    "sqrt": function(math.sqrt, lambda x: 0.5 / math.sqrt(x)),
    "log": function(math.log, lambda x: 1 / x),
    "atan": function(math.atan, lambda x: 1 / (1 + x * x)),
    "exp2": function(math.exp2, lambda x: math.exp2(x) * math.log(2)),
    "expm1": function(math.expm1, math.exp),
    "log1p": function(math.log1p, lambda x: 1 / (1 + x)),
    "log2": function(math.log2, lambda x: 1 / (x * math.log(2))),
    "rsqrt": function(lambda x: 1 / math.sqrt(x), lambda x: -0.5 / (x * math.sqrt(x))),
    "cos": function(math.cos, lambda x: -math.sin(x)),
    "tan": function(math.tan, lambda x: 1 + math.tan(x) ** 2),
    "sinh": function(math.sinh, math.cosh),
    "cosh": function(math.cosh, math.sinh),
    "asin": function(math.asin, lambda x: 1 / math.sqrt(1 - x * x)),
    "acos": function(math.acos, lambda x: -1 / math.sqrt(1 - x * x)),
    "sigmoid": function(lambda x: 1 / (1 + math.exp(-x)), lambda x: 1 / (2 + math.exp(x) + math.exp(-x))),
    "erf": function(math.erf, lambda x: 2 / math.sqrt(math.pi) * math.exp(-x * x)),
    "erfc": function(math.erfc, lambda x: -2 / math.sqrt(math.pi) * math.exp(-x * x)),
    "lgamma": function(gamma.lgamma, gamma.digamma),
    "digamma": function(gamma.digamma, gamma.trigamma),
    "atan2": lambda y, x: angle(dual(y), dual(x)),
    "random": lambda *key, dtype: Dual(random(*key, dtype=dtype)),
    "random_normal": lambda *key, dtype: Dual(random_normal(*key, dtype=dtype)),
    "stop_gradient": lambda x: Dual(dual(x).value),
}


def run(text, arrays, tangents, noise=0.0):
    """Return the values and the derivatives of a kernel's outputs.

    ``text`` defines the function ``f``. ``tangents`` has the direction of each array, or None for whole
    numbers. ``noise`` is a relative error of the values of all functions. Raises ``IndexError`` as the kernel
    does, and ``Kink`` where there is no derivative.
    """
    names = dict(WORDS)
    exec(compile(text, "<kernel>", "exec"), names)
    Dual.largest, Dual.noise = 1.0, noise
    inputs = []
    for array, tangent in zip(arrays, tangents, strict=True):
        mixed = array.copy() if tangent is None else np.empty(array.shape, object)
        if tangent is not None:
            for index in np.ndindex(*array.shape):
                mixed[index] = Dual(array[index], tangent[index])
        inputs.append(mixed)
    outputs = names["f"](*inputs)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    return [part(o, "value") for o in outputs], [part(o, "tangent") for o in outputs]


def part(array, name):
    """Return the values or the derivatives of a tensor; None for derivatives of whole numbers."""
    if array.dtype != object:
        return array if name == "value" else None
    numbers = [getattr(dual(x), name) for x in array.reshape(-1)]
    return np.array(numbers, np.float64).reshape(array.shape)
