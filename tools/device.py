"""Run what needs a GPU in one call: tests on CUDA, then benchmarks beside PyTorch and Triton.

    python tools/device.py build/device.json [--minutes 8]

The file has the tests that passed and failed, the machine, and the rows of bench/rows/cuda_loops.py. Tests
get five eighths of the time, rows the rest. The exit code is 1 if something failed or did not end, and 3
without a GPU.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TESTS = (
    "tests/loops/emit/test_cuda_hardware.py",
    "tests/loops/derive/test_device_derived.py::test_on_a_gpu",
    "tests/define/library/test_library_cuda.py",
    "tests/define/module/test_module_cuda.py",
)

PATIENCE = 20.0
"""Seconds that a command has to end once it is asked to."""


def has_gpu() -> bool:
    """Return whether PyTorch has a CUDA device here."""
    try:
        import torch
    except ImportError:
        return False
    return bool(torch.cuda.is_available())


def tested(seconds: float) -> dict[str, Any]:
    """Run the tests for so long; return how many passed, which failed or were skipped, and the exit code."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "tests.xml")
        options = ["-q", "-n", "4", "--more", "all", f"--junitxml={report}"]
        code = within(seconds, [sys.executable, "-m", "pytest", *options, *TESTS])
        cases = list(ET.parse(report).iter("testcase")) if report.exists() else []  # noqa: S314 - pytest wrote it
    states = {f"{case.get('classname')}::{case.get('name')}": state(case) for case in cases}
    names = {kind: [name for name, one in states.items() if one == kind] for kind in ("failed", "skipped")}
    passed = sum(one == "passed" for one in states.values())
    return {"passed": passed, **names, "code": code}


def within(seconds: float, command: Sequence[str]) -> int | None:
    """Run a command and what it starts for so long; return its exit code, None if it had to be stopped."""
    process = subprocess.Popen(command, cwd=ROOT, start_new_session=True)
    code = None
    try:
        code = process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)  # pytest writes its report then
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(PATIENCE)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return code


def state(case: ET.Element) -> str:
    """Return whether a case of the report passed, failed or was skipped."""
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    return "skipped" if case.find("skipped") is not None else "passed"


def measured(seconds: float) -> dict[str, Any]:
    """Return the machine, the lines of the rows for CUDA, and the exit code of their process."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "rows.json")
        code = within(seconds, [sys.executable, __file__, "--rows", str(file)])
        found = json.loads(file.read_text()) if file.exists() else {"rows": []}
        return {**found, "rows_code": code}


def write_rows(file: Path) -> None:
    """Measure, and write the file after each row."""
    sys.path.insert(0, str(ROOT / "bench"))
    import report  # these three are of bench/
    import run
    from measure import Settings

    machine, lines = report.machine(), []
    file.write_text(json.dumps({"machine": machine, "rows": []}))
    for line in run.measure(ROOT / "bench" / "rows" / "cuda_loops.py", (), Settings(15, 0.002, 1)):
        lines.append(line)
        partial = file.with_suffix(".part")
        partial.write_text(json.dumps({"machine": machine, "rows": lines}))
        partial.replace(file)


def main(arguments: Sequence[str]) -> int:
    """Write the file of results."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path, help="where the results go, as JSON")
    parser.add_argument("--minutes", type=float, default=8, help="how long it may take")
    parser.add_argument("--rows", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.rows:
        write_rows(options.file)
        return 0
    if not has_gpu():
        print("PyTorch has no CUDA device here: nothing was run", file=sys.stderr)
        return 3
    options.file.parent.mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = {"tests": tested(options.minutes * 60 * 5 / 8)}
    options.file.write_text(json.dumps(found, indent=1) + "\n")
    found |= measured(options.minutes * 60 * 3 / 8)
    options.file.write_text(json.dumps(found, indent=1) + "\n")
    tests, failed = found["tests"], found["tests"]["failed"]
    print(f"{tests['passed']} passed, {len(failed)} failed, pytest's exit code {tests['code']}")
    print(f"{len(found['rows'])} rows, exit code {found['rows_code']} (None: it had to be stopped)")
    return int(tests["code"] != 0 or not tests["passed"] or found["rows_code"] != 0)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
