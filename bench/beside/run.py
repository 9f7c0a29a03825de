"""Run the six problems in polyop and in its peers, one process each, and write docs/comparison.md.

    python bench/beside/run.py [--no-warm] [PROBLEM ...]

Every function of ``kernels_*.py`` runs twice at a small size, with an empty cache and with what that left.
Each element of its gradient is compared. Then the functions with a right gradient are timed in turns, in
processes that are alive together on one CPU. Without names the results are written to
bench/results/beside.json, and the page from them; with names they are printed.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib.metadata
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
sys.path[:0] = [str(FOLDER), str(FOLDER.parent)]

import count  # noqa: E402 - beside this file
import page  # noqa: E402 - same
from measure import BYTECODE  # noqa: E402 - in bench
from problems import PROBLEMS  # noqa: E402 - same
from worker import ENOUGH  # noqa: E402 - same

from polyop.bench.machine import machine  # noqa: E402 - after the path
from polyop.bench.timing import Spread  # noqa: E402 - same

FRAMEWORKS = {
    "polyop": "polyop",
    "warp": "warp-lang",
    "taichi": "taichi",
    "numba": "numba",
    "torch": "torch",
    "jax": "jax",
}
"""The frameworks and their packages."""
ROUNDS, SLICE_S = 11, 0.03
LIMIT_S = 300
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "POLYOP_NUM_THREADS": "1",
    "JAX_PLATFORMS": "cpu",
    "TI_LOG_LEVEL": "error",
}


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("problems", nargs="*", metavar="PROBLEM", help=", ".join(PROBLEMS))
    parser.add_argument("--no-warm", action="store_true", help="leave out the second run of each")
    options = parser.parse_args(arguments)
    for name in FRAMEWORKS.keys() - versions().keys():
        print(f"{name}: not run, it is not installed", file=sys.stderr)
    run: dict[str, Any] = {"machine": machine(), "versions": versions(), "rows": [], "times": []}
    with tempfile.TemporaryDirectory() as folder:
        for name in options.problems or PROBLEMS:
            rows = [row_of(*one, folder, warm=not options.no_warm) for one in functions(name)]
            run["rows"] += rows
            run["times"] += times_of(name, rows, folder)
        run["default_stack"] = default_stack(options.problems or list(PROBLEMS), folder)
    if options.problems:
        print(page.text(run))
        return 0
    page.RESULTS.write_text(json.dumps(run, indent=1) + "\n")
    page.write(run)
    return 0


@functools.cache
def versions() -> dict[str, str]:
    """Return the versions of the frameworks; one that is not installed is left out."""
    installed = {one.metadata["Name"].lower(): one.version for one in importlib.metadata.distributions()}
    return {name: installed[package] for name, package in FRAMEWORKS.items() if package in installed}


def functions(problem: str) -> Iterator[tuple[str, str]]:
    """Yield (framework, function) for each way in which a problem is written."""
    for framework in versions():
        text = (FOLDER / f"kernels_{framework}.py").read_text(encoding="utf-8")
        for name in (problem, f"{problem}_other"):
            if f"\ndef {name}(" in text:
                yield framework, name


def row_of(framework: str, function: str, folder: str, *, warm: bool = True) -> dict[str, Any]:
    """Return the values, the gradient, the lines and the seconds of the first calls of a function."""
    print(f"  {framework} {function} ...", file=sys.stderr, flush=True)
    row: dict[str, Any] = {
        "framework": framework,
        "problem": function.removesuffix("_other"),
        "other": function.endswith("_other"),
        "lines": count.of_file(FOLDER / f"kernels_{framework}.py", function),
    }
    found = run_once(framework, function, "small", folder)
    row.update(found)
    row["cold_s"] = found.get("both_s", found.get("forward_s"))
    if warm:
        again = run_once(framework, function, "small", folder)
        row["warm_s"] = again.get("both_s", again.get("forward_s"))
    row["verdict"] = verdict(row)
    return row


def verdict(row: Mapping[str, Any]) -> str:
    """Return what became of the gradient.

    >>> verdict({"forward_error": 0.0, "gradient_error": 2.0})
    'wrong'
    """
    if "crashed" in row:
        return "crashed"
    if row.get("forward_error", 1.0) > ENOUGH:
        return "forward wrong" if "forward_error" in row else "refused"
    if "refused" in row:
        return "refused"
    if "gradient_error" not in row:
        return "none"
    return "right" if row["gradient_error"] <= ENOUGH else "wrong"


def run_once(
    framework: str, function: str, size: str, folder: str, env: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return the last line that a worker printed; with ``crashed``, the signal, if it was killed."""
    try:
        done = subprocess.run(
            command(framework, function, size),
            env={**environment(folder), **(env or {})},
            input="",
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"crashed": f"no end after {LIMIT_S} s"}
    lines = done.stdout.splitlines()
    found: dict[str, Any] = json.loads(lines[-1]) if lines else {}
    if done.returncode < 0 or not found:
        found["crashed"] = f"signal {-done.returncode}" if done.returncode < 0 else done.stderr[-300:]
    return found


def command(framework: str, function: str, size: str) -> list[str]:
    """Return the command of a worker."""
    return [sys.executable, str(FOLDER / "worker.py"), framework, function, size]


def environment(folder: str) -> dict[str, str]:
    """Return the variables of a worker: one thread, caches in a folder, and bytecode files as after pip."""
    caches = {
        "XDG_CACHE_HOME": folder,
        "WARP_CACHE_PATH": f"{folder}/warp",
        "TI_OFFLINE_CACHE_FILE_PATH": f"{folder}/taichi",
    }
    variables = {**os.environ, **ONE_THREAD, **caches, "PYTHONPYCACHEPREFIX": str(BYTECODE)}
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    return variables


def default_stack(problems: Sequence[str], folder: str) -> dict[str, str]:
    """Return the verdicts of Taichi with its default ``ad_stack_size``, at the timed sizes."""
    if "taichi" not in versions():
        return {}
    env = {"BESIDE_AD_STACK_SIZE": "0"}
    return {name: verdict(run_once("taichi", name, "timed", folder, env)) for name in problems}


class Alive:
    """A worker that answers requests for times."""

    def __init__(self, framework: str, function: str, folder: str) -> None:
        self.framework, self.function = framework, function
        self.process = subprocess.Popen(
            command(framework, function, "timed"),
            env=environment(folder),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        first: dict[str, Any] = self._answer() or {}
        self.found = self._answer() or {**first, "crashed": True}

    def seconds(self, what: str) -> float:
        """Return the seconds per call of one slice; infinite when the process has died."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(f"{what} {SLICE_S}\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return math.inf
        return float(self._answer() or math.inf)

    def end(self) -> None:
        """Let the process end."""
        with contextlib.suppress(BrokenPipeError):
            self.process.communicate()

    def _answer(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        return json.loads(line) if line else None


def times_of(problem: str, rows: Sequence[Mapping[str, Any]], folder: str) -> list[dict[str, Any]]:
    """Return the seconds of the forward and of forward + backward, measured in turns, on one thread."""
    workers = []
    for framework in versions():
        own = [row for row in rows if row["framework"] == framework]
        best = next((row for row in own if row["verdict"] == "right"), own[0])
        function = f"{problem}_other" if best["other"] else problem
        workers.append((Alive(framework, function, folder), best))
    slices: dict[tuple[str, str], list[float]] = {}
    jobs = [
        (worker, what)
        for worker, best in workers
        for what in ("forward", "gradient")
        if "crashed" not in worker.found and (what == "forward" or is_right(worker.found, best))
    ]
    for turn in range(ROUNDS + 1):
        for worker, what in jobs if turn % 2 else reversed(jobs):
            elapsed = worker.seconds(what)
            if turn:  # the first turn warms up
                slices.setdefault((worker.framework, what), []).append(elapsed)
    for worker, _ in workers:
        worker.end()
    return [
        {
            "problem": problem,
            "framework": framework,
            "what": what,
            "other": next(b["other"] for w, b in workers if w.framework == framework),
            "seconds": vars(Spread.of(own)),
            "ratio": vars(Spread.of([a / b for a, b in zip(slices["polyop", what], own, strict=True)]))
            if ("polyop", what) in slices
            else None,
        }
        for (framework, what), own in slices.items()
        if math.inf not in own
    ]


def is_right(found: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
    """Whether a gradient is right at both sizes; the time of a wrong one says nothing."""
    return row["verdict"] == "right" and found.get("gradient_error", 1.0) <= ENOUGH


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
