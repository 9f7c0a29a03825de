"""Search schedules of eight kernels of bench/loops, and print how much each gains over the default.

    python bench/tuning.py [--seconds 60] [--any-order] [NAME ...]

Nothing is kept. The last line says how often the default was the best.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER))

import numpy as np  # noqa: E402 - after the path
from loops import npbench  # noqa: E402 - beside this file
from loops.table import Program  # noqa: E402 - same
from measure import keep_memory  # noqa: E402 - same

import polyop  # noqa: E402 - after the path
from polyop.bench.as_text import time_text  # noqa: E402 - same
from polyop.bench.machine import machine  # noqa: E402 - same
from polyop.kernels.loop.kernel import LoopKernel  # noqa: E402 - same
from polyop.loops.frontend.parse import outline  # noqa: E402 - same
from polyop.tune.search import Outcome, search  # noqa: E402 - same
from polyop.tune.variants import Subject  # noqa: E402 - same

KERNELS = (
    "softmax",
    "layernorm",
    "column_sums",
    "gather",
    "matmul_float32",
    "conv2d_bias",
    "jacobi_2d",
    "hdiff",
)
HEAD = ("kernel", "default", "tuned", "gain", "10 % - 90 %", "measured, legal, refused", "schedule")


def operator(name: str, program: Program, arguments: tuple[Any, ...]) -> Any:
    """Return a program as an operator, with a schema made from its arguments."""
    parsed = outline(program.kernel)
    tensors = sum(isinstance(a, np.ndarray) for a in arguments)
    inplace = dict(parsed.inplace)
    letters = {parameter: chr(97 + k) for k, (_, parameter) in enumerate(parsed.inplace)}

    def kind(parameter: Any) -> str:
        return f"Tensor({letters[parameter]}!)" if parameter in letters else "Tensor"

    texts = [f"{kind(k)} {name}" for k, name in enumerate(parsed.parameters[:tensors])]
    numbers = zip(parsed.parameters[tensors:], arguments[tensors:], strict=True)
    texts += [f"{type(value).__name__} {name}" for name, value in numbers]
    returned = [kind(inplace[k]) if k in inplace else "Tensor" for k in range(len(parsed.outputs))]
    result = returned[0] if len(returned) == 1 else f"({', '.join(returned)})"
    clean = "of_" + re.sub(r"\W", "_", name)
    kernel = LoopKernel(program.kernel, parsed.parameters[tensors:])
    return polyop.operator(f"benchmark::{clean}({', '.join(texts)}) -> {result}", kernel)


def tuned(name: str, options: argparse.Namespace) -> Outcome:
    """Return the outcome of the search for one kernel, in the sizes of the benchmark."""
    row = npbench.ROWS[name]
    arguments = row.arguments(row.bench)
    subject = Subject.of_arguments(operator(name, row, arguments), arguments)
    return search(subject, options.seconds, any_order=options.any_order)


def cells(name: str, outcome: Outcome) -> tuple[str, ...]:
    """Return the row of a kernel."""
    counts = (
        outcome.count("measured"),
        len(outcome.tried) - outcome.count("refused"),
        outcome.count("refused"),
    )
    tried = ", ".join(map(str, counts))
    default = time_text(outcome.default_seconds)
    if outcome.best is None:
        return (name, default, default, "1.00 x", "", tried, "the default")
    median, low, high = outcome.gain
    steps = str(outcome.best.schedule).removeprefix("polyop.Schedule()")
    best = time_text(outcome.best.seconds or 0.0)
    return (name, default, best, f"{median:.2f} x", f"{low:.2f} - {high:.2f}", tried, f"`{steps}`")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="kernels of bench/loops/npbench")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--any-order", action="store_true", help="allow schedules that add in another order")
    options = parser.parse_args()
    keep_memory()
    about = machine()
    print(f"{about['processor']}, {about['cores']} cores, load {about['load']}\n")
    for row in (HEAD, ("---",) * len(HEAD)):
        print(f"| {' | '.join(row)} |", flush=True)
    names = options.names or KERNELS
    best = 0
    for name in names:
        outcome = tuned(name, options)
        best += outcome.best is None
        print(f"| {' | '.join(cells(name, outcome))} |", flush=True)
    print(f"\nthe default was the best for {best} of {len(names)} kernels")


if __name__ == "__main__":
    main()
