"""Print the table of a run, and write it to bench/results."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from polyop.bench.machine import machine as about_machine
from polyop.core.texts import aligned

HEAD = ("work", "beside", "ours", "peer", "found", "10 % - 90 %", "bar", "")


def machine() -> dict[str, Any]:
    """Return the properties of the machine that numbers depend on; neither its name nor a path."""
    return {"kind": _kind(), **about_machine()}


def show(lines: Sequence[dict[str, Any]], *, plain: bool) -> None:
    """Print the table."""
    rows = [cells(line) for line in lines]
    if not plain:
        try:
            return _rich(rows)
        except ImportError:
            pass
    print("\n".join(aligned([HEAD, *rows])))
    return None


def write(folder: Path, about: dict[str, Any], lines: Sequence[dict[str, Any]]) -> None:
    """Write <kind>.json and <kind>.md."""
    folder.mkdir(exist_ok=True)
    data = json.dumps({"machine": about, "rows": list(lines)}, indent=1)
    (folder / f"{about['kind']}.json").write_text(data + "\n")
    packages = ", ".join(f"{name} {version}" for name, version in about["packages"].items())
    sureness = " (busy: less sure)" if about["busy"] else ""
    text = [
        f"# Speed, {about['kind']}",
        "",
        f"{about['processor']}, {about['cores']} cores, load {about['load']} before the run{sureness};",
        f"Python {about['python']}, {packages}. Written by `make bench`.",
        "",
        *(f"| {' | '.join(row)} |" for row in (HEAD, ("---",) * len(HEAD), *(cells(line) for line in lines))),
    ]
    (folder / f"{about['kind']}.md").write_text("\n".join(text) + "\n")


def cells(line: dict[str, Any]) -> tuple[str, ...]:
    """Return the cells of a row, one for each column of ``HEAD``."""
    bar = "-" if line["bar"] is None else _amount(line["bar"], line["unit"])
    if "value" not in line:
        return (line["name"], line["beside"], "", "", "", "", bar, line["verdict"])
    value, low, high = (_amount(line[key], line["unit"]) for key in ("value", "low", "high"))
    peer = "-" if line["peer_s"] is None else _amount(line["peer_s"], "s")
    return (
        line["name"],
        line["beside"],
        _amount(line["ours_s"], "s"),
        peer,
        value,
        f"{low} - {high}",
        bar,
        line["verdict"],
    )


def _amount(value: float, unit: str) -> str:
    if unit == "x":
        return f"{value:.2f} x"
    scale, name = next(
        (s, n) for s, n in ((1, "s"), (1e3, "ms"), (1e6, "us")) if value * s >= 0.5 or s == 1e6
    )
    return f"{value * scale:.3g} {name}"


def _rich(rows: Sequence[tuple[str, ...]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(*HEAD)
    for row in rows:
        style = {"ok": None, "": None, "known miss": "yellow"}.get(row[-1], "red")
        table.add_row(*row, style=style)
    console = Console()
    console.width = max(console.width, 150)
    console.print(table)


def _kind() -> str:
    try:
        import torch
    except ImportError:
        return "cpu"
    return "cuda" if torch.cuda.is_available() else "cpu"
