"""Python kernels that a graph runs: an error if they use MindSpore, which would hang."""

import subprocess
import sys

import pytest

PROGRAM = """
import mindspore as ms
import numpy as np
from mindspore import Tensor, ops
import polyop

X = np.ones(3, np.float32)
KEPT = Tensor(X)
inner = polyop.operator("demo::inner(Tensor x) -> Tensor", lambda x: x * 2, infer="x")

FLOAT = ms.dtype_to_nptype

class Left:
    def __del__(self):  # the collector may run MindSpore's own at any time
        ms.get_seed()

def rule(*given):
    return (ops.cos(Tensor(given[0])) * 2,)

plain = lambda x: x * 1
kernels = {{
    "function": lambda x: ops.cos(Tensor(x)).asnumpy(),
    "kept": lambda x: ops.cos(KEPT).asnumpy(),
    "polyop": lambda x: inner(KEPT).asnumpy(),
    "rule": plain,
    "asked": lambda x: x * 2 if isinstance(x, (ms.Tensor, ms.Parameter)) else (x * 3).astype(FLOAT(ms.float32)),
    "left": lambda x: (Left(), x * 3)[1],
}}
op = polyop.operator("demo::op(Tensor x) -> Tensor", kernels["{name}"], infer="x", gradient=rule)

@ms.jit
def call(x):
    return op(x) + 1

if "{name}" in ("asked", "left"):
    print(call(Tensor(X)).asnumpy().tolist())
else:
    try:
        print((ms.grad(call) if "{name}" == "rule" else call)(Tensor(X)).asnumpy())
    except RuntimeError as problem:
        print(problem)
"""


def run(tmp_path, name):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM.format(name=name))
    command = [sys.executable, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.parametrize("name", ["function", "kept", "polyop", "rule"])
def test_mindspore_in_a_function_that_a_graph_runs(tmp_path, name):
    message = "HostError: demo::op: its Python function uses MindSpore while a compiled program runs it"
    assert message in run(tmp_path, name).stdout


@pytest.mark.parametrize("name", ["asked", "left"])
def test_a_function_may_ask_for_types_and_leave_things_behind(tmp_path, name):
    done = run(tmp_path, name)
    assert "[4.0, 4.0, 4.0]" in done.stdout
    assert "Exception ignored" not in done.stderr


def test_state_of_the_thread_is_restored():
    from polyop.hosts.mindspore import callbacks

    recorded = []

    def stopped(arrays):
        recorded.append(sys.getprofile() is not None)
        raise ValueError(arrays)

    with pytest.raises(ValueError, match="1"):
        callbacks._watched("demo::op", stopped, [1])
    callbacks.check()
    assert recorded == [True] and sys.getprofile() is None
