"""Count the operations and bytes of the loop kernels of the bench, for the roofline of docs/benchmarks.md.

    python bench/counts.py

writes bench/results/work.json. Nothing is timed: the numbers follow from the loops and the sizes.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER))

from loops import npbench  # noqa: E402 - beside this file
from loops.table import Row  # noqa: E402 - same

from polyop import dtype  # noqa: E402 - after the path
from polyop.core.spec import Spec  # noqa: E402 - same
from polyop.kernels.loop.kernel import LoopKernel  # noqa: E402 - same
from polyop.loops.analysis.work import work_of_loops  # noqa: E402 - same
from polyop.loops.frontend.parse import outline  # noqa: E402 - same


def main() -> None:
    table = {name: of_program(row) for name, row in npbench.ROWS.items()}
    (FOLDER / "results" / "work.json").write_text(json.dumps(table, indent=1) + "\n")


def of_program(row: Row) -> dict[str, Any]:
    """Return the work of a call at the size that is measured, and the roof that the bench compares with."""
    arguments = row.arguments(row.bench)
    tensors = [a for a in arguments if isinstance(a, np.ndarray)]
    names = outline(row.kernel).parameters
    attributes = dict(zip(names[len(tensors) :], arguments[len(tensors) :], strict=True))
    specs = [Spec(a.shape, dtype(a.dtype.name), "cpu") for a in tensors]
    typed = LoopKernel(row.kernel, tuple(attributes)).typed(specs, attributes)
    work = work_of_loops(typed, specs, attributes)
    size = np.dtype(row.dtype).itemsize
    bounds = [
        {"unit": b.unit, "amount": b.amount(size, **row.bench), "level": b.level, "dtype": row.dtype}
        for b in row.bounds
        if b.unit != "calls"
    ]
    return {"flops": work.flops, "bytes": work.bytes, "dtype": work.dtype, "bounds": bounds}


if __name__ == "__main__":
    main()
