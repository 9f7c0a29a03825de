"""Projects for Ascend where Ascend is not: the first error, the stand-in, and the printed tree of a wheel."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

pytest.importorskip("torch", reason="not run: PyTorch is not installed")
ROOT = pathlib.Path(__file__).parents[2]
TREE = ROOT / "tests" / "sources" / "npu_wheel"
PROTOTYPE = "REG_OP(AddCustom).INPUT(x, ge::TensorType::ALL()).INPUT(y, ge::TensorType::ALL()).OUTPUT(z, ge::TensorType::ALL()).OP_END_FACTORY_REG(AddCustom);"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder that PyTorch finds on the path, with the entry point of polyop's wheel."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "polyop_torch_npu").symlink_to(ROOT / "src" / "polyop_torch_npu")
    information = folder / "polyop_torch_npu-0.dist-info"
    information.mkdir()
    text = (ROOT / "pyproject.toml").read_text()
    [entry] = re.findall(r'(?m)^\[project\.entry-points\."torch\.backends"\].*\npolyop = "(.*)"$', text)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: polyop-torch-npu\nVersion: 0\n")
    (information / "entry_points.txt").write_text(f"[torch.backends]\npolyop = {entry}\n")
    return folder


@pytest.fixture
def run(site):
    """Run Python with the entry point; ``rehearse`` sets the variable."""

    def run(*command, cwd=None, rehearse=True, path=(), check=True):
        # with CI set, PyTorch refuses what the document's operator does: its result is the tensor it was given
        ours = ("ASCEND", "POLYOP_ASCEND")
        environment = {n: v for n, v in os.environ.items() if not n.startswith(ours) and n != "CI"}
        environment["PYTHONPATH"] = os.pathsep.join(map(str, (*path, site)))
        environment.update({"POLYOP_ASCEND": "rehearse"} if rehearse else {})
        done = subprocess.run(
            [sys.executable, *map(str, command)],
            cwd=cwd, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done

    return run


@pytest.fixture
def tree(tmp_path):
    return pathlib.Path(shutil.copytree(TREE, tmp_path / "setup"))


def test_the_first_error_of_the_printed_tree_says_how_to_rehearse(run, tree):
    done = run("setup.py", "build", "bdist_wheel", cwd=tree, rehearse=False, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-2:] == [
        "ModuleNotFoundError: No module named 'torch_npu': it is part of Ascend's PyTorch, which is not installed here",
        "  to rehearse on the CPU with polyop, set POLYOP_ASCEND=rehearse in the environment",
    ]


def test_without_rehearsal_there_is_no_npu(run):
    """Packages ask in these two ways whether there is an NPU, and get the usual answers."""
    program = """
import importlib.util, sys, torch
assert importlib.util.find_spec("torch_npu") is None and importlib.util.find_spec("torchair") is None
try: import torch_npu
except ModuleNotFoundError as problem: assert problem.name == "torch_npu"
else: raise SystemExit("found")
assert not any(name == "polyop" for name in sys.modules) and not hasattr(torch, "npu")
"""
    run("-c", program, rehearse=False)


def test_an_installed_one_is_not_replaced(run, tmp_path):
    (tmp_path / "torch_npu.py").write_text("real = True\n")
    run("-c", "import torch, torch_npu; assert torch_npu.real", path=[tmp_path])


DEVICES = """
import warnings
warnings.simplefilter("ignore")
import torch, torch_npu
x = torch.ones(2, 3, device="npu:0")
assert x.device.type == "cpu" and x.is_npu and torch.npu.is_available() and torch.npu.device_count() == 1
for copy in (x.npu(), x.to("npu"), x.to(torch.device("npu"), torch.float64), x.to(device="npu"), x.npu(0)):
    copy.zero_()
    assert x.sum() == 6 and copy.shape == x.shape
assert x.to("npu", torch.float16).dtype == torch.float16 and x.to("cpu") is x and x.to(torch.float32) is x
leaf = torch.zeros(3, requires_grad=True)
(leaf.npu() * 2).sum().backward()
assert leaf.grad.tolist() == [2.0, 2.0, 2.0]
module = torch.nn.Linear(2, 2)
assert module.npu() is module and module.to("npu") is module
try: torch.npu.nothing
except AttributeError as problem: print(problem)
"""


def test_the_npu_is_the_cpu(run):
    done = run("-c", DEVICES)
    assert "torch.npu.nothing: rehearsal (POLYOP_ASCEND=rehearse) does not have it\n  it has " in done.stdout
    assert "synchronize" in done.stdout
    warned = run("-c", "import torch\nimport torch_npu\n")
    assert (
        "FallbackWarning: POLYOP_ASCEND=rehearse: what is meant for Ascend runs on the CPU" in warned.stderr
    )


@pytest.mark.exhaustive
@pytest.mark.timeout(1200)
def test_the_printed_tree(run, tree):
    """Built by PyTorch's command as printed; its tests pass; without rehearsal the call says what to set."""
    run("setup.py", "build", "bdist_wheel", cwd=tree)
    [wheel] = (tree / "dist").glob("custom_ops-1.0-cp*.whl")
    shutil.unpack_archive(wheel, tree / "site", "zip")
    (tree / "graph.h").write_text(PROTOTYPE)
    generated = tree / "site" / "auto_generated_ge_raw_custom_ops.py"
    run("-m", "polyop", "graph", "reg-op", tree / "graph.h", "-o", generated)
    for name, count in (("test_add_custom.py", 2), ("test_add_custom_graph.py", 1)):
        done = run("-W", "ignore", tree / "test" / name, path=[tree / "site"])
        assert f"Ran {count} test" in done.stderr and "OK" in done.stderr
    program = "import torch, custom_ops; custom_ops.add_custom(torch.ones(2), torch.ones(2))"
    done = run("-c", program, path=[tree / "site"], rehearse=False, check=False)
    assert done.stderr.splitlines()[-2:] == [
        "NotImplementedError: myops::my_op: has kernels for Ascend's NPU, and none for the CPU, but got tensors of the CPU",
        "  move them to the NPU: x.npu(); or rehearse on the CPU: set POLYOP_ASCEND=rehearse before the module is imported",
    ]
