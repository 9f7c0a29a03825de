"""Operators in processes that PyTorch starts and connects: lost peers, and operators sent to a process."""

import pathlib

import pytest

import programs

pytest.importorskip("torch", reason="PyTorch is not installed")

LOST_PEER = pathlib.Path(__file__).parents[1] / "sources" / "lost_peer.py"
ABORTED = "terminate called without an active exception"
HOW = {"exits": (7, "peer"), "raises": (1, "peer"), "stalls": (-9, "Timed out waiting 5000ms")}


@pytest.mark.slow
@pytest.mark.parametrize("model", ["ddp", "fsdp", "dtensor"])
@pytest.mark.parametrize("how", HOW)
def test_a_lost_peer_is_an_error_of_the_others(how, model, tmp_path):
    ranks = [programs.start(LOST_PEER, rank, 3, tmp_path / "store", how, model) for rank in range(3)]
    count = 2 if how == "stalls" else 3
    *others, lost = programs.outputs(ranks[:count], unending=ranks[count:])
    code, text = HOW[how]
    assert lost[:2] == (code, "lost\n"), lost
    assert ("no such scale" in lost[2]) == (how == "raises"), lost
    for rank in others:
        # after a lost connection PyTorch's threads abort the exit now and then, without polyop too
        assert rank[0] == 3 or (rank[0] == -6 and ABORTED in rank[2]), rank
        assert rank[1].startswith("RuntimeError: ") and text in rank[1], rank
        assert rank[1].endswith("the operators work\n"), rank


SCRIPT = """
import sys
import numpy as np
import torch
import polyop

@polyop.kernel
def scaled(x, by: float = 2.0):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * by
    return y

class Layer(torch.nn.Module):
    def __init__(self, operator):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))
        self.operator = operator

    def forward(self, x):
        return self.operator(x * self.weight)

def work(rank, operator, layer):
    x = torch.arange(3.0)
    print(operator(x).tolist(), layer(x + rank).tolist(), operator is scaled)

if __name__ == "__main__":
    if sys.argv[1] == "defined":
        operator = scaled
    else:
        operator = polyop.operator("main::late(Tensor x) -> Tensor", lambda x: x * 3, dims="n -> n")
    torch.multiprocessing.spawn(work, (operator, Layer(operator)), nprocs=1)
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return path


@pytest.mark.slow
def test_an_operator_and_a_layer_that_has_one_go_to_a_spawned_process(script):
    ((code, output, problem),) = programs.outputs([programs.start(script, "defined")])
    assert code == 0, problem
    assert output == "[0.0, 2.0, 4.0] [0.0, 2.0, 4.0] True\n"


@pytest.mark.slow
def test_an_operator_that_a_spawned_process_has_not_defined(script):
    ((code, output, problem),) = programs.outputs([programs.start(script, "late")])
    assert code == 1 and not output
    assert "HostError: main::late: the pickled operator, of the digest" in problem
    assert "is not defined in this process" in problem
    assert "define it outside of functions and of if __name__ == '__main__'" in problem
    assert "ProcessExitedException: process 0 terminated with exit code 1" in problem
