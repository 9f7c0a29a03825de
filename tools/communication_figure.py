"""Write docs/guides/communication.svg from examples/20_communication: python tools/communication_figure.py.

Bytes per device against the number of devices, both logarithmic. Each curve has its name at its right end.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FIGURE = ROOT / "docs" / "guides" / "communication.svg"
COUNTS = [2**k for k in range(1, 11)]
WIDTH, HEIGHT = 760, 400
LEFT, RIGHT, TOP, BOTTOM = 70, 180, 20, 50
COLOURS = ("#1b6ca8", "#c1440e", "#2e7d32", "#6a1b9a", "#8d6e00", "#00838f")
TEXT, LINES = "#222222", "#dddddd"


def curves() -> dict[str, list[int]]:
    """Return the bytes of each way for each number of devices."""
    sys.path.insert(0, str(ROOT / "examples" / "20_communication"))
    try:
        from costs import WAYS, received
    finally:
        sys.path.pop(0)
    return {way: [received(way, count) for count in COUNTS] for way in WAYS}


def svg(rows: Mapping[str, Sequence[int]]) -> str:
    """Return the figure; ``rows`` has the bytes for each of ``COUNTS``, which are not 0."""
    values = [value for row in rows.values() for value in row]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    style = 'font-family="sans-serif" font-size="12"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" {style}>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        *_axes(low, high),
    ]
    for (name, row), colour in zip(rows.items(), COLOURS, strict=False):
        points = [(_x(count), _y(value, low, high)) for count, value in zip(COUNTS, row, strict=True)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        lines.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        lines += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{colour}"/>' for x, y in points]
        end_x, end_y = points[-1]
        lines.append(_text(end_x + 8, end_y + 4, name, colour))
    return "\n".join([*lines, "</svg>", ""])


def _axes(low: int, high: int) -> Iterator[str]:
    bottom = HEIGHT - BOTTOM
    for power in range(low, high + 1):
        y = _y(10**power, low, high)
        yield f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="{LINES}"/>'
        yield _text(LEFT - 8, y + 4, _bytes(power), TEXT, "end")
    for count in COUNTS:
        yield f'<path d="M{_x(count):.1f} {bottom}v5" stroke="{TEXT}"/>'
        yield _text(_x(count), bottom + 20, str(count), TEXT, "middle")
    yield f'<path d="M{LEFT} {bottom}H{WIDTH - RIGHT}" stroke="{TEXT}"/>'
    yield _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, "devices", TEXT, "middle")
    yield _text(LEFT + 6, TOP + 14, "received by a device, forward and backward", TEXT)


def _x(count: int) -> float:
    share = math.log(count / COUNTS[0]) / math.log(COUNTS[-1] / COUNTS[0])
    return LEFT + share * (WIDTH - LEFT - RIGHT)


def _y(value: float, low: int, high: int) -> float:
    share = (math.log10(value) - low) / (high - low)
    return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)


def _bytes(power: int) -> str:
    units = {0: "B", 3: "kB", 6: "MB", 9: "GB"}
    unit = power // 3 * 3
    return f"{10 ** (power - unit)} {units[unit]}"


def _text(x: float, y: float, text: str, colour: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" text-anchor="{anchor}">{text}</text>'


if __name__ == "__main__":
    FIGURE.write_text(svg(curves()))
