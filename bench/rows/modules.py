"""Build and call a C++ module, beside a C++ extension of PyTorch that computes the same product."""

import os
import tempfile
from pathlib import Path

import numpy as np
from kernels import FOLDER, custom_mul, need_torch, torch_mul
from measure import Measured, Missing, Row, Settings, Timed, beside, fresh_process, summary

OPERATOR = "the same as a C++ TORCH_LIBRARY operator with an Autograd kernel"
FUNCTION = "the same as a C++ torch::autograd::Function"
TURNS = 3  # of half a minute each
BOTH_WAYS = "f(x, y).backward(g)"

OURS = """
import time, polyop
start = time.perf_counter()
polyop.CustomOpBuilder("bench_cold", [SOURCE]).load()
print(time.perf_counter() - start)
"""
PEER = """
import time, torch
from torch.utils import cpp_extension
start = time.perf_counter()
cpp_extension.load_inline("bench_cold", [open(SOURCE).read()], build_directory=FOLDER, is_python_module=False)
print(time.perf_counter() - start)
"""


def cold_build(settings: Settings) -> Measured:
    """Build both alternately, each time in a new process with empty folders."""
    need_torch()
    ours, peers = [], []
    for _ in range(min(settings.processes, TURNS)):
        with tempfile.TemporaryDirectory() as folder:
            env = {**os.environ, "XDG_CACHE_HOME": str(Path(folder, "cache"))}
            source = repr(str(FOLDER / "peers" / "custom_mul.cpp"))
            ours.append(fresh_process(OURS.replace("SOURCE", source), env=env))
            source = repr(str(FOLDER / "peers" / "torch_mul.cpp"))
            program = PEER.replace("SOURCE", source).replace("FOLDER", repr(folder))
            peers.append(fresh_process(program, env=env))
    return summary(ours, peers)


def rows() -> list[Row]:
    torch = need_torch()
    peer, ours = torch_mul(), custom_mul()
    x, y = torch.randn(4), torch.randn(4)
    if not torch.equal(ours(x, y), peer(x, y)):
        raise Missing("the module and its peer do not agree")
    a, b = torch.randn(4, requires_grad=True), torch.randn(4, requires_grad=True)
    p, q = x.numpy().copy(), y.numpy().copy()

    def call(f: object, x: object, y: object, statement: str = "f(x, y)") -> Timed:
        return Timed(statement, {"f": f, "x": x, "y": y, "g": torch.ones(4)})

    return [
        Row("C++ module, cold build", "torch.utils.cpp_extension.load_inline", 0.07, cold_build),
        Row(
            "module call, no gradient, 4 elements", OPERATOR, 0.5, beside(call(ours, x, y), call(peer, x, y))
        ),
        Row("module through torch.ops", OPERATOR, 2.0, beside(call(ours.torch, x, y), call(peer, x, y))),
        Row(
            "module forward + backward, 4 elements",
            FUNCTION,
            1.2,
            beside(call(ours, a, b, BOTH_WAYS), call(peer, a, b, BOTH_WAYS)),
        ),
        Row(
            "module forward + backward through torch.ops",
            FUNCTION,
            1.6,
            beside(call(ours.torch, a, b, BOTH_WAYS), call(peer, a, b, BOTH_WAYS)),
        ),
        Row(
            "module call on arrays",
            "np.multiply(x, y)",
            None,
            beside(call(ours, p, q), call(np.multiply, p, q)),
        ),
    ]
