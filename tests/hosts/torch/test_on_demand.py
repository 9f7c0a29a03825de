"""Loop kernels and their parts are in ``torch.ops`` when somebody looks for them, before any use."""

import subprocess
import sys

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

KERNELS = """
import polyop

@polyop.kernel
def times(x, factor: float = 2.0):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * factor
    return y

@polyop.kernel
def wrong(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = frobnicate(x[i])
    return y
"""
NAMES = """
{imports}
print(hasattr(torch.ops.kernels_by_name, "absent"), hasattr(torch.ops.kernels_by_name, "wrong"))
print(torch.ops.kernels_by_name.times(torch.ones(2)).tolist())
print(torch.ops.kernels_by_name.times__batched.default._schema.name)
try:
    torch.ops.kernels_by_name.wrong
except AttributeError as problem:
    print(str(problem).splitlines()[0])
"""
COMPILED = """
import torch
from kernels_by_name import times

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.vmap(times)(x) + times(x[0])

program = torch.export.export(Model(), (torch.ones(3, 4),))
torch.export.save(program, "program.pt2")
torch._inductor.aoti_compile_and_package(program, package_path="package.pt2")
"""
LOADED = """
import torch, torch._inductor
import kernels_by_name
model = {load}
print(model(torch.ones(3, 4)).tolist() == [[4.0] * 4] * 3)
"""


def run(tmp_path, text):
    (tmp_path / "kernels_by_name.py").write_text(KERNELS)
    (tmp_path / "script.py").write_text(text)
    command = [sys.executable, "script.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=280)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
@pytest.mark.parametrize("order", ["torch, kernels_by_name", "kernels_by_name, torch"])
def test_a_kernel_is_found_by_its_name(order, tmp_path):
    assert run(tmp_path, NAMES.format(imports=f"import {order}")) == [
        "False False",
        "[2.0, 2.0]",
        "kernels_by_name::times__batched",
        "loop kernel wrong: frobnicate is no function of loop kernels",
    ]


@pytest.mark.slow
def test_a_process_that_only_imports_the_module_loads_programs(tmp_path):
    run(tmp_path, COMPILED)
    for load in (
        'torch.export.load("program.pt2").module()',
        'torch._inductor.aoti_load_package("package.pt2")',
    ):
        assert run(tmp_path, LOADED.format(load=load)) == ["True"]
