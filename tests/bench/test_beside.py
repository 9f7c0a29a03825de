"""The kernels of bench/beside are right in polyop, PyTorch and JAX, or refuse; Warp and Taichi are not installed."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

BESIDE = Path(__file__).parents[2] / "bench" / "beside"
REFUSED = {
    ("torch", "scan"): "modified by an inplace operation",
    ("torch", "overwritten"): "modified by an inplace operation",
    ("jax", "newton"): "Reverse-mode differentiation does not work for lax.while_loop",
}
PROBLEMS = ("rms_norm", "scan", "max_pool", "n_body", "overwritten", "newton")
OTHERS = {"polyop": ("newton",), "torch": ("scan", "overwritten"), "jax": ("newton",)}


@pytest.fixture
def page(monkeypatch):
    """The files of bench/beside import each other by their own names."""
    monkeypatch.syspath_prepend(str(BESIDE))
    for name in ("page", "facts", "problems"):  # another test may have one of that name; it is put back
        monkeypatch.setitem(sys.modules, name, None)
        del sys.modules[name]
    return importlib.import_module("page")


@pytest.fixture
def run():
    return json.loads((BESIDE.parent / "results" / "beside.json").read_text())


def test_the_page_is_that_of_the_results(page, run):
    assert page.PAGE.read_text() == page.text(run), "run python bench/beside/page.py"


def test_what_polyop_is_behind_in_comes_first(page, run):
    """Each time in which a peer is faster and each gradient that polyop refuses is in the first section."""
    first = page.text(run).split("\n## ")[1]
    assert first.startswith("Where polyop is behind")
    slower = [
        t for t in run["times"] if t["ratio"] and t["framework"] != "polyop" and t["ratio"]["median"] > 1
    ]
    for t in slower:
        what = "forward" if t["what"] == "forward" else "forward and backward"
        ratio, peer = t["ratio"]["median"], page.NAMES[t["framework"]]
        assert f"`{t['problem']}`, {what}: {ratio:.2f} times the time of {peer}" in first
    assert first.count(" times the time of ") == len(slower)
    for row in run["rows"]:
        if row["framework"] == "polyop" and not row["other"] and row["verdict"] != "right":
            assert f"* `{row['problem']}`: the gradient is {row['verdict']} as first written" in first


def test_each_gradient_that_is_not_right_has_its_documentation_and_another_way(page, run):
    text = page.text(run)
    for row in run["rows"]:
        if row["verdict"] in ("wrong", "refused", "crashed") and not row["other"]:
            assert f"\n| {page.NAMES[row['framework']]}, `{row['problem']}` | " in text
            assert (row["framework"], row["problem"]) in page.facts.DOCUMENTED
            ways = page.rows_of(run, row["problem"], row["framework"])
            assert [way["verdict"] for way in ways[1:]] == ["right"]


def functions(framework):
    return [*PROBLEMS, *(f"{name}_other" for name in OTHERS[framework])]


@pytest.mark.slow
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


@pytest.mark.slow
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
