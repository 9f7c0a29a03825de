"""Format numbers with units."""

from __future__ import annotations

_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def amount(value: float, unit: str) -> str:
    """Return a number with a decimal prefix.

    >>> amount(12_300_000, "B/s"), amount(512, "B")
    ('12.3 MB/s', '512 B')
    """
    for size, prefix in _PREFIXES:
        if value >= size:
            return f"{value / size:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}"


def percent(fraction: float) -> str:
    """Return a fraction in percent.

    >>> percent(0.4567), percent(0.0123)
    ('46 %', '1.2 %')
    """
    return f"{fraction * 100:.0f} %" if fraction >= 0.1 else f"{fraction * 100:.2g} %"
