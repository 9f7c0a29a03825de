"""Derived kernels for devices: CUDA in the emulation of blocks and threads and compiled by nvcc, OpenCL on a device in
software.

No GPU is used: what is emitted as CUDA is compiled, not run on hardware.
"""

import shutil
import subprocess
from typing import NamedTuple

import numpy as np
import pytest

from derive_samples import kernels
from loop_samples import on_opencl
from polyop.loops.derive.forms import adjoint, batched, tangent
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.grammar import Kernel
from polyop.loops.ir.interpret import interpret
from polyop.loops.ir.printing import shown

CASES = kernels.CASES
NAMES = ("softmax", "layernorm", "stencil", "gather")
FORMS = ("backward", "tangent", "batched", "backward batched", "backward of backward")
ROWS = [(name, form) for name in NAMES for form in FORMS]
SAMPLES = 3


class Made(NamedTuple):
    """A derived kernel with what it takes."""

    kernel: Kernel
    arrays: list


def random(seed, *likes):
    generator = np.random.default_rng(seed)
    return [generator.normal(size=a.shape).astype("float32") for a in likes]


def backward_of(kernel, arrays):
    """Return the gradient of a typed kernel, and arrays for all its parameters."""
    outputs = interpret(kernel, arrays)
    found = adjoint(kernel, (True,) * len(outputs)).kernel
    return Made(found, [*arrays, *outputs, *random(1, *outputs)])


def batched_of(made):
    """Return a kernel over samples, each of other real numbers and of the same indices."""
    tensors = [n for n in made.kernel.parameters if n in made.kernel.buffers]
    names = zip(tensors, made.arrays, strict=True)
    real = [a.dtype == np.float32 and made.kernel.buffers[n].dtype == "float32" for n, a in names]
    rows = zip(made.arrays, real, strict=True)
    arrays = [np.stack([a * (1 + k) for k in range(SAMPLES)]) if f else a for a, f in rows]
    return Made(batched(made.kernel, [0 if f else None for f in real]), arrays)


def present(made):
    """Return the arrays of the parameters that a kernel reads."""
    tensors = [n for n in made.kernel.parameters if n in made.kernel.buffers]
    return [a for n, a in zip(tensors, made.arrays, strict=True) if not made.kernel.buffers[n].absent]


def make(name, form):
    """Return a derived kernel and its arrays."""
    function, reals, whole = CASES[name]
    arrays = [*(a.astype("float32") for a in reals), *whole]
    kernel = parse(function, [(a.dtype.name, a.ndim) for a in arrays], {})
    if form == "tangent":
        moving = [a.dtype == np.float32 for a in arrays]
        return Made(tangent(kernel, moving), [*arrays, *random(2, *arrays)])
    if form == "batched":
        return batched_of(Made(kernel, arrays))
    once = backward_of(kernel, arrays)
    if form == "backward":
        return once
    if form == "backward batched":
        return batched_of(once)
    given = [
        np.zeros((), bool) if once.kernel.buffers[n].absent else a
        for n, a in zip(
            [n for n in once.kernel.parameters if n in once.kernel.buffers], once.arrays, strict=True
        )
    ]
    return backward_of(once.kernel, given)


@pytest.fixture(scope="session")
def made():
    """Every kernel of every form."""
    return [make(*row) for row in ROWS]


@pytest.fixture(scope="session")
def functions(made, emulate):
    """The functions that the kernels' text is: what the tests call them by."""
    return [emulate.function_of(shown(one.kernel), one.kernel.name) for one in made]


@pytest.fixture(scope="session")
def again(made, functions):
    """The kernels, parsed from their text: without the parameters that they leave out."""
    signatures = [[(a.dtype.name, a.ndim) for a in present(one)] for one in made]
    return [parse(f, s, {}) for f, s in zip(functions, signatures, strict=True)]


@pytest.fixture(scope="session")
def library(again, emulate):
    """All of them, for the emulation."""
    return emulate.build(emulate.text(again))


EACH_ROW = pytest.mark.parametrize(
    "number", range(len(ROWS)), ids=["-".join(row).replace(" ", "-") for row in ROWS]
)


@pytest.mark.slow
@EACH_ROW
def test_emulated_is_interpreted(number, made, functions, again, library, emulate, batch):
    one = made[number]
    arrays = present(one)
    wanted = interpret(again[number], arrays)
    run = batch.bound(functions[number], [], {}, library, number)
    bits = set()
    for order in (1, 2, 3):
        with emulate.order(order):
            found = run(*(a.copy() for a in arrays))
        for expected, seen in zip(wanted, found, strict=True):
            np.testing.assert_allclose(seen, expected, rtol=1e-4, atol=1e-4)
        bits.add(b"".join(a.tobytes() for a in found))
    assert len(bits) == 1, "the order of threads changes the result"
    assert emulate.count(library, "live") == 0


@pytest.mark.slow(2, more=4)
@EACH_ROW
def test_on_a_device_of_opencl_is_interpreted(number, made, functions, again, record_property):
    path = on_opencl.build(on_opencl.text([again[number]]))
    run = on_opencl.bound(functions[number], [], {}, path, 0, on_opencl.queue())
    arrays = present(made[number])
    for expected, seen in zip(interpret(again[number], arrays), run(*arrays), strict=True):
        np.testing.assert_allclose(seen, expected, rtol=1e-4, atol=1e-4)
    record_property("target", "opencl: ran on a device in software")


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not on PATH")
@EACH_ROW
def test_on_a_gpu(number, made, functions, again, emulate, batch, tmp_path, record_property):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch has no CUDA device: compiled and emulated, not run")
    source, target = tmp_path / "one.cu", tmp_path / "one.so"
    source.write_text(emulate.text([again[number]]))
    flags = ["-std=c++17", "-arch=native", "-shared", "-Xcompiler=-fPIC", f"-I{emulate.INCLUDE}"]
    subprocess.run(["nvcc", *flags, source, "-o", target], check=True)
    run = batch.bound(functions[number], [], {}, target, 0, "cuda")
    arrays = present(made[number])
    found = run(*(torch.from_numpy(a.copy()).cuda() for a in arrays))
    for expected, seen in zip(interpret(again[number], arrays), found, strict=True):
        np.testing.assert_allclose(seen.cpu().numpy(), expected, rtol=1e-4, atol=1e-4)
    record_property("target", "cuda: ran")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not on PATH")
@pytest.mark.parametrize("architecture", [80, 90])
def test_nvcc_compiles_them(architecture, made, emulate, tmp_path):
    source, target = tmp_path / "all.cu", tmp_path / "all.o"
    source.write_text(emulate.text([one.kernel for one in made]))
    flags = ["-std=c++17", "-O1", f"-arch=sm_{architecture}", "-Werror=all-warnings", f"-I{emulate.INCLUDE}"]
    done = subprocess.run(
        ["nvcc", *flags, "-c", source, "-o", target], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[:4000]
    for number in range(len(made)):
        assert f"loops_{number}".encode() in target.read_bytes()
