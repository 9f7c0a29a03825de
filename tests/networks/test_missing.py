"""``polyop missing``: what it finds in networks, and that the lines that it prints work."""

import contextlib
import importlib.util
import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import polyop  # noqa: E402
from polyop.cli.main import main  # noqa: E402
from polyop.networks import corresponding, foreign_operator, onnx_call, onnx_translated, traced  # noqa: E402
from polyop.networks.corresponding_expression import TensorArgument  # noqa: E402
from polyop.networks.traced import trace  # noqa: E402

NETWORK = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Conv2d(1, 2, 3)
        self.pool = torch.nn.MaxPool2d(2, ceil_mode={ceil_mode})

    def forward(self, x, grid):
        y = torch.nn.functional.leaky_relu(self.first(x), 0.25)
        return self.pool(torch.nn.functional.grid_sample(y, grid, "nearest", align_corners=True))

def example_inputs():
    return torch.ones(1, 1, 5, 5), torch.zeros(1, 5, 5, 2)

class Sampled(torch.nn.Module):
    def forward(self, x, grid):
        return torch.nn.functional.dropout(x)

def made():
    return Net(), example_inputs()

def broken():
    raise KeyError("weights")
"""
needs_onnx = pytest.mark.skipif(
    None in map(importlib.util.find_spec, ("onnxruntime", "onnxscript")),
    reason="onnxruntime or onnxscript is not installed",
)
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
needs_jax = pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="jax is not installed")


@pytest.fixture
def file(tmp_path):
    path = tmp_path / f"net_{tmp_path.name}.py"
    path.write_text(NETWORK.format(ceil_mode=True))
    return path


def operators(capsys, *words):
    code = main(["missing", *map(str, words), "--json"])
    return code, {row["operator"]: row for row in json.loads(capsys.readouterr().out)["operators"]}


def test_what_is_missing_has_a_place_a_reason_and_a_line(file, capsys):
    assert main(["missing", f"{file}:Net"]) == 1
    text = capsys.readouterr().out
    lines = NETWORK.splitlines()
    at = 1 + next(number for number, line in enumerate(lines) if "grid_sample" in line)
    assert "traced by torch.export: 4 calls of 4 operators\n" in text
    pool = re.search(
        r"aten::max_pool2d  missing, called once\n  because: (.*)\n  write: (.*)\n"
        r"  or, without PyTorch: polyop.operator\(.*\)\n  at (.*)\n",
        text,
    )
    assert "ceil_mode" in pool[1] and pool[2].startswith('polyop.aten("max_pool2d")(x, [2, 2]')
    assert pool[3] == f"{file}:{at} (pool)"
    assert "leaky_relu" not in text and text.endswith("jax, of 4 operators: 2 missing\n")


def test_what_is_there_is_listed_with_all(file, capsys):
    code, rows = operators(capsys, f"{file}:made", "--all")
    assert code == 1 and rows["aten::leaky_relu"]["state"] == "there"
    assert rows["aten::leaky_relu"]["line"] == "jnp.where(x > 0, x, 0.25 * x)"
    assert rows["aten::grid_sampler"]["state"] == "missing"


def test_nothing_is_missing(tmp_path, capsys):
    path = tmp_path / "net_that_has_all.py"
    path.write_text(NETWORK.format(ceil_mode=False))
    assert main(["missing", f"{path}:Net", "--to", "mindspore"]) == 0
    assert capsys.readouterr().out.endswith("mindspore, of 4 operators: all are there\n")


@needs_jax
def test_the_printed_lines_compute_what_the_network_does(file, capsys):
    """Each line is run with the tensors of the call, in the order of the network."""
    import jax
    import jax.numpy as jnp

    _, rows = operators(capsys, f"{file}:made", "--all")
    scope = {}
    exec(file.read_text(), scope)
    network, (x, grid) = scope["made"]()
    modules = {"jax": jax, "jnp": jnp, "math": math, "polyop": polyop}
    first = network.first
    weight, bias = (jnp.asarray(one.detach().numpy()) for one in (first.weight, first.bias))
    y = eval(
        rows["aten::conv2d"]["line"],
        modules,
        {"input": jnp.asarray(x.numpy()), "weight": weight, "bias": bias},
    )
    y = eval(rows["aten::leaky_relu"]["line"], modules, {"x": y})
    y = eval(rows["aten::grid_sampler"]["line"], modules, {"input": y, "grid": jnp.asarray(grid.numpy())})
    y = eval(rows["aten::max_pool2d"]["line"], modules, {"x": y})
    np.testing.assert_allclose(y, network(x, grid).detach().numpy(), rtol=1e-5)


def test_a_saved_program(file, tmp_path, capsys):
    scope = {}
    exec(file.read_text(), scope)
    torch.export.save(torch.export.export(*scope["made"]()), tmp_path / "net.pt2")
    code, rows = operators(capsys, tmp_path / "net.pt2")
    assert code == 1 and set(rows) == {"aten::grid_sampler", "aten::max_pool2d"}


def test_a_network_that_cannot_be_exported_is_run():
    class Branches(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(3, 3)

        def forward(self, x):
            return self.linear(x) if x.sum() > 0 else x

    once = trace(Branches(), (torch.ones(2, 3),), {}, export=False)
    assert once.way == "one run of it" and once.uses
    traced = trace(Branches(), (torch.ones(2, 3),), {})
    assert traced.way.startswith("one run of it, as torch.export raised ")
    calls = {use.name: use for use in traced.uses}
    assert calls["aten::linear"].module == "linear" and calls["aten::linear"].arguments["bias"].shape == (3,)
    assert "aten::is_nonzero" in calls and calls["aten::sum"].place.startswith(__file__)


def test_a_custom_operator_is_named_with_where_it_is_from(tmp_path, capsys):
    path = tmp_path / "net_with_twice.py"
    path.write_text(
        "import torch\n"
        "@torch.library.custom_op('missing_tests::twice', mutates_args=())\n"
        "def twice(x: torch.Tensor) -> torch.Tensor:\n    return x * 2\n"
        "@twice.register_fake\ndef _(x):\n    return torch.empty_like(x)\n"
        "class Net(torch.nn.Module):\n    def forward(self, x):\n        return twice(x).add_(1)\n"
        "example_inputs = (torch.ones(3),)\n"
    )
    code, rows = operators(capsys, path, "--all")
    row = rows["missing_tests::twice"]
    assert code == 1 and row["reason"] == f"an operator registered at {path}:2"
    assert row["line"] == 'import net_with_twice; polyop.aten("missing_tests::twice")'
    assert "in place" in rows["aten::add_.Tensor"]["reason"] and rows["aten::add_.Tensor"]["line"] == "x + 1"
    np.testing.assert_array_equal(polyop.aten("missing_tests::twice")(np.ones(2)), [2, 2])


def test_an_operator_that_the_table_does_not_have_is_unknown(tmp_path, capsys):
    path = tmp_path / "net_of_bessel.py"
    path.write_text(
        "import torch\nclass Net(torch.nn.Module):\n    def forward(self, x):\n"
        "        return torch.special.bessel_j0(x)\nexample_inputs = (torch.ones(3),)\n"
    )
    code, rows = operators(capsys, path)
    assert code == 1 and rows["aten::special_bessel_j0"]["state"] == "unknown"
    assert rows["aten::special_bessel_j0"]["reason"] == corresponding.NO_ROW
    line = rows["aten::special_bessel_j0"]["skeleton"]
    assert main(["missing", str(path)]) == 1 and f"or, without PyTorch: {line}" in capsys.readouterr().out
    own = {"your_function": lambda x: x + 1, "your_shapes": lambda x: x, "polyop": polyop}
    np.testing.assert_array_equal(eval(line, own)(np.ones(2)), [2, 2])


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("onnxscript") is None, reason="onnxscript is not installed")
def test_onnx_is_asked_what_it_translates(tmp_path, capsys):
    path = tmp_path / "net_to_onnx.py"
    path.write_text(
        "import torch\nclass Net(torch.nn.Module):\n    def forward(self, x):\n"
        "        return torch.nn.functional.adaptive_max_pool2d(torch.relu(x), 3)\n"
        "example_inputs = (torch.ones(1, 1, 7, 7),)\n"
    )
    code, rows = operators(capsys, path, "--to", "onnx", "--all")
    assert code == 1 and rows["aten::relu"]["state"] == "there"
    assert rows["aten::adaptive_max_pool2d"]["state"] == "missing"
    assert rows["aten::adaptive_max_pool2d"]["reason"] == "torch.onnx.export has no translation of it"
    scope = {}
    exec(path.read_text(), scope)
    with pytest.raises(torch.onnx.errors.OnnxExporterError), contextlib.redirect_stdout(None):
        torch.onnx.export(scope["Net"]().eval(), scope["example_inputs"], dynamo=True, verbose=False)


@pytest.mark.slow
@needs_onnx
def test_onnx_is_asked_for_each_call_and_its_values_are_compared(tmp_path, capsys):
    path = tmp_path / "net_of_losses.py"
    path.write_text(
        "import torch\nimport torch.nn.functional as F\nclass Net(torch.nn.Module):\n"
        "    def forward(self, x, place, like):\n"
        "        plain = F.cross_entropy(x, place, reduction='sum')\n"
        "        return plain + F.cross_entropy(x, place, label_smoothing=0.1) + F.cross_entropy(x, like)\n"
        "example_inputs = (torch.ones(3, 4), torch.tensor([1, 2, 3]), torch.ones(3, 4))\n"
    )
    code = main(["missing", str(path), "--to", "onnx", "--all", "--json"])
    rows = json.loads(capsys.readouterr().out)["operators"]
    losses = [one for one in rows if one["operator"] == "aten::cross_entropy_loss"]
    assert code == 1 and [one["state"] for one in losses] == ["missing", "missing", "there"]
    smoothed, likely, _ = losses
    assert re.fullmatch(
        r"torch.onnx.export changes the values of this call: by [0-9.e-]+ in onnxruntime", smoothed["reason"]
    )
    assert likely["reason"].startswith("onnxruntime refuses what torch.onnx.export makes of this call: ")
    assert [one["places"] for one in losses] == [[f"{path}:6"], [f"{path}:6"], [f"{path}:5"]]


def asked(operator, *args, **keywords):
    """Return what is said of a call of an ATen operator in ONNX."""
    schema = foreign_operator.overload(operator)._schema
    return onnx_translated.asked(operator, traced.bound(schema, args, keywords, traced.of_run))


@pytest.mark.slow
@needs_onnx
def test_calls_that_onnx_translates_well():
    """With ties, places, narrow floats, randomness, writing, masks and scalars; and one that it cannot return."""
    x, whole = torch.ones(4, 6), torch.arange(24).reshape(4, 6)
    assert asked("aten::topk", whole, 3) == asked("aten::sort", x) == (True, "")
    assert asked("aten::gather", x, 1, whole) == asked("aten::embedding", x, whole[0]) == (True, "")
    assert asked("aten::gelu", x.bfloat16()) == asked("aten::dropout", x, 0.5, True) == (True, "")
    assert asked("aten::add_.Tensor", x, x) == asked("aten::masked_fill.Scalar", x, x > 0, 2.0) == (True, "")
    assert asked("aten::clamp.Tensor", x, x[0, 0], x[0, 1]) == (True, "")
    quantised = TensorArgument((4, 6), "quint8")
    assert not onnx_translated.asked("aten::dequantize.self", {"x": quantised}).is_there
    assert asked("aten::to.dtype", x, torch.float8_e4m3fn).note.startswith("onnxruntime refuses what")


@pytest.mark.slow
@needs_onnx
def test_large_calls_are_not_tried():
    large = "torch.onnx.export translates the operator; this call was not tried, as its tensors are large"
    x, whole = torch.ones(4, 6), torch.arange(24).reshape(4, 6)
    assert asked("aten::embedding", torch.empty(1 << 20, 1 << 10, device="meta"), whole) == (True, large)
    assert asked("aten::zeros", [1 << 13, 1 << 13]) == (True, large)
    assert asked("aten::median", x.expand(1 << 23, 4, 6)) == (False, onnx_call.NO_TRANSLATION)


@pytest.mark.slow
@needs_onnx
@pytest.mark.parametrize(
    ("operator", "args", "wrong"),
    [
        ("aten::sub.Tensor", (torch.ones(4, 6), torch.ones(4, 6)), lambda a, b: [b - a]),
        ("aten::minimum", (torch.ones(()), torch.ones(())), lambda a, b: [torch.maximum(a, b)]),
        ("aten::sort", (torch.arange(9),), lambda a: [a, a]),
        ("aten::unbind.int", (torch.arange(6).reshape(2, 3),), lambda a: [a[1], a[0]]),
    ],
)
def test_another_program_is_not_taken_for_the_call(operator, args, wrong, monkeypatch):
    monkeypatch.setattr(onnx_call, "_exported", lambda call, given: wrong)
    told = asked(operator, *args)
    assert not told.is_there
    assert told.note.startswith("torch.onnx.export changes the values of this call: by")


def test_a_skeleton_of_each_operator_of_the_table_is_a_line_that_runs():
    """In a process of its own, as a name is taken for as long as a process lives."""
    program = (
        "import polyop\n"
        "from polyop.networks import corresponding, foreign_operator\n"
        "your_function = your_shapes = lambda *given: given[0]\n"
        "for name in corresponding.table():\n"
        "    line = foreign_operator.skeleton(name if '::' in name else f'aten::{name}')\n"
        "    if line:\n"
        "        assert type(eval(line)).__name__ == 'BoundOperator', line\n"
        "    else:\n"
        "        print(name)\n"
        "assert not foreign_operator.skeleton('function::package._C.forward')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lists = {"chunk", "split.Tensor", "split_with_sizes", "unbind.int"}
    numbers = {"item", "_local_scalar_dense", "is_nonzero", "higher_order::cond"}
    assert set(done.stdout.split()) <= lists | numbers


def test_a_loop_kernel_of_the_examples_is_named_for_what_it_computes(file, capsys):
    for example in foreign_operator.EXAMPLES.values():
        path, _, name = example.partition(":")
        text = (EXAMPLES / path).read_text()
        assert re.search(rf"^@polyop\.kernel.*\ndef {name}\(", text, re.MULTILINE), example
    assert main(["missing", f"{file}:Sampled"]) == 1
    kernel = "examples/22_random/kernels.py:dropout"
    assert f"a loop kernel to begin with: {kernel}, in polyop's repository" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (":Nat", "has no 'Nat'\n  did you mean 'Net'?"),
        (":broken", "raised KeyError: 'weights'\n  defined at"),
        (":torch", "must be a torch.nn.Module, or a program of torch.export, but got module"),
    ],
)
def test_names_that_are_no_network(file, capsys, name, words):
    assert main(["missing", f"{file}{name}"]) == 1
    assert words in capsys.readouterr().err


def test_a_network_needs_inputs(tmp_path, capsys):
    path = tmp_path / "net_without_inputs.py"
    path.write_text("import torch\nNet = torch.nn.Linear(2, 2)\n")
    assert main(["missing", str(path)]) == 1
    assert "has no inputs to trace the network with\n  write example_inputs = " in capsys.readouterr().err


def test_without_pytorch(file):
    program = "import sys; sys.modules['torch'] = None; from polyop.cli.main import main; sys.exit(main(sys.argv[1:]))"
    words = [sys.executable, "-c", program, "missing", str(file)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env={**os.environ})
    assert done.returncode == 1 and "pip install 'polyop[torch]'" in done.stderr


def test_a_size_that_is_a_symbol_decides_nothing(tmp_path, capsys):
    """``gather`` has a counterpart where two sizes are the same, and an example does not say that."""
    path = tmp_path / "net_of_any_size.py"
    path.write_text(
        "import torch\nfrom torch.export import Dim\n"
        "class Net(torch.nn.Module):\n    def forward(self, x, i):\n        return torch.gather(x, 1, i)\n"
        "def program(dynamic=True):\n"
        "    sizes = {'x': {0: Dim('a', min=4, max=64)}, 'i': {0: Dim('b', min=2, max=64)}} if dynamic else None\n"
        "    inputs = torch.randn(6, 6), torch.zeros(6, 3, dtype=torch.long)\n"
        "    return torch.export.export(Net(), inputs, dynamic_shapes=sizes)\n"
        "def fixed():\n    return program(False)\n"
    )
    assert operators(capsys, f"{path}:fixed", "--all")[1]["aten::gather"]["state"] == "there"
    assert operators(capsys, f"{path}:program")[1]["aten::gather"]["state"] == "missing"


def test_a_network_that_fails_is_said_with_its_line(tmp_path, capsys):
    path = tmp_path / "net_that_fails.py"
    path.write_text("import torch\ndef made():\n    return torch.nn.Linear(4, 2), (torch.ones(3, 5),)\n")
    assert main(["missing", f"{path}:made"]) == 1
    assert "the network: raised RuntimeError: mat1 and mat2" in capsys.readouterr().err
    (tmp_path / "broken.pt2").write_text("no program")
    assert main(["missing", str(tmp_path / "broken.pt2")]) == 1
    assert "broken.pt2 cannot be loaded: " in capsys.readouterr().err


@pytest.mark.parametrize("target", ["jax", "mindspore"])
def test_the_line_of_an_operator_without_tensors_says_whose_array_it_returns(tmp_path, capsys, target):
    pytest.importorskip("jax" if target == "jax" else "mindspore.ops")
    path = tmp_path / f"net_of_a_window_{target}.py"
    path.write_text(
        "import torch\nclass Net(torch.nn.Module):\n    def forward(self, x):\n"
        "        return x * torch.hann_window(x.shape[0], device=x.device)\nexample_inputs = (torch.ones(6),)\n"
    )
    _, rows = operators(capsys, path, "--to", target)
    window = eval(rows["aten::hann_window"]["line"], {"polyop": polyop})
    assert type(window).__module__.startswith(target)
    np.testing.assert_array_equal(np.asarray(window), torch.hann_window(6).numpy())


def test_a_place_is_a_line_of_a_function_that_a_forward_calls(tmp_path, capsys):
    path = tmp_path / "net_with_a_helper.py"
    path.write_text(
        "import torch\ndef helper(x):\n    return torch.special.bessel_j0(x)\n"
        "class Net(torch.nn.Module):\n    def forward(self, x):\n        return helper(x)\n"
        "example_inputs = (torch.ones(3),)\n"
    )
    _, rows = operators(capsys, path)
    assert rows["aten::special_bessel_j0"]["places"] == [f"{path}:3"]


def test_a_network_that_calls_itself_is_run(tmp_path, capsys):
    path = tmp_path / "net_in_itself.py"
    path.write_text(
        "import torch\nclass Net(torch.nn.Module):\n    def forward(self, x, depth=0):\n"
        "        return x if depth == 2 else torch.special.bessel_j0(self(x, depth + 1))\n"
        "example_inputs = (torch.ones(3),)\n"
    )
    _, rows = operators(capsys, path, "--once")
    assert rows["aten::special_bessel_j0"]["count"] == 2


def test_numbers_that_python_has_no_literal_for_are_written_as_calls(tmp_path, capsys):
    path = tmp_path / "net_to_infinity.py"
    path.write_text(
        "import torch\nclass Net(torch.nn.Module):\n    def forward(self, x, y):\n"
        "        return torch.cdist(x, y, p=float('inf'))\n"
        "example_inputs = (torch.eye(3), torch.ones(2, 3))\n"
    )
    _, rows = operators(capsys, path, "--to", "mindspore")
    arrays = {"x1": torch.eye(3), "x2": torch.ones(2, 3)}
    found = eval(rows["aten::cdist"]["line"], {"polyop": polyop, **arrays})
    torch.testing.assert_close(found, torch.cdist(*arrays.values(), p=float("inf")))


def test_the_place_is_in_a_package_whose_name_begins_with_that_of_pytorch():
    folder = Path(torch.__file__).parent
    frames = [(f"{folder}vision/resnet.py", 7), (f"{folder}/nn/module.py", 9)]
    assert traced._place(frames) == f"{folder}vision/resnet.py:7"


def test_an_operator_of_a_package_may_be_called_as_a_check_of_pytorch():
    with torch.library._scoped_library("named_as_checks", "DEF") as library:
        library.define("_assert_finite(Tensor x) -> Tensor")
        library.impl("_assert_finite", torch.clone, "CPU")
        found = trace(torch.ops.named_as_checks._assert_finite, (torch.ones(2),), {}, export=False)
    assert "named_as_checks::_assert_finite" in [use.name for use in found.uses]
