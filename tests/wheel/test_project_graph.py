"""Graph mode of a project of ``polyop new``: its own tests, with torchair and without."""

import importlib.util
import os
import pathlib

import pytest
from wheel_tools import run


@pytest.fixture(scope="session")
def npu():
    """Return the folder that torch-npu is installed in."""
    named = os.environ.get("POLYOP_TORCH_NPU", "")
    spec = importlib.util.find_spec("torch_npu")
    if not named and (spec is None or spec.origin is None):
        pytest.skip("not run: torch-npu is not installed, and POLYOP_TORCH_NPU names no folder with it")
    return named or str(pathlib.Path(spec.origin).parents[1])


def own_tests(project, *folders):
    command = ("-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "tests/test_graph.py")
    return run(
        *command,
        cwd=project,
        PYTHONPATH=os.pathsep.join(map(str, folders)),
        TORCH_DEVICE_BACKEND_AUTOLOAD="0",
    )


@pytest.mark.slow
def test_a_model_with_its_operator_becomes_a_ge_graph(project, installed, npu):
    pytest.importorskip("torch", reason="not run: PyTorch is not installed")
    printed = own_tests(project, installed, npu).stdout
    assert "4 passed" in printed and "skipped" not in printed


@pytest.mark.slow
def test_without_torchair_it_says_why(project, installed):
    if importlib.util.find_spec("torch_npu"):
        pytest.skip("not run: torch-npu is installed here")
    pytest.importorskip("torch", reason="not run: PyTorch is not installed")
    printed = own_tests(project, installed).stdout
    assert "no graph is built: torchair: is part of torch-npu, which is not installed" in printed
    assert "3 passed, 1 skipped" in printed


@pytest.mark.slow
def test_converters_where_there_is_no_torchair(installed):
    if importlib.util.find_spec("torch_npu"):
        pytest.skip("not run: torch-npu is installed here")
    done = run("-c", "import vecops.graph", PYTHONPATH=str(installed), check=False)
    assert done.returncode == 1
    assert "HostError: torchair: could not be imported: " in done.stderr
    assert "polyop.graph.torchair.rehearse() before" in done.stderr
