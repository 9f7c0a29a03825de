"""Pictures of the gallery: SVG, drawn by matplotlib from what functions of the examples return."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

mpl.use("svg")
mpl.rcParams["svg.hashsalt"] = "polyop"  # the same names in each run
mpl.rcParams["font.size"] = 8

WIDTH, LINES = 46, 12
"""Of the code in a picture."""

DRAWN: dict[str, Drawing] = {}
"""The pictures, by the name of the example."""


@dataclass(frozen=True)
class Drawing:
    """A picture: its text for those who do not see it, the example's file, and the function that draws it."""

    alt: str
    file: str
    draw: Callable[[Any, Any], None]


def _drawing(example: str, file: str, alt: str) -> Callable[[Callable[[Any, Any], None]], None]:
    def add(draw: Callable[[Any, Any], None]) -> None:
        DRAWN[example] = Drawing(alt, file, draw)

    return add


def draw(name: str, root: Path) -> bytes:
    """Return the picture of an example as SVG: what it computes, or the lines that it is about."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.2, 2.0), layout="constrained")
    if name in DRAWN:
        with _module(root / "examples" / name / DRAWN[name].file) as module:
            DRAWN[name].draw(figure.add_subplot(), module)
    else:
        lines = _shown_lines(root / "examples" / name)
        figure.text(0.03, 0.96, lines, family="monospace", size=7, va="top")
    data = io.BytesIO()
    figure.savefig(data, format="svg", metadata={"Date": None})
    return data.getvalue()


def _shown_lines(folder: Path) -> str:
    """Return the first lines of a program's first region, ``# [name]``, or of what follows its imports."""
    programs = [folder / "main.py", *sorted(folder.glob("*.py"))]
    text = next(path.read_text() for path in programs if path.exists())
    region = re.search(r"^# \[\w+\]\n(.*?)^# \[/", text, re.DOTALL | re.MULTILINE)
    body = region[1] if region else re.split(r"^(?:import|from) .*\n", text, flags=re.MULTILINE)[-1]
    lines = [line for line in body.splitlines() if line.strip() and not re.match("import |from |#", line)]
    return "\n".join(line if len(line) <= WIDTH else f"{line[: WIDTH - 2]} …" for line in lines[:LINES])


@contextlib.contextmanager
def _module(path: Path) -> Iterator[Any]:
    """Import a file of an example; what it prints is not shown. Its folder is on the path until the end."""
    spec = importlib.util.spec_from_file_location(f"drawn_{path.parent.name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    before = set(sys.modules)
    sys.path.insert(0, str(path.parent))
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            spec.loader.exec_module(module)
        yield module
    finally:
        sys.path.remove(str(path.parent))
        for name in set(sys.modules) - before:  # examples have files of the same name
            if Path(getattr(sys.modules[name], "__file__", None) or "").parent == path.parent:
                del sys.modules[name]


@_drawing("01_first", "main.py", "a line with a bend at zero, and its gradient, a step")
def _first(axes: Any, module: Any) -> None:
    x = np.linspace(-2, 2, 401, dtype=np.float32)
    out, pull = module.leaky.vjp(x, 0.2)
    axes.plot(x, out, label="leaky(x, 0.2)")
    axes.plot(x, pull(np.ones_like(x))[0], label="gradient")
    axes.legend()


@_drawing("10_digits", "in_numpy.py", "a loss that falls from step to step")
def _digits(axes: Any, module: Any) -> None:
    axes.plot(module.train()[0])
    axes.set(xlabel="step", ylabel="loss")


@_drawing("19_heat", "heat.py", "temperatures of a plate: a warm disc in the middle")
def _heat(axes: Any, module: Any) -> None:
    start, _ = module.fit(module.target())
    axes.figure.colorbar(axes.imshow(start, cmap="inferno"), ax=axes, label="fitted start")
    axes.set(xticks=[], yticks=[])


@_drawing("20_communication", "costs.py", "bytes per device for 4 to 1024 devices, one line for each layout")
def _communication(axes: Any, module: Any) -> None:
    counts = [4**k for k in range(1, 6)]
    for way in module.WAYS:
        axes.loglog(counts, [max(module.received(way, count), 1) for count in counts], label=way)
    axes.set(xlabel="devices", ylabel="bytes per device")
    axes.legend(fontsize=5)


@_drawing("22_random", "kernels.py", "a mask of dropout: scattered squares")
def _random(axes: Any, module: Any) -> None:
    axes.imshow(module.dropout(np.ones((20, 36), np.float32), np.array([7, 0], np.uint32)), cmap="Greys")
    axes.set(xticks=[], yticks=[], xlabel="dropout of ones, rate 0.5")


@_drawing("24_int4", "kernels.py", "weights as a line, and rounded to fifteen steps")
def _int4(axes: Any, module: Any) -> None:
    weights = np.sin(np.linspace(0, 6.3, 64, dtype=np.float32))[None]
    packed, scale = module.pack(weights)
    read = module.matmul(np.eye(64, dtype=np.float32), packed, scale)
    axes.plot(weights[0], label="float32")
    axes.step(range(64), read[:, 0], where="mid", label="4 bits")
    axes.legend()


@_drawing("25_detector", "kernels.py", "a spot, a box around a part of it, and what ROI align reads there")
def _roi_align(axes: Any, module: Any) -> None:
    rows, columns = np.mgrid[:16, :20]
    image = np.exp(-((rows - 6) ** 2 + (columns - 12) ** 2) / 30.0).astype(np.float32)
    box = np.array([[8.0, 2.0, 18.0, 12.0]], np.float32)
    read = module.roi_align(image[None, None], box, np.zeros(1, np.int32), size=8)
    axes.imshow(np.pad(image, ((0, 0), (0, 2))), cmap="viridis")
    axes.imshow(read[0, 0], extent=(22, 38, 15.5, -0.5), cmap="viridis")
    axes.plot([8, 18, 18, 8, 8], [2, 2, 12, 12, 2], color="white")
    axes.set(xlim=(-0.5, 38), xticks=[], yticks=[], xlabel="image, box | what is read")
