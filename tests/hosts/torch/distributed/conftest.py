"""One process that simulates the devices of a mesh: real values, no communication."""

import pytest
import torch.distributed
from torch.distributed._local_tensor import LocalTensorMode


@pytest.fixture(scope="module")
def process_group():
    """A process group without other processes, of four devices."""
    torch.distributed.init_process_group("fake", rank=0, world_size=4)
    yield
    torch.distributed.destroy_process_group()


@pytest.fixture
def devices(process_group):
    """Four simulated devices: a tensor has a value on each."""
    with LocalTensorMode(4) as mode:
        yield mode
