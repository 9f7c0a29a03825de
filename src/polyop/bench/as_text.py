"""Print results as plain text: the same on a terminal and in a pipe."""

from __future__ import annotations

from collections.abc import Iterator

from ..core.texts import aligned
from .frameworks import NAMES
from .run import OURS, Entry, Result
from .timing import Spread

HEAD = ("call", "in", "median", "10 % - 90 %", "polyop / it", "10 % - 90 %", "of the roof")


def time_text(seconds: float) -> str:
    """Return a time with its unit.

    >>> time_text(0.00123), time_text(2.5)
    ('1.23 ms', '2.5 s')
    """
    scales = ((1, "s"), (1e3, "ms"), (1e6, "us"), (1e9, "ns"))
    scale, unit = next(((s, u) for s, u in scales if seconds * s >= 0.5), scales[-1])
    return f"{seconds * scale:.3g} {unit}"


def number(value: float) -> str:
    """Return a count in short.

    >>> number(2097152.0), number(12.0)
    ('2.1e+06', '12')
    """
    return f"{value:.3g}" if value < 1e4 else f"{value:.2g}"


def table(result: Result) -> list[str]:
    """Return the lines of one result: its name, work and roof, the times, and the peers that are wrong."""
    lines = [result.name, *work_lines(result), ""]
    lines += aligned([HEAD, *(_cells(result, entry) for entry in result.entries if entry.seconds)])
    lines += [f"NOT A PEER: {entry.name}: {entry.wrong}" for entry in result.wrong]
    return lines


def work_lines(result: Result) -> Iterator[str]:
    """Yield a line on the work of a call, and one on its roof."""
    work, roofs = result.work, result.roofs
    if work is None or roofs is None:
        return
    at_most = "" if work.exact else "at most "
    if work.flops is None:
        counted = "operations are not known"
    else:
        intensity = "" if not work.intensity else f", {work.intensity:.3g} per byte"
        counted = f"{number(work.flops)} operations{intensity}"
    read, written = number(work.bytes_read), number(work.bytes_written)
    yield f"work: {at_most}{read} bytes read, {written} written, {counted}"
    if work.bytes:
        machine = f"{roofs.target}, {roofs.threads} threads"
        yield f"roof: {time_text(roofs.seconds(work))}, by {roofs.limit(work)} ({machine})"


def _cells(result: Result, entry: Entry) -> tuple[str, ...]:
    assert entry.seconds is not None
    roof = result.of_roof(entry)
    ratio = ("", "") if entry.ratio is None else (f"{entry.ratio.median:.2f} x", _between(entry.ratio))
    spread = f"{time_text(entry.seconds.low)} - {time_text(entry.seconds.high)}"
    name = OURS if entry.name == OURS else entry.name
    cell = "" if roof is None else f"{roof:.0%}"
    return (name, NAMES[entry.framework], time_text(entry.seconds.median), spread, *ratio, cell)


def _between(spread: Spread) -> str:
    return f"{spread.low:.2f} - {spread.high:.2f}"
