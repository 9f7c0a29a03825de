"""The table of loop kernels on a GPU, where there is one."""

import functools
import subprocess

import numpy as np
import pytest

from polyop.loops.frontend.parse import parse
from polyop.loops.ir.interpret import interpret
from polyop.loops.ir.types import BYTE_FLOATS

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="PyTorch has no CUDA device: compiled and emulated, not run"
)
UNKNOWN = {"bfloat16", "uint16", "uint32", "uint64", *BYTE_FLOATS}


@functools.cache
def typed(program):
    return parse(
        program.function, [(dtype, len(axes)) for dtype, axes, _ in program.rows], program.attributes
    )


@pytest.fixture(scope="session")
def table(emulate, programs, tmp_path_factory):
    """The library of all programs, made by nvcc for the GPU that is here."""
    folder = tmp_path_factory.mktemp("cuda")
    (folder / "all.cu").write_text(emulate.text(map(typed, programs.PROGRAMS)))
    command = ["nvcc", "-std=c++17", "-arch=native", "-shared", "-Xcompiler=-fPIC", f"-I{emulate.INCLUDE}"]
    subprocess.run([*command, folder / "all.cu", "-o", folder / "all.so"], check=True)
    return folder / "all.so"


def test_on_a_gpu(program, table, batch, programs, record_property):
    number = programs.PROGRAMS.index(program)
    run = batch.bound(program.function, program.rows, program.attributes, table, number, "cuda")
    names = {buffer.dtype for buffer in typed(program).buffers.values()}
    if names & UNKNOWN:
        pytest.skip(f"torch.from_numpy does not take {', '.join(sorted(names & UNKNOWN))}")
    for sizes in program.sizes():
        arrays = program.arrays(sizes)
        expected = interpret(typed(program), arrays, program.attributes)
        results = run(*(torch.from_numpy(a.copy()).cuda() for a in arrays))
        for one, other in zip(expected, results, strict=True):
            tolerance = program.rough or 0
            np.testing.assert_allclose(other.cpu().numpy(), one, tolerance, tolerance, err_msg=str(sizes))
    record_property("target", "cuda: ran")
