"""Philox4x32-10: the random words of a counter and a key, in Python.

Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3. SC 2011.

>>> [hex(word) for word in philox((0, 0, 0, 0), (0, 0))]
['0x6627e8d5', '0xe169c58d', '0xbc57ac4c', '0x9b00dbd8']
"""

from __future__ import annotations

from typing import Any

import numpy as np

Words = tuple[int, int, int, int]
MASK = 2**32 - 1


def philox(counter: Words, key: tuple[int, int]) -> Words:
    """Return the four words of a counter of four words and a key of two."""
    a, b, c, d = counter
    low, high = key
    for _ in range(10):
        p, q = a * 0xD2511F53, c * 0xCD9E8D57
        a, b, c, d = (q >> 32) ^ b ^ low, q & MASK, (p >> 32) ^ d ^ high, p & MASK
        low, high = (low + 0x9E3779B9) & MASK, (high + 0xBB67AE85) & MASK
    return a, b, c, d


def halves(word: Any) -> tuple[int, int]:
    """Return the low and the high 32 bits of an integer of 64."""
    return int(word) & MASK, int(word) >> 32 & MASK


def low_words(first: Any, second: Any, key: Any) -> Any:
    """Return words 0 and 1 as a uint64, the first in the low half; the arguments are two words each."""
    a, b, *_ = philox((*halves(first), *halves(second)), halves(key))
    return np.uint64(a | b << 32)


def high_words(first: Any, second: Any, key: Any) -> Any:
    """Return words 2 and 3 as a uint64, the earlier one in the low half."""
    *_, c, d = philox((*halves(first), *halves(second)), halves(key))
    return np.uint64(c | d << 32)
