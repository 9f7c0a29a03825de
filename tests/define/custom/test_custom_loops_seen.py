"""What a user sees of a compiled loop kernel: explain, check, the C, and the kernel as a value."""

import pathlib
import subprocess
import sys

import numpy as np
import pytest

import polyop
from polyop.kernels.loop.kernel import LoopKernel
from polyop.testing import check

# ruff: noqa: F821 - the words of the language

EXAMPLE = pathlib.Path(__file__).parents[3] / "examples" / "09_loop_kernel" / "main.py"
X = np.arange(3, dtype=np.float32)


def doubled(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * 2
    return y


def polyop_says(*arguments):
    command = [sys.executable, "-m", "polyop", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_explain_names_lines_and_what_became_of_their_loops():
    pytest.importorskip("torch", reason="PyTorch is not installed, and the example calls it")
    text = polyop_says("explain", str(EXAMPLE), "custom::softmax", "--input", "float32[8,128]")
    assert "for i in range(x.shape[0]):\n            loop i: parallel: on all threads" in text
    assert "for j in range(x.shape[1]):\n            loop j_2: vector lanes" in text
    assert "outputs     float32[8, 128]" in text


@pytest.mark.slow
def test_check_passes_on_the_example():
    pytest.importorskip("torch", reason="PyTorch is not installed, and the example calls it")
    text = polyop_says("check", str(EXAMPLE))
    assert "custom::softmax," in text
    assert "main::softmax_gradient," in text
    assert " 0 failed" in text


def test_the_c_carries_the_lines_of_the_function():
    op = polyop.Custom(doubled, func_type="hybrid")
    text = op.source(X)
    assert "y[i] = x[i] * 2 */" in text
    assert "the loop kernel doubled of test_custom_loops_seen.py" in text
    assert "f32" in text and "f64" not in text
    assert "f64" in op.source(X.astype(np.float64))
    other = polyop.Custom(lambda x: x, lambda x: x, lambda x: x, "pyfunc")
    with pytest.raises(polyop.PolyopError, match="has no source that polyop wrote"):
        other.source()


@pytest.mark.slow
def test_a_loop_kernel_as_the_kernel_of_an_operator():
    op = polyop.operator(
        "loops_seen::doubled(Tensor x) -> Tensor",
        LoopKernel(doubled),
        gradient=lambda x, out, dout: (dout * 2,),
        reference=polyop.kernel(doubled),
    )
    np.testing.assert_array_equal(op(X), X * 2)
    np.testing.assert_array_equal(op.vjp(X)[1](X)[0], X * 2)
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    assert op.torch(torch.tensor(X)).tolist() == [0, 2, 4]
    assert check(op, X).ok
