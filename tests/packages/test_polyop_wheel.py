"""polyop's own wheel: built, audited, complete, and installed where nothing else is."""

import importlib.util
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import zipfile

import pytest
from filelock import FileLock

from polyop.wheel.audit import audit

ROOT = pathlib.Path(__file__).parents[2]
TOOL = ROOT / "tools" / "wheel.py"
VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"
# the core is compiled as for a release; the tests share build/wheels
pytestmark = pytest.mark.slow(more=18)


@pytest.fixture(scope="session")
def tool():
    spec = importlib.util.spec_from_file_location("wheel_tool", TOOL)
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(TOOL.parent)
        spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """The wheel for this Python, and what the one command printed."""
    folder = tmp_path_factory.mktemp("dist")
    return build(platform.machine(), folder)


def build(machine, folder):
    command = [sys.executable, TOOL, "--python", VERSION, "--machine", machine, "-o", folder]
    (ROOT / "build" / "wheels").mkdir(parents=True, exist_ok=True)
    with FileLock(ROOT / "build" / "wheels" / "lock"):  # tests/wheel builds there too
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    [wheel] = folder.iterdir()
    return wheel, done.stdout


def members(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}


def test_the_command_says_what_it_made(made):
    wheel, printed = made
    assert f"Python {VERSION}: /" in printed
    assert "is consistent with the following platform tag" in printed  # auditwheel's words
    assert printed.endswith(f"{wheel}: as the checkout, and the first example runs\n")


def tag_is_right(wheel, machine):
    """The tag is this Python's, the machine's, and of systems with glibc 2.28 or older."""
    tag = f"cp{VERSION.replace('.', '')}"
    found = re.fullmatch(
        rf"polyop-[\d.]+-{tag}-{tag}-manylinux_2_(\d+)_{machine}(\.manylinux_\w+)*\.whl", wheel.name
    )
    assert found and int(found[1]) <= 28, wheel.name
    report = audit(wheel)  # our own audit agrees with auditwheel
    assert not report.breaches
    assert dict(report.facts)["wheel"] == wheel.name


def test_the_tag_is_of_older_systems(made):
    tag_is_right(made[0], platform.machine())


def test_the_wheel_for_aarch64(tmp_path):
    if platform.machine() == "aarch64" or shutil.which("aarch64-linux-gnu-g++") is None:
        pytest.skip("not run: aarch64-linux-gnu-g++ is not installed")
    wheel, printed = build("aarch64", tmp_path / "dist")
    assert printed.endswith(f"{wheel}: as the checkout, not tried\n")
    tag_is_right(wheel, "aarch64")
    assert f"polyop/_core.cpython-{VERSION.replace('.', '')}-aarch64-linux-gnu.so" in members(wheel)


@pytest.mark.parametrize(
    "name",
    [
        "polyop/py.typed",
        "polyop/_core.pyi",
        "polyop/include/polyop/library.h",
        "polyop/include/polyop/pytorch_npu_helper.hpp",
        "polyop/include/polyop/loops/vector.h",
        "polyop/include/polyop/torch/tensors_only/torch/all.h",
        "polyop/wheel/template/ops.cpp.in",
        "polyop/wheel/template/gitignore.in",
        "polyop/mindspore/nn/__init__.py",
    ],
)
def test_what_is_needed_is_inside(made, name):
    assert name in members(made[0])


def test_metadata(made):
    files = members(made[0])
    [metadata] = [text.decode() for name, text in files.items() if name.endswith(".dist-info/METADATA")]
    assert "\nRequires-Python: >=3.10\n" in metadata and "\nRequires-Dist: numpy>=1.24\n" in metadata
    assert "Requires-Dist: torch>=2.10; extra == " in metadata
    [entries] = [text.decode() for name, text in files.items() if name.endswith("entry_points.txt")]
    assert "polyop = polyop.cli.main:main" in re.sub(r"\s*=\s*", " = ", entries)
    assert [name for name in files if name.endswith(".dist-info/licenses/LICENSE")]


def test_a_wheel_that_is_not_the_checkout_is_found_out(made, tool, tmp_path):
    files = members(made[0])
    [core] = [name for name in files if "_core." in name and name.endswith(".so")]
    files.pop("polyop/wheel/template/ops.cpp.in")
    files["polyop/include/polyop/abi.h"] += b"\n"
    files["polyop/left_over.log"] = b""
    files[core] += str(ROOT).encode()
    changed = tmp_path / made[0].name
    with zipfile.ZipFile(changed, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    assert set(tool.differences(changed)) - set(tool.differences(made[0])) == {
        "polyop/wheel/template/ops.cpp.in is missing",
        "polyop/include/polyop/abi.h is not the checkout's",
        "has files that do not belong there: polyop/left_over.log",
        f"{core} has the builder's folder {ROOT} in it",
    }
    with zipfile.ZipFile(changed, "w") as archive:
        archive.writestr("polyop/py.typed", b"")
    assert "must have one compiled core, and has none" in list(tool.differences(changed))


def test_a_python_that_is_not_here(tmp_path):
    command = [sys.executable, TOOL, "--python", "3.99", "-o", tmp_path / "dist"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "Python 3.99: not on this machine\n")


def test_shims_are_looked_behind_and_those_with_nothing_are_passed_over(tool, tmp_path, monkeypatch):
    shim, real = tmp_path / "a" / f"python{VERSION}", tmp_path / "b" / f"python{VERSION}"
    for path, text in ((shim, "echo no such version >&2; exit 127"), (real, f'exec {sys.executable} "$@"')):
        path.parent.mkdir()
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{shim.parent}:{real.parent}")
    assert tool.find(VERSION) == sys.executable
    monkeypatch.setenv("PATH", str(shim.parent))
    monkeypatch.setattr(tool, "PLACES", ())
    assert tool.find(VERSION) is None
