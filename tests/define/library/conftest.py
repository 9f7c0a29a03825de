"""The fixture that the tests of libraries share."""

import pytest


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason="PyTorch is not installed")
