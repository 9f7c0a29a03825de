"""Parameters of the suite, the counts per host at the end, and result files for other environments."""

import os
import pathlib
import sys
import zlib

import numpy as np
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))  # tests are no package

import cases
import xfails

from polyop.testing import frameworks

collect_ignore_glob = ["operators/*"]  # imported by the catalogue, once
RESULTS = {}
ABSENT = {}


def _parameters():
    for host in frameworks.HOSTS:
        listed = cases.of_host(host)
        ABSENT[host] = frameworks.absent(host)
        if ABSENT[host]:
            reason = f"{host}: not run: {len(listed)} cases ({ABSENT[host]})"
            yield pytest.param(host, "", "", marks=pytest.mark.skip(reason=reason), id=f"{host}-absent")
            continue
        known = xfails.read(host)
        for mode, name in listed:
            reason = known.get((mode, name))
            marks = [pytest.mark.xfail(reason=reason, strict=True)] if reason else []
            yield pytest.param(host, mode, name, marks=marks, id=f"{host}-{mode}-{name}")


def pytest_generate_tests(metafunc):
    """Give ``host``, ``mode``, ``name`` every case."""
    if "mode" in metafunc.fixturenames:
        metafunc.parametrize(("host", "mode", "name"), list(_parameters()))


@pytest.fixture
def record():
    """Keep results for the file that other environments read."""
    return lambda host, mode, name, arrays: RESULTS.update(
        {f"{host}|{mode}|{name}|{label}": array for label, array in arrays.items()}
    )


def pytest_sessionfinish(session):
    """Write the results where POLYOP_CONTRACT_RESULTS says."""
    folder = os.environ.get("POLYOP_CONTRACT_RESULTS")
    if folder and RESULTS:
        worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
        path = pathlib.Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        number = zlib.crc32(str(sys.prefix).encode())
        np.savez(path / f"{worker}-{number}.npz", **{k: cases.plain(v) for k, v in RESULTS.items()})


def pytest_terminal_summary(terminalreporter):
    """Print how many cases each host passed."""
    counts = {}
    for status, shown in (("passed", "passed"), ("failed", "FAILED"), ("xfailed", "known failures")):
        for report in terminalreporter.stats.get(status, []):
            if "test_contract.py::test_case[" in report.nodeid:
                host = report.nodeid.split("[", 1)[1].split("-", 1)[0]
                counts.setdefault(host, {}).setdefault(shown, 0)
                counts[host][shown] += 1
    for report in terminalreporter.stats.get("skipped", []):
        if "test_contract.py::test_case[" in report.nodeid:
            host = report.nodeid.split("[", 1)[1].split("-", 1)[0]
            counts.setdefault(host, {})[str(report.longrepr[-1]).partition(": ")[2].partition(": ")[2]] = ""
    if counts:
        terminalreporter.section("contract")
        for host, row in counts.items():
            shown = ", ".join(f"{number} {label}".strip() for label, number in row.items())
            terminalreporter.write_line(f"{frameworks.FRAMEWORKS[host]:<10} {shown}")
