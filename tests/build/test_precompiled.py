"""Precompiled headers of PyTorch: which flags need their own, and what a killed build leaves."""

import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from polyop.build import BuildOptions, compilers
from polyop.build.commands import make_plan
from polyop.build.precompiled import _flags_of_headers
from polyop.build.sources import gather

ATEN = pathlib.Path(__file__).parents[2] / "examples" / "05_aten" / "leaky_relu.cpp"


def key(flags):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    plan = make_plan(gather([ATEN], None, "c++", ()), BuildOptions.of(flags=flags), "k")
    return _flags_of_headers(plan.units[0])


@pytest.mark.parametrize(
    "flags", [["-Wall"], ["-w"], ["-Wno-sign-compare"], ["-I/a"], ["-I", "/a"], ["-DTILE=4"], ["-UTILE"]]
)
def test_flags_that_share_the_headers(flags):
    if any(flag[:2] in ("-D", "-U") for flag in flags) and compilers.find("c++").family != "gcc":
        pytest.skip("the compiler is no gcc, which checks the macros")
    assert key(flags) == key([])


@pytest.mark.parametrize(
    "flags", [["-mavx2"], ["-O1"], ["-fopenmp"], ["-std=c++23"], ["-Wa,-x"], ["-Wp,-DX"]]
)
def test_flags_that_need_headers_of_their_own(flags):
    assert key(flags) != key([])


def started(folder, seen):
    """Start a build, wait until ``seen(cache)``, kill its process group, and return what it printed."""
    log = folder / "log"
    with log.open("w") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "polyop", "build", str(ATEN)],
            env={**os.environ, "POLYOP_CACHE_DIR": str(folder / "cache"), "POLYOP_LOG": "debug"},
            stdout=file, stderr=file, start_new_session=True,
        )  # fmt: skip
        end = time.monotonic() + 240
        while process.poll() is None and not seen(folder / "cache", log) and time.monotonic() < end:
            time.sleep(0.02)
        killed = process.poll() is None
        if killed:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return killed, log.read_text()


def headers(cache):
    return sorted(cache.glob("entries/*/torch.h.?ch"))


@pytest.mark.slow
def test_a_killed_build_keeps_the_headers_that_it_made(tmp_path):
    """Killed while the headers are made, then after that, and then not at all."""
    pytest.importorskip("torch", reason="PyTorch is not installed")
    progress = "polyop.build: precompiling the headers of PyTorch"
    killed, printed = started(tmp_path, lambda _, log: progress in log.read_text())
    assert killed and progress in printed
    assert headers(tmp_path / "cache") == []
    killed, printed = started(tmp_path, lambda cache, _: any(cache.glob("work/*/0/0.d")))
    assert killed and progress in printed
    (made,) = headers(tmp_path / "cache")
    before = made.stat().st_mtime_ns
    killed, printed = started(tmp_path, lambda *_: False)
    assert not killed and "precompiling" not in printed
    assert printed.rstrip().endswith("leaky_relu.so")
    assert headers(tmp_path / "cache") == [made] and made.stat().st_mtime_ns == before
