"""The networks of examples/27_moved_networks: outputs, gradients and training as in PyTorch, in what is installed."""

import importlib.util
import pathlib

import pytest

import programs

pytest.importorskip("torch", reason="PyTorch is not installed")
MAIN = pathlib.Path(__file__).parents[2] / "examples" / "27_moved_networks" / "main.py"
INSTALLED = [name for name in ("jax", "mindspore") if importlib.util.find_spec(name)]


@pytest.mark.slow(1)
@pytest.mark.parametrize("network", ["graph", "state_space"])
def test_a_network_computes_and_trains_as_in_pytorch(network):
    ((code, output, problem),) = programs.outputs([programs.start(MAIN, "--network", network)])
    assert code == 0, problem[-3000:]
    lines = [line for line in output.splitlines() if line.startswith(network)]
    compared = [line.partition(":")[0] for line in lines if "gradients" in line]
    expected = [f"{network} in {name}, {how}" for name in INSTALLED for how in ("eager", "compiled")]
    assert compared[: len(expected)] == expected
    has_export = network == "state_space" and importlib.util.find_spec("onnxruntime") is not None
    assert any("without polyop" in line for line in lines) == has_export
