"""The table of programs, for the tests that go through it."""

import pytest

from loop_samples import batch as batch_module
from loop_samples import emulate as emulate_module
from loop_samples import generate as generate_module
from loop_samples import programs as programs_module

collect_ignore = ["fuzz.py", "fuzz_language.py"]  # programs


def pytest_generate_tests(metafunc):
    """Give ``program`` every row of the table."""
    if "program" in metafunc.fixturenames:
        rows = programs_module.PROGRAMS
        ids = [f"{row.name}-{k}" for k, row in enumerate(rows)]
        metafunc.parametrize("program", rows, ids=ids)


@pytest.fixture(scope="session")
def batch():
    """The module that builds many kernels as one library."""
    return batch_module


@pytest.fixture(scope="session")
def generate():
    """The module that makes random programs."""
    return generate_module


@pytest.fixture(scope="session")
def programs():
    """The table's module."""
    return programs_module


@pytest.fixture(scope="session")
def emulate():
    """The module that runs CUDA texts without a GPU."""
    return emulate_module
