import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

import polyop.mindspore as ms


@pytest.fixture(autouse=True)
def _context():
    """Reset the context after each test to PyNative mode on the CPU."""
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU")
