"""A project of ``polyop new``, built and installed once for all tests of this folder."""

import pathlib
import shutil
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from wheel_tools import build, install, run


@pytest.fixture(scope="session")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("new") / "vecops"
    run("-m", "polyop", "new", "vecops", "--folder", folder)
    return folder


@pytest.fixture(scope="session")
def wheel(project):
    return build(project)


@pytest.fixture(scope="session")
def installed(wheel, tmp_path_factory):
    return install(wheel, tmp_path_factory.mktemp("installed"))


@pytest.fixture
def without_compilers(tmp_path):
    """An environment in which no program is found."""
    empty = tmp_path / "empty"
    empty.mkdir()
    return {"PATH": str(empty), "CC": "", "CXX": "", "POLYOP_CACHE_DIR": str(tmp_path / "cache")}


@pytest.fixture(scope="session")
def loop_project(tmp_path_factory):
    """A copy of the example with loop kernels."""
    example = pathlib.Path(__file__).parents[2] / "examples" / "13_loop_wheel"
    ignored = shutil.ignore_patterns("build", "dist", "*.egg-info", "__pycache__")
    return shutil.copytree(example, tmp_path_factory.mktemp("loops") / "project", ignore=ignored)


@pytest.fixture(scope="session")
def loop_wheel(loop_project):
    return build(loop_project)


@pytest.fixture(scope="session")
def loop_installed(loop_wheel, tmp_path_factory):
    return install(loop_wheel, tmp_path_factory.mktemp("loops_installed"))
