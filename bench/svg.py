"""Draw bars and points on logarithmic axes, as SVG that follows the reader's light or dark theme.

The SVG is written here, not by a plotting library: those write colours for one theme, and other bytes in each
version.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, RIGHT, TOP, STEP = 760, 70, 34, 18
STYLE = """\
text { font: 11px sans-serif; fill: #24292f; }
.title { font-weight: bold; font-size: 13px; }
.quiet { fill: #57606a; }
.end { text-anchor: end; }
.middle { text-anchor: middle; }
.grid { stroke: #d0d7de; } .one { stroke: #24292f; stroke-width: 1.5; }
.good { fill: #2a78b8; } .miss { fill: #c4562a; }
.spread { stroke: #57606a; stroke-width: 1.5; } .limit { stroke: #c4562a; stroke-width: 2; }
.roof { stroke: #57606a; stroke-width: 1.5; fill: none; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; } .quiet { fill: #9198a1; } .grid { stroke: #3d444d; } .one { stroke: #e6edf3; }
  .good { fill: #58a6e0; } .miss { fill: #f08a5d; } .limit { stroke: #f08a5d; }
  .spread, .roof { stroke: #9198a1; }
}"""


@dataclass(frozen=True)
class Frame:
    """The width of a chart, and that of the names on its left; a name has up to ``left / 7`` letters."""

    width: float
    left: float


WIDE, NARROW = Frame(820, 310), Frame(480, 200)


@dataclass(frozen=True)
class Bar:
    """A ratio with its spread; ``limit`` is what it must not exceed, ``missed`` whether it does."""

    name: str
    value: float
    low: float
    high: float
    limit: float | None = None
    missed: bool = False


@dataclass(frozen=True)
class Axis:
    """A logarithmic axis from ``low`` to ``high``, drawn from pixel ``start`` to pixel ``end``."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """Return the pixel of a value; values outside are at the ends.

        >>> Axis(0.1, 10.0, 0, 100).at(1.0)
        50.0
        """
        share = (math.log10(value) - math.log10(self.low)) / (math.log10(self.high) - math.log10(self.low))
        return self.start + min(1.0, max(0.0, share)) * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Return 1, 2 and 5 times the powers of ten, or those powers alone if there are many."""
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        steps = (1, 2, 5) if last - first < 4 else (1,)
        values = [step * 10.0**power for power in range(first, last + 1) for step in steps]
        return [v for v in values if self.low <= v * 1.0001 and v <= self.high * 1.0001]


def bars(title: str, axis_title: str, rows: Sequence[Bar], frame: Frame = WIDE) -> str:
    """Return a chart of ratios: each bar goes from 1 to its value."""
    values = [v for row in rows for v in (row.low, row.value, row.high, row.limit or 1.0)]
    axis = Axis(min(*values, 0.5) / 1.15, max(*values, 2.0) * 1.15, frame.left, frame.width - RIGHT)
    bottom = TOP + STEP * len(rows)
    parts = [_text(8, 16, title, "title")]
    for tick in axis.ticks():
        x = axis.at(tick)
        parts += [_line(x, TOP - 4, x, bottom, "grid"), _text(x, bottom + 14, f"{tick:g}", "quiet middle")]
    parts.append(_line(axis.at(1.0), TOP - 4, axis.at(1.0), bottom, "one"))
    for place, row in enumerate(rows):
        parts += _bar(row, axis, TOP + STEP * place)
    parts.append(_text((axis.start + axis.end) / 2, bottom + 30, axis_title, "quiet middle"))
    return _document(title, frame.width, bottom + 38, parts)


def _bar(row: Bar, axis: Axis, y: float) -> list[str]:
    start, end = sorted((axis.at(1.0), axis.at(row.value)))
    limit = "" if row.limit is None else f", bar {row.limit:g}"
    note = f"{row.name}: {row.value:.3g} ({row.low:.3g} - {row.high:.3g}{limit})"
    box = (
        f'<rect class="{"miss" if row.missed else "good"}" x="{start:.2f}" y="{y + 3:.0f}" '
        f'width="{max(end - start, 1):.2f}" height="12"><title>{escape(note)}</title></rect>'
    )
    parts = [
        _text(axis.start - 8, y + 12, row.name, "end"),
        box,
        _line(axis.at(row.low), y + 9, axis.at(row.high), y + 9, "spread"),
        _text(axis.end + 8, y + 12, f"{row.value:.2f}", ""),
    ]
    if row.limit is not None and row.limit != 1.0:
        parts.append(_line(axis.at(row.limit), y + 1, axis.at(row.limit), y + 17, "limit"))
    return parts


@dataclass(frozen=True)
class Point:
    """A kernel: operations per byte, operations per second, and whether it misses its bar."""

    name: str
    intensity: float
    reached: float
    missed: bool = False


def roofline(
    title: str,
    roofs: Sequence[tuple[str, float]],
    flats: Sequence[tuple[str, float]],
    points: Sequence[Point],
) -> str:
    """Return points under roofs: (level, bytes per second), and flat ones: (dtype, operations per second)."""
    left, right, top, bottom = 70, WIDTH - 130, TOP, 400
    low, high = min(p.intensity for p in points) / 2, max(p.intensity for p in points) * 3
    x = Axis(low, high, left, right)
    peak = max(rate for _, rate in flats)
    y = Axis(min(p.reached for p in points) / 3, peak * 2, bottom, top)
    parts = [_text(8, 16, title, "title")]
    for tick in x.ticks():
        parts += [_line(x.at(tick), top, x.at(tick), bottom, "grid")]
        parts += [_text(x.at(tick), bottom + 14, f"{tick:g}", "quiet middle")]
    for tick in y.ticks():
        parts += [_line(left, y.at(tick), right, y.at(tick), "grid")]
        parts += [_text(left - 6, y.at(tick) + 4, f"{tick / 1e9:g}", "quiet end")]
    for name, rate in roofs:
        corner = min(peak / rate, high)
        first = max(low, y.low / rate)
        parts.append(_line(x.at(first), y.at(first * rate), x.at(corner), y.at(corner * rate), "roof"))
        middle = math.sqrt(first * corner)
        parts.append(
            _text(x.at(middle), y.at(middle * rate) - 6, f"{name} {rate / 1e9:.0f} GB/s", "quiet end")
        )
    for name, rate in flats:
        parts.append(_line(x.at(rate / max(r for _, r in roofs)), y.at(rate), right, y.at(rate), "roof"))
        parts.append(_text(right + 6, y.at(rate) + 4, f"{name} {rate / 1e9:.0f} G/s", "quiet"))
    for point in points:
        note = f"{point.name}: {point.intensity:.3g} operations per byte, {point.reached / 1e9:.3g} G/s"
        kind = "miss" if point.missed else "good"
        parts.append(
            f'<circle class="{kind}" cx="{x.at(point.intensity):.2f}" cy="{y.at(point.reached):.2f}" r="4">'
            f"<title>{escape(note)}</title></circle>"
        )
    parts += _labels([(x.at(p.intensity), y.at(p.reached), p.name) for p in points], right)
    parts.append(_text((left + right) / 2, bottom + 30, "operations per byte", "quiet middle"))
    parts.append(_text(8, top - 4, "10^9 operations per second", "quiet"))
    return _document(title, WIDTH, bottom + 38, parts)


def _labels(points: Sequence[tuple[float, float, str]], edge: float) -> list[str]:
    """Return a name beside each point, where it covers no other name or point, and left of the edge."""
    taken = [(x - 4, y - 4, x + 4, y + 4) for x, y, _ in points]
    taken.append((edge, 0, WIDTH, 1000))
    parts = []
    for x, y, name in sorted(points, key=lambda point: point[1]):
        width = 6.0 * len(name)
        places = [(x + 7, y + 4), (x - 7 - width, y + 4), (x + 7, y + 13), (x - 7 - width, y + 13)]
        places += [(x + 7, y - 6), (x - 7 - width, y - 6), (x - width / 2, y + 22), (x - width / 2, y - 14)]
        boxes = [(left, base - 8, left + width, base + 1) for left, base in places]
        free = [k for k, box in enumerate(boxes) if not any(_overlap(box, other) for other in taken)]
        best = free[0] if free else 0
        taken.append(boxes[best])
        parts.append(_text(*places[best], name, ""))
    return parts


def _overlap(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _document(title: str, width: float, height: float, parts: Sequence[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img">'
    return "\n".join(
        [head, f"<title>{escape(title)}</title>", f"<style>\n{STYLE}\n</style>", *parts, "</svg>", ""]
    )


def _text(x: float, y: float, words: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x:.2f}" y="{y:.2f}">{escape(words)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x1:.2f}" y1="{y1:.2f}" x2="{x2:.2f}" y2="{y2:.2f}"/>'
