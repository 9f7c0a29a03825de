"""Seeded mutation of valid samples: bytes, texts and values, each from a `random.Random`."""

import random

NUMBERS = (
    0,
    1,
    7,
    8,
    0x7F,
    0x80,
    0xFF,
    0xFFFF,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**62,
    2**63 - 1,
    2**63,
    2**64 - 1,
)
MAX_TEXT = 300_000
WORDS = (
    "[", "]", "(", ")", "{", "}", ",", ":", '"', "'", "\\", "*", "->", "=", "?", "|", "!", "&a", "*a", "<<", "#", "%",
    "-", ".", "\n", " ", "\t", "\r", "\0", "\ud800", "\udcff", "é", "\u0661", "\u00b2", "\ufeff", "\u2028", "\U0001d518",
    "1e400", "-1", "0x", "1_0", "inf", "nan", "None", "true", "null", "9" * 30, "9" * 5000, "1e-999", "2001-99-99",
    "../", "/", "$", "$$", "`", "//", "/*", "*/", "#if 0\n", 'R"(', "!!int x", "Tensor", "int", "int[]", "DT_FLOAT",
)  # fmt: skip
VALUES = (
    None, True, 0, -1, 2**31, 2**63, 10**400, 10**5000, 0.5, float("inf"), float("nan"), "", "a", "\0", "\ud800",
    "9" * 5000, b"", b"\xff", [], [[]], {}, {"a": 1}, {1: 2, "a": 3}, (), (1, "a"), object, 1j,
)  # fmt: skip


def of_bytes(random: random.Random, samples: list[bytes]) -> bytes:
    """Return a sample with up to eight changes."""
    data = bytearray(random.choice(samples))
    for _ in range(random.choice((1, 1, 2, 8))):
        size = len(data)
        position = (
            random.randrange(size + 1) if random.random() < 0.5 else random.randrange(min(size, 1024) + 1)
        )
        kind = random.randrange(6)
        if kind == 0 and position < size:
            data[position] ^= 1 << random.randrange(8)
        elif kind == 1:
            width = random.choice((1, 2, 4, 8))
            position -= position % width
            number = random.choice(NUMBERS) % 2 ** (8 * width)
            data[position : position + width] = number.to_bytes(width, random.choice(("little", "big")))
        elif kind == 2:
            del data[position:]
        elif kind == 3:
            del data[position : position + random.randrange(1, 64)]
        elif kind == 4:
            other = random.choice(samples)
            start = random.randrange(len(other) + 1)
            data[position:position] = other[start : start + random.randrange(1, 256)]
        else:
            data[position : position + 16] = random.randbytes(16)
    return bytes(data)


def of_text(random: random.Random, samples: list[str]) -> str:
    """Return a sample with words of all grammars inserted, and parts of it repeated, replaced or cut off."""
    text = random.choice(samples)
    for _ in range(random.choice((1, 1, 2, 8))):
        start = random.randrange(len(text) + 1)
        end = min(start + random.choice((0, 1, 4, 40)), len(text))
        kind = random.randrange(6)
        if kind < 2:
            text = text[:start] + random.choice(WORDS) + text[end:]
        elif kind == 2:
            text = text[:start] + random.choice(WORDS) * random.choice((2, 70, 3000)) + text[end:]
        elif kind == 3:
            text = text[:start] + text[start:end] * random.choice((2, 70, 1000)) + text[end:]
        elif kind == 4:
            text = text[:start]
        else:
            other = random.choice(samples)
            position = random.randrange(len(other) + 1)
            text = text[:start] + other[position : position + 60] + text[end:]
    return text[:MAX_TEXT]


def of_value(random: random.Random, samples: list[object]) -> object:
    """Return a sample in which up to three parts are replaced, some of them by deeply nested values."""
    value = random.choice(samples)
    for _ in range(random.choice((1, 1, 3))):
        value = _replaced(random, value)
    return value


def _replaced(random: random.Random, value: object) -> object:
    if isinstance(value, dict) and value and random.random() < 0.8:
        copy = dict(value)
        key = random.choice(list(copy))
        if random.random() < 0.1:
            copy[random.choice((1, "\ud800", "other", None, (1,)))] = copy.pop(key)
        else:
            copy[key] = _replaced(random, copy[key])
        return copy
    if isinstance(value, (list, tuple)) and value and random.random() < 0.8:
        copy = list(value)
        index = random.randrange(len(copy))
        copy[index] = _replaced(random, copy[index])
        return copy * random.choice((1, 1, 1, 3)) if random.random() < 0.9 else tuple(copy)
    if isinstance(value, str) and random.random() < 0.4:
        return of_text(random, [value])
    replacement = random.choice(VALUES)
    for _ in range(random.choice((0, 0, 0, 3, 70, 5000))):
        replacement = [replacement] if random.random() < 0.9 else {"a": replacement}
    return replacement
