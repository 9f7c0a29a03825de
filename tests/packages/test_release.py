"""The release is tried as it lies in its own index, and polyop comes from no other."""

import importlib
import pathlib
import subprocess
import sys
import zipfile

import pytest

TOOLS = pathlib.Path(__file__).parents[2] / "tools"


@pytest.fixture
def release(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(TOOLS)
    module = importlib.import_module("release")
    monkeypatch.setattr(module, "DIST", tmp_path / "dist")
    monkeypatch.setattr(module, "INDEX", tmp_path / "dist" / "index")
    yield module
    for name in ("release", "wheel", "older_linux"):
        sys.modules.pop(name, None)


def empty_wheel(folder, version):
    folder.mkdir(exist_ok=True)
    name = f"polyop-{version}"
    with zipfile.ZipFile(folder / f"{name}-py3-none-any.whl", "w") as archive:
        archive.writestr(
            f"{name}.dist-info/METADATA",
            f"Metadata-Version: 2.1\nName: polyop\nVersion: {version}\nProvides-Extra: torch\n",
        )
        archive.writestr(f"{name}.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{name}.dist-info/RECORD", "")


def test_polyop_comes_from_the_index_of_the_release_alone(release, tmp_path, monkeypatch):
    empty_wheel(release.DIST, "0.1.0")
    empty_wheel(tmp_path / "elsewhere", "99.0")
    release.index()
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "elsewhere"))
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "env"], check=True)
    python = tmp_path / "env" / "bin" / "python"
    release.wheel.install(python, ["polyop[torch]"], release.INDEX.as_uri())
    shown = subprocess.run(
        [python, "-m", "pip", "show", "polyop"], capture_output=True, text=True, check=True
    )
    assert "Version: 0.1.0" in shown.stdout
