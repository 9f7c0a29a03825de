"""The state space network as an ONNX model, with its operators in a library that needs no Python."""

import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import state_space_kernels as kernels
import state_space_torch
import torch

from polyop.export import export
from polyop.graph.onnx import translation_table

RUN = """
import sys
import numpy, onnxruntime
folder = sys.argv[1]
options = onnxruntime.SessionOptions()
options.register_custom_ops_library(f"{folder}/libstate_space.so")
session = onnxruntime.InferenceSession(f"{folder}/network.onnx", options)
numpy.save(f"{folder}/scores.npy", session.run(None, {"letters": numpy.load(f"{folder}/letters.npy")})[0])
assert "polyop" not in sys.modules and "torch" not in sys.modules
"""


def with_kernels(net):
    """Give the network of PyTorch the two kernels, which take one sentence."""
    for layer in net.layers:
        layer.convolve = lambda x, weight, bias: kernels.causal_convolution(x, weight[:, 0], bias)
        layer.scan = kernels.selective_scan
    return net


def difference(net):
    """Return the largest relative difference of ONNX Runtime's scores of one sentence from PyTorch's."""
    net, letters = net.eval(), state_space_torch.data()[0][0][3]
    with torch.no_grad():
        expected = net(letters).numpy()
        operators = (kernels.causal_convolution, kernels.selective_scan)
        program = torch.onnx.export(
            with_kernels(net),
            (letters,),
            dynamo=True,
            verbose=False,
            input_names=["letters"],
            custom_translation_table=translation_table(*operators),
        )
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        program.save(str(folder / "network.onnx"))
        export(operators, str(folder / "libstate_space.so"), dtypes=["float32"])
        np.save(folder / "letters.npy", letters.numpy())
        subprocess.run([sys.executable, "-c", RUN, name], check=True)
        found = np.load(folder / "scores.npy")
    return float(np.abs(found - expected).max() / np.abs(expected).max())
