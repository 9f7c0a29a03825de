"""Draw results: the times as bars, and the calls under the roofs of the machine.

matplotlib draws them. It is the plotting library that most people have, it writes SVG without a browser or a
server, and it has logarithmic axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..core.errors import UnsupportedError
from .frameworks import NAMES
from .roofline import Roofs
from .run import OURS, Entry, Result

OUR_COLOUR, PEER_COLOUR, ROOF_COLOUR = "#2a78b8", "#d9822b", "#888888"
FONTS = {"svg.fonttype": "none", "svg.hashsalt": "polyop", "font.size": 9}
"""Text stays text, and the same results give the same file."""


def draw(results: Sequence[Result], path: Path) -> None:
    """Write an SVG with the times of the results, and their roofline where operations are known.

    Raises ``UnsupportedError`` without matplotlib.
    """
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError:
        rule, hint = "needs matplotlib", "pip install 'polyop[bench]'"
        raise UnsupportedError("a picture", rule, hint=hint) from None
    counted = [r for r in results if r.roofs is not None and r.work is not None and r.work.intensity]
    bars = [(result, entry) for result in results for entry in result.entries if entry.seconds]
    with rc_context(FONTS):
        figure = Figure(figsize=(9, 1.2 + 0.3 * len(bars) + (3.6 if counted else 0)), layout="constrained")
        rows: Any = figure.subplots(
            2 if counted else 1, 1, height_ratios=[0.6 + 0.3 * len(bars), 3.6][: 1 + bool(counted)]
        )
        first = rows[0] if counted else rows
        _bars(first, bars)
        if counted:
            _roofline(rows[1], counted)
        figure.savefig(path, format="svg", metadata={"Date": None})


def _bars(axes: Any, bars: Sequence[tuple[Result, Entry]]) -> None:
    labels = [f"{result.name}\n{entry.name} in {NAMES[entry.framework]}" for result, entry in bars]
    seconds = [entry.seconds for _, entry in bars if entry.seconds is not None]
    middles = [spread.median * 1e3 for spread in seconds]
    errors = [[(s.median - s.low) * 1e3 for s in seconds], [(s.high - s.median) * 1e3 for s in seconds]]
    colours = [OUR_COLOUR if entry.name == OURS else PEER_COLOUR for _, entry in bars]
    axes.barh(range(len(bars)), middles, xerr=errors, color=colours, height=0.7, ecolor=ROOF_COLOUR)
    axes.set_yticks(range(len(bars)), labels, fontsize=7)
    axes.invert_yaxis()
    axes.set_xlabel("ms, median; the line is 10 % - 90 %")


def _roofline(axes: Any, results: Sequence[Result]) -> None:
    roofs = results[0].roofs
    assert roofs is not None
    points = []
    for result in results:
        for entry in result.entries:
            if result.work is not None and result.work.flops and result.work.intensity and entry.seconds:
                reached = result.work.flops / entry.seconds.median
                points.append((result.work.intensity, reached, entry))
    low, high = min(p[0] for p in points) / 8, max(p[0] for p in points) * 64
    dtypes = sorted({result.work.dtype for result in results if result.work is not None})
    _roof_lines(axes, roofs, dtypes, low, high)
    for intensity, reached, entry in points:
        ours = entry.name == OURS
        axes.plot(intensity, reached, "o" if ours else "s", color=OUR_COLOUR if ours else PEER_COLOUR)
        axes.annotate(f"{entry.name} in {NAMES[entry.framework]}", (intensity, reached), (6, -3), **_SMALL)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("operations per byte")
    axes.set_ylabel("operations per second")


def _roof_lines(axes: Any, roofs: Roofs, dtypes: Sequence[str], low: float, high: float) -> None:
    steps = [low * (high / low) ** (k / 60) for k in range(61)]
    for level in roofs.bandwidth:
        for name in dtypes:
            axes.plot(
                steps, [roofs.attainable(x, level, name) for x in steps], color=ROOF_COLOUR, linewidth=0.8
            )
        axes.annotate(level, (low, roofs.attainable(low, level, dtypes[0])), (2, 2), **_SMALL)
    for name in dtypes:
        axes.annotate(name, (high, roofs.flops_of(name)), (-40, 3), **_SMALL)


_SMALL: dict[str, Any] = {"textcoords": "offset points", "fontsize": 7}
