"""Run what needs a GPU in one call: tests on CUDA, then benchmarks beside PyTorch and Triton.

    python tools/device.py build/device.json [--minutes 8]

The file has the machine, the tests that ran and failed, and the rows of bench/rows/cuda_loops.py. Tests get
five eighths of the time; what has not run by then counts as not run. The exit code is 1 if a test failed or
none ran, and 2 without a GPU.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TESTS = (
    "tests/loops/emit/test_cuda_hardware.py",
    "tests/loops/derive/test_device_derived.py::test_on_a_gpu",
    "tests/define/library/test_library_cuda.py",
    "tests/define/module/test_module_cuda.py",
)


def has_gpu() -> bool:
    """Return whether PyTorch has a CUDA device here."""
    try:
        import torch
    except ImportError:
        return False
    return bool(torch.cuda.is_available())


def tested(seconds: float) -> dict[str, Any]:
    """Run the tests for so long; return how many passed, were skipped or failed, by name."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "tests.xml")
        command = [sys.executable, "-m", "pytest", "-q", "--more", "all", f"--junitxml={report}", *TESTS]
        process = subprocess.Popen(command, cwd=ROOT)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(2)  # pytest writes its report then
            process.wait()
        cases = list(ET.parse(report).iter("testcase")) if report.exists() else []  # noqa: S314 - pytest wrote it
    states = {f"{case.get('classname')}::{case.get('name')}": state(case) for case in cases}
    names = {kind: [name for name, one in states.items() if one == kind] for kind in ("failed", "skipped")}
    passed = sum(one == "passed" for one in states.values())
    return {"passed": passed, "ended": process.returncode in (0, 1), **names}


def state(case: ET.Element) -> str:
    """Return whether a case of the report passed, failed or was skipped."""
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    return "skipped" if case.find("skipped") is not None else "passed"


def measured() -> Iterator[dict[str, Any]]:
    """Yield the lines of the rows for CUDA."""
    sys.path.insert(0, str(ROOT / "bench"))
    import run  # of bench/
    from measure import Settings

    yield from run.measure(ROOT / "bench" / "rows" / "cuda_loops.py", (), Settings(15, 0.002, 1))


def main(arguments: Sequence[str]) -> int:
    """Write the file of results."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path, help="where the results go, as JSON")
    parser.add_argument("--minutes", type=float, default=8, help="how long it may take")
    options = parser.parse_args(arguments)
    if not has_gpu():
        print("PyTorch has no CUDA device here: nothing was run", file=sys.stderr)
        return 2
    tests = tested(options.minutes * 60 * 5 / 8)
    lines = list(measured())
    import report  # of bench/

    options.file.parent.mkdir(parents=True, exist_ok=True)
    found = {"machine": report.machine(), "tests": tests, "rows": lines}
    options.file.write_text(json.dumps(found, indent=1) + "\n")
    print(f"{tests['passed']} passed, {len(tests['failed'])} failed; {len(lines)} rows; see {options.file}")
    return int(bool(tests["failed"]) or not tests["passed"])


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
