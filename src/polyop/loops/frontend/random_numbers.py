"""Random numbers: what ``random`` and ``random_normal`` mean in Python, and as expressions of the IR.

A number is a function of the key and the counter alone. The four words of Philox's counter are

    random(key, i)             the low and the high half of i, 0, 0
    random(key, i, j)          the low and the high half of i, then those of j
    random(key, i, j, k, l)    the low halves of i, j, k and l; l is 0 if it is left out

A uniform number is the low bits of the first words, 24 for float32 and 53 for float64, times 2**-24 or
2**-53. A normal number needs a second one, of the last words (Box and Muller).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.dtypes import dtype
from ..ir.grammar import INT, Const, Expr, Type
from ..ir.operate import operate
from ..ir.philox import high_words, low_words
from ..ir.types import Refusal, cast, kind

BITS = {"float32": 24, "float64": 53}
"""How many random bits a number of each dtype has: as many as it can hold."""
KEYS = ("uint32", "int32", "uint64", "int64")
"""The dtypes of a key; of a wider one the low half of each item counts."""
MAX_COUNTER_WORDS = 4
"""The most integers of a counter."""
_WORD, _INT32 = Type("uint64"), Type("int32")


def packed(key: Sequence[Any], counters: Sequence[Any]) -> tuple[int, int, int]:
    """Return counter and key as integers of 64 bits."""
    if len(key) not in (1, 2):
        raise ValueError(f"a key has one or two items, not {len(key)}")
    low, high = (*(int(word) & 2**32 - 1 for word in key), 0)[:2]
    numbers = [int(c) & 2**64 - 1 for c in counters]
    if len(numbers) < 3:
        first, second = (*numbers, 0)[:2]
    else:
        words = [n & 2**32 - 1 for n in (*numbers, 0)]
        first, second = (words[at] | words[at + 1] << 32 for at in (0, 2))
    return first, second, low | high << 32


def random(key: Any, *counters: Any, dtype: Any = "float32") -> Any:
    """Return a number in [0, 1), as a NumPy scalar."""
    of = _numpy(dtype)
    bits = BITS[of.__name__]
    return of(int(low_words(*packed(key, counters))) & 2**bits - 1) * of(2.0**-bits)


def random_normal(key: Any, *counters: Any, dtype: Any = "float32") -> Any:
    """Return a number of the standard normal distribution, as a NumPy scalar."""
    of, words = _numpy(dtype), packed(key, counters)
    bits = BITS[of.__name__]
    one, other = (int(half(*words)) & 2**bits - 1 for half in (low_words, high_words))
    radius = np.sqrt(of(-2.0) * np.log(of(one + 1) * of(2.0**-bits)))
    return radius * np.cos(of(2 * math.pi) * (of(other) * of(2.0**-bits)))


def _numpy(like: Any) -> Any:
    name = dtype(like).name
    if name not in BITS:
        raise ValueError(f"random numbers are float32 or float64, not {name}")
    return dtype(name).numpy.type


def uniform(key: tuple[Expr, Expr], counters: Sequence[Expr], of: str) -> Expr:
    """Return the expression of a number in [0, 1)."""
    return _bits("philox_low", _packed(key, counters), of) * _scale(of)


def normal(key: tuple[Expr, Expr], counters: Sequence[Expr], of: str) -> Expr:
    """Return the expression of a number of the standard normal distribution."""
    to, words = Type(of), _packed(key, counters)
    one = _bits("philox_low", words, of) + Const(1.0, to)  # not 0, whose logarithm is infinite
    angle = Const(2 * math.pi, to) * (_bits("philox_high", words, of) * _scale(of))
    square = Const(-2.0, to) * operate("log", one * _scale(of))
    return operate("sqrt", square) * operate("cos", angle)


def check(key: str, counters: Sequence[Expr], of: str) -> None:
    """Raise ``Refusal`` for a key or a counter of another kind, or for another dtype of the result."""
    if key not in KEYS:
        hint = "pass two integers of 32 bits: np.array([seed, 0], np.uint32), or JAX's key_data(key)"
        raise Refusal(f"a key must be {', '.join(KEYS[:-1])} or {KEYS[-1]}", key, hint)
    for counter in counters:
        if kind(counter.type) not in "iu":
            raise Refusal("a counter must be an integer", counter.type, "write int(x), or a loop variable")
    if of not in BITS:
        hint = f"draw a float32 and cast it: {of}(random(key, i))"
        raise Refusal("random numbers are float32 or float64", of, hint)


def _scale(of: str) -> Const:
    return Const(2.0 ** -BITS[of], Type(of))


def _bits(half: str, words: tuple[Expr, ...], of: str) -> Expr:
    """Return the low bits of two of the four words as a float. They fit, so nothing is rounded."""
    bits = operate("&", operate(half, *words), Const(2 ** BITS[of] - 1, _WORD))
    return cast(cast(bits, _INT32 if of == "float32" else Type("int64")), Type(of))


def _packed(key: tuple[Expr, Expr], counters: Sequence[Expr]) -> tuple[Expr, Expr, Expr]:
    numbers = [*counters, Const(0, INT)]
    if len(counters) < 3:
        first, second = (cast(n, _WORD) if kind(n.type) == "u" else _signed(n) for n in numbers[:2])
    else:
        first, second = _pair(numbers[0], numbers[1]), _pair(numbers[2], numbers[3])
    return first, second, _pair(*key)


def _signed(number: Expr) -> Expr:
    """Return a signed integer as the word of its bits; a constant is converted here."""
    if isinstance(number, Const):
        return Const(int(number.value) & 2**64 - 1, _WORD)
    return cast(number, _WORD)


def _pair(low: Expr, high: Expr) -> Expr:
    """Return two words in one, the first in the low half."""
    shifted = _signed(high) * Const(2**32, _WORD)
    return operate("|", operate("&", _signed(low), Const(2**32 - 1, _WORD)), shifted)
