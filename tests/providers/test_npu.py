"""Projects for Ascend where Ascend is not: the first error, the stand-in, and the printed tree of a wheel."""

# ruff: noqa: PT009 - assertions of the stand-in are what is tested

import importlib.util
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="not run: PyTorch is not installed")
ROOT = pathlib.Path(__file__).parents[2]
TREE = ROOT / "tests" / "sources" / "npu_wheel"
PROTOTYPE = "REG_OP(AddCustom).INPUT(x, ge::TensorType::ALL()).INPUT(y, ge::TensorType::ALL()).OUTPUT(z, ge::TensorType::ALL()).OP_END_FACTORY_REG(AddCustom);"


@pytest.fixture(scope="session")
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

    def run(*command, cwd=None, rehearse=True, path=(), check=True, variables=None):
        # with CI set, PyTorch refuses what the document's operator does: its result is the tensor it was given
        ours = ("ASCEND", "POLYOP_ASCEND")
        environment = {n: v for n, v in os.environ.items() if not n.startswith(ours) and n != "CI"}
        environment["PYTHONPATH"] = os.pathsep.join(map(str, (*path, site)))
        environment.update({"POLYOP_ASCEND": "rehearse"} if rehearse else {})
        environment.update(variables or {})
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
for made in (torch.logspace(0, 1, 3, device="npu"), torch.empty_strided((2,), (1,), device="npu"), x.new_zeros(2, device="npu"),
             x.new_tensor([1], device="npu"), torch.asarray([1], device="npu"), torch.ones_like(x, device="npu"),
             torch.rand(3, generator=torch.Generator("npu").manual_seed(1), device="npu")):
    assert made.device.type == "cpu"
assert isinstance(torch.default_generator, torch.Generator) and torch.Generator(device="npu:0").device.type == "cpu"
with torch.device("npu"), torch.npu.device(0), torch.npu.stream(torch.npu.current_stream()):
    assert torch.zeros(2).device.type == "cpu"
torch.set_default_device("npu")
assert torch.zeros(2).device.type == "cpu"
torch.set_default_device(None)
fast = torch.compile(lambda x: x + torch.ones(3, device="npu"), backend="npugraph_ex", fullgraph=True)
assert fast(x).tolist() == [[2.0] * 3] * 2
torch.Tensor.__repr__ = None  # an error for whatever prints a tensor
assert x.to(torch.ones(1, dtype=torch.float64)).dtype == torch.float64
assert x.to("npu", torch.float16).dtype == torch.float16 and x.to("cpu") is x and x.to(torch.float32) is x
leaf = torch.zeros(3, requires_grad=True)
(leaf.npu() * 2).sum().backward()
assert leaf.grad.tolist() == [2.0, 2.0, 2.0]
import numpy as np
from torch_npu.testing.common_utils import create_common_tensor
for device in (None, "npu:0"):
    cpu, npu = create_common_tensor([np.float32, 0, (2, 3)], 1, 2, device)
    assert cpu.shape == (2, 3) and torch.equal(cpu, npu)
    npu.zero_()
    assert cpu.min() >= 1
module = torch.nn.Linear(2, 2)
assert module.npu() is module and module.to("npu") is module
def refused(error, function):
    try: function()
    except error as problem: print(problem)
    else: raise SystemExit("not refused")
refused(AttributeError, lambda: torch.npu.nothing)
refused(AttributeError, lambda: torch_npu.npu_rotary_mul)
refused(ModuleNotFoundError, lambda: __import__("torch_npu.contrib.transfer_to_npu"))
from polyop.graph.torchair import rehearse
refused(RuntimeError, rehearse)
import torchair
refused(RuntimeError, rehearse)
"""


REFUSED = {  # what the program prints: how often
    "torch.npu.nothing: rehearsal (POLYOP_ASCEND=rehearse) does not have it\n  it has Event, ": 1,
    "torch_npu.npu_rotary_mul: rehearsal (POLYOP_ASCEND=rehearse) does not have it": 1,
    "No module named 'torch_npu.contrib': rehearsal (POLYOP_ASCEND=rehearse) does not have it": 1,
    "torchair: is polyop's stand-in here, as POLYOP_ASCEND=rehearse says, and builds no graph": 2,
}


def test_the_npu_is_the_cpu(run):
    done = run("-c", DEVICES)
    assert {text: done.stdout.count(text) for text in REFUSED} == REFUSED
    warned = run("-c", "import torch\nimport torch_npu\n")
    assert (
        "FallbackWarning: POLYOP_ASCEND=rehearse: what is meant for Ascend runs on the CPU" in warned.stderr
    )


@pytest.fixture(scope="session")
def compare():
    """``TestCase`` of the stand-in, without what the package changes in PyTorch."""
    folder = ROOT / "src/polyop/providers/npu/stand_in/torch_npu/testing"
    spec = importlib.util.spec_from_file_location("stand_in_testcase", folder / "testcase.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.TestCase()


HALF = torch.full((4,), 2.0, dtype=torch.float16)
ONES, NAN = torch.ones(20000), torch.tensor([math.nan, math.inf])
ONE_WRONG = ONES.clone().index_fill_(0, torch.tensor([5]), 2.0)
CLOSE = [  # what assertRtolEqual takes as equal
    (torch.tensor([1, 2]), torch.tensor([1, 2])), (np.arange(3), np.arange(3)), (np.ones(2), np.ones(2) + 9e-5),
    ([1, 2.0], (1, 2.0)), (torch.ones(2).size(), (2,)), (1.0, 1.00005), ([ONES, HALF], [ONES, HALF + 0.001]),
    (torch.tensor([True]), torch.tensor([True])), (NAN, NAN.clone()), (ONES, ONE_WRONG), (torch.ones(2), [1.0, 1.0]),
    (torch.ones(2, requires_grad=True), np.ones(2, np.float32)), (torch.tensor([1e6]), torch.tensor([1e6 + 50])),
]  # fmt: skip
APART = [
    (torch.tensor([1, 2]), torch.tensor([1, 3])), (np.arange(3), np.arange(3) + 1), (np.ones(2), np.ones(3)), ([1, 2], [1]),
    (torch.ones(2).size(), (3,)), (1.0, 1.001), (HALF, HALF + 0.01), (torch.tensor([True]), torch.tensor([False])),
    (NAN, torch.tensor([1.0, math.inf])), (ONES, ONE_WRONG * NAN[0] ** ONE_WRONG.eq(2)), (ONES[:100], ONE_WRONG[:100]), (torch.ones(2), torch.ones(2, dtype=torch.float64)),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(CLOSE)))
def test_close_values(compare, case):
    compare.assertRtolEqual(*CLOSE[case])


@pytest.mark.parametrize("case", range(len(APART)))
def test_values_that_are_apart(compare, case):
    with pytest.raises(AssertionError):
        compare.assertRtolEqual(*APART[case])


def test_dtypes_may_differ_where_the_test_says_so(compare):
    compare.assertRtolEqual(torch.ones(2), torch.ones(2, dtype=torch.float64), auto_trans_dtype=True)


DIFFERENT = (torch.ones(2), torch.ones(2) + 5e-5), ("a", "b"), ({1: 2}, {1: 3}), (1, 1.001), ([1], [1, 2])


def test_equal_values(compare):
    compare.assertEqual(torch.ones(2), torch.ones(2) + 5e-6)
    compare.assertEqual([torch.ones(2), "a"], [np.ones(2), "a"])
    compare.assertEqual(1, 1.1, 0.2)
    for x, y in DIFFERENT:
        with pytest.raises(AssertionError, match="where"):
            compare.assertEqual(x, y, "where")


@pytest.mark.slow(more=2)
@pytest.mark.timeout(1200)
def test_the_printed_tree(run, tree):
    """Built by PyTorch's command as printed; its tests pass; without rehearsal the call says what to set."""
    run("setup.py", "build", "bdist_wheel", cwd=tree, variables={"USE_NINJA": "1", "CFLAGS": "-O0 -g0"})
    [wheel] = (tree / "dist").glob("custom_ops-1.0-cp*.whl")
    shutil.unpack_archive(wheel, tree / "site", "zip")
    (tree / "graph.h").write_text(PROTOTYPE)
    generated = tree / "site" / "auto_generated_ge_raw_custom_ops.py"
    run("-m", "polyop", "graph", "reg-op", tree / "graph.h", "-o", generated)
    for name, count in (("test_add_custom.py", 2), ("test_add_custom_graph.py", 1)):
        done = run("-W", "ignore", tree / "test" / name, path=[tree / "site"])
        assert f"Ran {count} test" in done.stderr and "OK" in done.stderr
    for absent, raised in (
        ("polyop", False),
        ("polyop.call.arrival", True),
    ):  # of its imports' errors, one is expected
        program = f"import sys; sys.modules[{absent!r}] = None; import torch, custom_ops_lib"
        done = run("-c", program, path=[tree / "site"], rehearse=False, check=False)
        assert (done.returncode != 0) == raised == ("polyop.call.arrival" in done.stderr), done.stderr
    program = "import torch, custom_ops; custom_ops.add_custom(torch.ones(2), torch.ones(2))"
    done = run("-c", program, path=[tree / "site"], rehearse=False, check=False)
    assert done.stderr.splitlines()[-2:] == [
        "NotImplementedError: myops::my_op: has kernels for Ascend's NPU, and none for the CPU, but got tensors of the CPU",
        "  move them to the NPU: x.npu(); or rehearse on the CPU: set POLYOP_ASCEND=rehearse before the module is imported",
    ]


SETUP_LINES = {
    "import os\n": "note: the printed setup.py leaves out import os",
    "PYTORCH_NPU_INSTALL_PATH = os.path.dirname(os.path.abspath(torch_npu.__file__))\n": "note: the printed "
    "setup.py leaves out PYTORCH_NPU_INSTALL_PATH = os.path.dirname(os.path.abspath(torch_npu.__file__))",
}


@pytest.mark.parametrize("line", SETUP_LINES, ids=["os", "path"])
def test_a_line_that_the_printed_setup_lacks_is_named(run, tree, line):
    setup = tree / "setup.py"
    setup.write_text(setup.read_text().replace(line, ""))
    done = run("setup.py", "build", cwd=tree, check=False)
    assert done.returncode == 1
    assert "NameError" in done.stderr
    assert done.stderr.splitlines()[-1] == SETUP_LINES[line]


def test_a_failed_build_names_what_the_printed_sources_lack(run, tree):
    header = tree / "csrc" / "function.h"
    header.write_text("".join(x for x in header.read_text().splitlines(True) if not x.startswith("using")))
    done = run("setup.py", "build", cwd=tree, check=False, variables={"CFLAGS": "-fsyntax-only"})
    assert done.returncode != 0
    for word in ("empty_like", "AutogradContext", "tensor_list"):
        assert f"note: extension_add.cpp uses {word}: the document leaves out using " in done.stderr
