"""A wheel of a TORCH_LIBRARY source (``polyop new --kind torch``): one PyTorch, every framework."""

import re

import pytest
from test_audit import packed
from wheel_tools import build, contents, install, run

from polyop.build.libtorch import find
from polyop.wheel.audit import audit
from polyop.wheel.requirement import pinned, require

VERSION = ".".join(find("tests").version.split(".")[:2])
PIN = f"torch=={VERSION}.*"


@pytest.fixture(scope="session")
def torch_wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("torch") / "vecops"
    printed = run("-m", "polyop", "new", "vecops", "--kind", "torch", "--folder", folder).stdout
    readme = (folder / "README.md").read_text()
    step = "pip install --no-build-isolation '.[test]'"  # PyTorch is that of the environment
    assert step in printed and step in readme
    return build(folder)


@pytest.fixture(scope="session")
def torch_installed(torch_wheel, tmp_path_factory):
    return install(torch_wheel, tmp_path_factory.mktemp("torch_installed"))


def test_it_keeps_what_its_name_promises(torch_wheel):
    assert torch_wheel.name.startswith("vecops-0.1.0-py3-none-manylinux_")
    shown = run("-m", "polyop", "audit", torch_wheel).stdout
    assert re.search(rf"requires: +polyop, torch, .*{re.escape(PIN)}\n", shown)
    assert re.search(rf"PyTorch: +{VERSION}\n", shown)
    assert (
        "vecops::add_custom(Tensor x, Tensor y, *, float alpha=1.0) -> Tensor  [CPU, Meta, gradient]" in shown
    )


@pytest.mark.slow
def test_its_own_tests_pass(torch_wheel, torch_installed):
    """Values, errors and gradients in NumPy, PyTorch and JAX."""
    tests = torch_wheel.parents[1] / "tests"
    run("-m", "pytest", "-q", "-p", "no:cacheprovider", tests, PYTHONPATH=str(torch_installed))


@pytest.mark.slow
def test_operators_are_pytorchs_and_polyops(torch_installed):
    program = """
import numpy as np, polyop, vecops, torch
assert polyop.aten("vecops::add_custom") is vecops.add_custom is vecops.library.add_custom
assert torch.ops.vecops.add_custom(torch.ones(2), torch.ones(2), alpha=3.0).tolist() == [4.0, 4.0]
"""
    run("-c", program, PYTHONPATH=str(torch_installed))


@pytest.mark.slow
def test_another_pytorch_is_refused_before_the_library_is_loaded(torch_installed):
    program = "import torch; torch.__version__ = '1.0.0+cpu'; import vecops"
    done = run("-c", program, check=False, PYTHONPATH=str(torch_installed))
    rule = f"ImportError: vecops._ops: was compiled for PyTorch {VERSION}, but this is PyTorch 1.0.0+cpu"
    assert rule in done.stderr and f"pip install '{PIN}'" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("requires", "message"),
    [
        ("torch", "needs PyTorch .* a wheel tagged py3-none must not, nor does a requirement"),
        ("torch==1.0.*", rf"was compiled for PyTorch {VERSION}; the wheel requires PyTorch 1\.0"),
    ],
)
def test_a_wheel_that_allows_another_pytorch_is_broken(torch_wheel, tmp_path, requires, message):
    files = contents(torch_wheel)
    name = "vecops-0.1.0.dist-info/METADATA"
    files[name] = files[name].replace(PIN.encode(), requires.encode())
    report = audit(packed(tmp_path, torch_wheel.stem.split("-", 2)[2], files))
    assert any(re.search(message, breach) for breach in report.breaches), report.breaches


@pytest.mark.parametrize(
    ("requirement", "version"),
    [
        ("torch==2.13.*", "2.13"),
        ("torch (==2.13.1)", "2.13"),
        ("torch ~=2.13.0 ; python_version > '3'", "2.13"),
        ("torch~=2.13", ""),
        ("torch>=2.13", ""),
        ("torchvision==0.9.*", ""),
    ],
)
def test_which_requirements_fix_a_version(tmp_path, requirement, version):
    assert pinned(["polyop", requirement]) == version
    metadata = tmp_path / "METADATA"
    metadata.write_text(f"Name: a\nRequires-Dist: {requirement}\n\nwords\n")
    require(metadata, "2.13")
    added = "" if version else "Requires-Dist: torch==2.13.*\n"
    assert metadata.read_text() == f"Name: a\nRequires-Dist: {requirement}\n{added}\nwords\n"
