"""The table of programs, for the tests that go through it."""

import importlib.util
import sys
from pathlib import Path

import pytest

collect_ignore = ["fuzz.py"]  # a program


def _load(name):
    """Import a file of this folder, which is no package."""
    known = f"loops_{name}"
    if known not in sys.modules:
        spec = importlib.util.spec_from_file_location(known, Path(__file__).with_name(f"{name}.py"))
        sys.modules[known] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[known])
    return sys.modules[known]


for part in ("dense", "elements", "private", "expressions"):  # which the table and the generator import
    _load(part)


def pytest_generate_tests(metafunc):
    """Give ``program`` every row of the table."""
    if "program" in metafunc.fixturenames:
        rows = _load("programs").PROGRAMS
        ids = [f"{row.name}-{k}" for k, row in enumerate(rows)]
        metafunc.parametrize("program", rows, ids=ids)


@pytest.fixture(scope="session")
def batch():
    """The module that builds many kernels as one library."""
    return _load("batch")


@pytest.fixture(scope="session")
def generate():
    """The module that makes random programs."""
    return _load("generate")


@pytest.fixture(scope="session")
def programs():
    """The table's module."""
    return _load("programs")


@pytest.fixture(scope="session")
def emulate():
    """The module that runs CUDA texts without a GPU."""
    return _load("emulate")
