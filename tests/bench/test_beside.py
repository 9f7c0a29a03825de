"""The kernels of bench/beside are right in polyop, PyTorch and JAX, or refuse; Warp and Taichi are not installed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BESIDE = Path(__file__).parents[2] / "bench" / "beside"
REFUSED = {
    ("polyop", "newton"): "how many there are cannot be told beforehand",
    ("torch", "scan"): "modified by an inplace operation",
    ("torch", "overwritten"): "modified by an inplace operation",
    ("jax", "newton"): "Reverse-mode differentiation does not work for lax.while_loop",
}
PROBLEMS = ("rms_norm", "scan", "max_pool", "n_body", "overwritten", "newton")
OTHERS = {"polyop": ("newton",), "torch": ("scan", "overwritten"), "jax": ("newton",)}


def functions(framework):
    return [*PROBLEMS, *(f"{name}_other" for name in OTHERS[framework])]


@pytest.mark.exhaustive
@pytest.mark.parametrize("framework", OTHERS)
def test_values_and_gradients(framework):
    pytest.importorskip({"polyop": "numpy"}.get(framework, framework), reason="the peer is not installed")
    code = (BESIDE / f"kernels_{framework}.py").read_text()
    for name in functions(framework):
        assert f"\ndef {name}(" in code
        command = [sys.executable, str(BESIDE / "worker.py"), framework, name, "small"]
        done = subprocess.run(command, input="", capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        found = json.loads(done.stdout.splitlines()[-1])
        assert found["forward_error"] < 1e-5, name
        if (framework, name) in REFUSED:
            assert REFUSED[framework, name] in found["refused"]
            assert "gradient_error" not in found
        else:
            assert found["gradient_error"] < 1e-5, (name, found)


@pytest.mark.exhaustive
def test_a_wrong_gradient_is_seen(monkeypatch):
    """The check can fail: half of a gradient is wrong, and so is one that is not a number."""
    monkeypatch.syspath_prepend(str(BESIDE))
    worker = __import__("worker")
    problem = worker.PROBLEMS["max_pool"]
    right = problem.gradients("small")
    assert worker.gradient_error(problem, "small", right) < 1e-12
    assert worker.gradient_error(problem, "small", [g / 2 for g in right]) == pytest.approx(0.5)
    assert worker.gradient_error(problem, "small", [g * float("nan") for g in right]) == float("inf")
    for name in ("worker", "problems"):
        sys.modules.pop(name, None)
