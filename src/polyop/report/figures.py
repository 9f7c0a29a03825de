"""The coordinates of the pictures; the templates draw them as SVG, in the colours of the page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..bench.as_text import time_text
from .units import amount, percent
from .values import Measured, Point, Space

WIDTH, HEIGHT = 440, 300
LEFT, RIGHT, TOP, BOTTOM = 62, 14, 16, 44
"""The margins around a plot."""


@dataclass(frozen=True)
class Tick:
    """A mark of an axis: where, and its text."""

    at: float
    text: str


@dataclass(frozen=True)
class Mark:
    """A point of a plot: where, its text, and its kind, which gives its colour and its shape."""

    x: float
    y: float
    text: str
    title: str
    kind: str
    label_y: float
    anchor: str
    low: float = 0.0
    high: float = 0.0


@dataclass(frozen=True)
class Roof:
    """A line of a roofline from (x, y) to (x2, y2), with its text."""

    x: float
    y: float
    x2: float
    y2: float
    text: str
    main: bool


@dataclass(frozen=True)
class Plot:
    """A plot: its axes, lines and marks, which are points or bars.

    ``ideal``: the points of the line of ideal scaling, as SVG writes them, or an empty text.
    """

    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    roofs: tuple[Roof, ...]
    marks: tuple[Mark, ...]
    ideal: str = ""
    width: int = WIDTH
    height: int = HEIGHT


class _Log:
    """A logarithmic axis from ``low`` to ``high``, in pixels from ``start`` to ``end``."""

    def __init__(self, low: float, high: float, start: float, end: float) -> None:
        self.low, self.high, self.start, self.end = low, high, start, end

    def __call__(self, value: float) -> float:
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return round(self.start + share * (self.end - self.start), 1)

    def ticks(self, unit: str) -> Iterator[Tick]:
        """Yield a tick for each power of ten on the axis."""
        first, last = math.ceil(math.log10(self.low)), math.floor(math.log10(self.high))
        for power in range(first, last + 1):
            value = 10.0**power
            yield Tick(self(value), f"{value:g}" if not unit else amount(value, unit))


def roofline(measured: Measured) -> Plot | None:
    """Return the roofline of what was measured; None where no point has known operations."""
    points = [p for p in measured.points if p.intensity]
    if not points:
        return None
    peak = dict(measured.flops).get(points[0].dtype) or max(dict(measured.flops).values())
    rates = dict(measured.bandwidth)
    xs = [p.intensity or 1.0 for p in points]
    ridge = peak / rates["dram"]
    low, high = min([*xs, 0.1]) / 2, max([*xs, ridge]) * 4
    bottom = min((p.flops or 1.0) / p.seconds for p in points) / 3
    x = _Log(low, high, LEFT, WIDTH - RIGHT)
    y = _Log(min(bottom, rates["dram"] * low), peak * 3, HEIGHT - BOTTOM, TOP)
    lines = []
    for level, rate in measured.bandwidth:
        start, end = max(low, y.low / rate), peak / rate
        if end > low:
            name = "main memory" if level == "dram" else level.upper()
            text = f"{name} {amount(rate, 'B/s')}"
            lines.append(Roof(x(start), y(rate * start), x(end), y(peak), text, level == measured.level))
    lines.append(
        Roof(
            x(peak / max(rates.values())),
            y(peak),
            WIDTH - RIGHT,
            y(peak),
            f"peak {amount(peak, 'op/s')}",
            True,
        )
    )
    marks = tuple(_marks(points, measured, x, y))
    return Plot(tuple(x.ticks("")), tuple(y.ticks("op/s")), tuple(lines), marks)


def _marks(points: Sequence[Point], measured: Measured, x: _Log, y: _Log) -> Iterator[Mark]:
    """Yield the points; labels that would cover each other are moved apart."""
    places = [(x(p.intensity or 1.0), y((p.flops or 1.0) / p.seconds) + 4) for p in points]
    taken: list[tuple[float, float]] = []
    parts = {name: part for name, _, part in measured.limits}
    for point in points:
        at = x(point.intensity or 1.0)
        height = y((point.flops or 1.0) / point.seconds)
        label = height + 4
        near = [*taken, *(place for place in places if place != (at, label))]
        while any(abs(label - other) < 14 and abs(at - where) < 150 for where, other in near):
            label += 14
        taken.append((at, label))
        anchor = "end" if at > WIDTH * 0.6 else "start"
        title = (
            f"{point.name}: {time_text(point.seconds)} (80 % of slices between {time_text(point.low)} and "
            f"{time_text(point.high)}), {point.intensity:.3g} operations per byte"
        )
        if point.name in parts:
            title += f", {percent(parts[point.name])} of its roof"
        yield Mark(at, height, point.name, title, point.kind, label, anchor)


def by_threads(measured: Measured) -> Plot | None:
    """Return the times by the number of threads, beside what ideal scaling gives; None without them."""
    rows = measured.threads
    if not rows:
        return None
    most = max(high for _, _, _, high in rows) * 1.1
    step = (WIDTH - LEFT - RIGHT) / len(rows)
    bottom, span = HEIGHT - BOTTOM, HEIGHT - BOTTOM - TOP

    def y(seconds: float) -> float:
        return round(bottom - span * seconds / most, 1)

    marks, ideal = [], []
    for number, (count, median, low, high) in enumerate(rows):
        at = round(LEFT + step * (number + 0.5), 1)
        title = (
            f"{count} thread{'s' * (count > 1)}: {time_text(median)} "
            f"(80 % of slices between {time_text(low)} and {time_text(high)})"
        )
        marks.append(
            Mark(at, y(median), time_text(median), title, "own", y(high) - 6, "middle", y(low), y(high))
        )
        ideal.append(f"{at},{y(rows[0][1] / count)}")
    ticks = tuple(Tick(round(LEFT + step * (k + 0.5), 1), str(row[0])) for k, row in enumerate(rows))
    values = _round_values(most)
    return Plot(ticks, tuple(Tick(y(v), time_text(v)) for v in values), (), tuple(marks), " ".join(ideal))


def _round_values(most: float) -> list[float]:
    """Return two to five multiples of 1, 2 or 5 times a power of ten, up to ``most``.

    >>> _round_values(0.0053)
    [0.002, 0.004]
    """
    power = 10.0 ** math.floor(math.log10(most))
    step = next(s * power for s in (0.2, 0.5, 1, 2, 5) if most / (s * power) < 4)
    return [round(step * k, 12) for k in range(1, int(most / step) + 1)]


CELL, EDGE = 44, 42
"""The distance of neighbouring iterations, and the margin around them."""


@dataclass(frozen=True)
class Dot:
    """An iteration: where it is, and the values of the loop variables."""

    x: float
    y: float
    text: str


@dataclass(frozen=True)
class Path:
    """An arrow between two iterations, as an SVG path; ``lines`` links it to the author's lines."""

    d: str
    title: str
    commutes: bool
    lines: tuple[int, ...]


@dataclass(frozen=True)
class Grid:
    """The picture of an iteration space."""

    dots: tuple[Dot, ...]
    paths: tuple[Path, ...]
    across: str
    down: str
    columns: tuple[Tick, ...]
    rows: tuple[Tick, ...]
    width: float
    height: float


def grid(space: Space) -> Grid:
    """Return the coordinates of the points and arrows of an iteration space: the inner loop to the right."""
    xs, ys = sorted({p[0] for p in space.points}), sorted({p[1] for p in space.points})
    two = len(space.loops) > 1
    inner, outer = space.loops[-1], space.loops[0] if two else ""

    def at(point: tuple[int, int]) -> tuple[float, float]:
        return EDGE + CELL * (point[0] - xs[0]), EDGE + CELL * (point[1] - ys[0])

    dots = tuple(
        Dot(*at(p), f"{outer} = {p[1]}, {inner} = {p[0]}" if two else f"{inner} = {p[0]}")
        for p in space.points
    )
    paths = []
    for arrow in space.arrows:
        (a, b), (c, d) = at(arrow.start), at(arrow.end)
        length = math.hypot(c - a, d - b)
        start, end = 8 / length, 1 - 11 / length
        points = [(a + (c - a) * s, b + (d - b) * s) for s in (start, 0.5, end)]
        far = length > CELL * 1.5
        bend = (points[1][0] - (d - b) * 0.14 * far, points[1][1] + (c - a) * 0.14 * far)
        numbers = (*points[0], *bend, *points[2])
        text = "M{:.1f} {:.1f}Q{:.1f} {:.1f} {:.1f} {:.1f}".format(*numbers)
        lines = tuple(dict.fromkeys(arrow.lines))
        what = "adds to" if arrow.commutes else "needs"
        named = " and ".join(f"line {n}" for n in lines)
        paths.append(
            Path(text, f"{arrow.target}, {named}: the later iteration {what} it", arrow.commutes, lines)
        )
    return Grid(
        dots,
        tuple(paths),
        inner,
        outer,
        tuple(Tick(at((v, ys[0]))[0], str(v)) for v in range(xs[0], xs[-1] + 1)),
        tuple(Tick(at((xs[0], v))[1], str(v)) for v in ys) if two else (),
        EDGE * 2 + CELL * (xs[-1] - xs[0]),
        EDGE * 2 + CELL * (ys[-1] - ys[0]),
    )
