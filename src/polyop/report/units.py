"""Numbers as texts with units."""

from __future__ import annotations

_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def amount(value: float, unit: str) -> str:
    """Return a number with a decimal prefix.

    >>> amount(12_300_000, "B/s"), amount(512, "B")
    ('12.3 MB/s', '512 B')
    """
    for size, prefix in _PREFIXES:
        if value >= size:
            return f"{value / size:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}"


def time_text(seconds: float) -> str:
    """Return seconds in the unit that fits.

    >>> time_text(0.00123), time_text(2e-7)
    ('1.23 ms', '200 ns')
    """
    size, unit = next(((s, u) for s, u in _TIMES if seconds >= s), _TIMES[-1])
    return f"{seconds / size:.3g} {unit}"


def percent(fraction: float) -> str:
    """Return a fraction in percent.

    >>> percent(0.4567), percent(0.0123)
    ('46 %', '1.2 %')
    """
    return f"{fraction * 100:.0f} %" if fraction >= 0.1 else f"{fraction * 100:.2g} %"
