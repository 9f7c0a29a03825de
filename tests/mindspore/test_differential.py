"""Each name that polyop.mindspore offers has calls, and MindSpore's answers to these calls are the same."""

import importlib.util
import inspect
import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import polyop.mindspore as ms
from mindspore_calls import calls, compare, rows
from polyop.mindspore import nn, ops
from polyop.mindspore.offered import OF_TENSORS

ROOT = pathlib.Path(__file__).parents[2]
SIDE = ROOT / "tests" / "support" / "mindspore_calls" / "side.py"
ELSEWHERE = {  # names whose behaviour other tests compare: polyop's own, names of modules, and settings
    "ops": {"Custom", "CustomOpBuilder", "CustomRegOp", "DataType", "custom_info_register", "kernel"},
    "ms": {
        *(
            "GRAPH_MODE",
            "PYNATIVE_MODE",
            "_Function",
            "common",
            "context",
            "dtype",
            "mstype",
            "nn",
            "ops",
        ),
        *(
            "runtime",
            "get_context",
            "set_context",
            "set_device",
            "jit",
            "jit_class",
            "ms_function",
            "mutable",
        ),
        *("dtype_to_nptype", "pytype_to_dtype", "save_checkpoint", "load_checkpoint", "load_param_into_net"),
        *(n for n in ms.__all__ if isinstance(getattr(ms, n), ms.dtype.Type)),
    },
    "nn": {"Optimizer"},
}
WITHDRAWN = [  # a name of MindSpore's that had PyTorch's values, and the nearest that is offered
    (ops, "norm", None),
    (ops, "unique", "unsqueeze"),
    (ops, "cummax", "cumsum"),
    (ops, "diag", None),
    (ops, "trace", None),
    (ops, "conv2d", None),
    (ms, "mint", None),
    (ms.Tensor([1.0]), "median", "mean"),
    (ms.Tensor([1.0]), "unique", "unsqueeze"),
    (ms.Tensor([1.0]), "svd", None),
    (ms.Tensor([1.0]), "H", None),
    (ms.Tensor([1.0]), "real", None),
    (ms.Tensor([1.0]), "is_sparse_csr", None),
]


def test_each_name_has_a_row():
    covered = rows.covered()
    offered = {f"{module}.{name}" for module, names in _offered().items() for name in names}
    assert not sorted(offered - covered)
    assert not sorted(name for name in covered - offered - {"syntax", "initializer", "Tensor", "ms.dtype"})


def _offered():
    return {
        "ops": set(ops.__all__) - ELSEWHERE["ops"],
        "ms": set(ms.__all__) - ELSEWHERE["ms"],
        "nn": set(nn.__all__) - ELSEWHERE["nn"],
        "Tensor": {n for n in OF_TENSORS if not isinstance(inspect.getattr_static(ms.Tensor, n), property)}
        - _used_in_programs(),
    }


def _used_in_programs():
    texts = " ".join(call.text for row in rows.ROWS for call in calls.calls_of(row))
    return {name for name in OF_TENSORS if f".{name}" in texts and f"Tensor.{name}" not in rows.covered()}


@pytest.mark.parametrize(
    ("owner", "name", "near"), WITHDRAWN, ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_withdrawn_name(owner, name, near):
    with pytest.raises(AttributeError) as caught:
        getattr(owner, name)
    words = f"has no attribute '{name}': this layer has what custom-operator programs use, and MindSpore itself the rest"
    assert words in str(caught.value)
    assert near is None or f"'{near}'" in str(caught.value)


def test_a_difference_is_found():
    tensor = ["tensor", "Float32", [2], [1.0, 2.0]]
    assert compare.difference(tensor, ["tensor", "Float32", [2], [1.0, 2.000001]]) == ""
    for other in (
        ["tensor", "Float32", [2], [1.0, 2.1]],
        ["tensor", "Float16", [2], [1.0, 2.0]],
        ["tensor", "Float32", [1, 2], [1.0, 2.0]],
        ["tuple", tensor],
        ["error", "TypeError"],
    ):
        assert compare.difference(tensor, other)
        assert compare.difference(["tuple", tensor, tensor], ["tuple", tensor, other])
        both, _, found = compare.compared({"f(x)": [tensor, tensor]}, {"f(x)": [tensor, other]})
        assert both == 1
        assert bool(found) == (other[0] != "error")


real = pytest.mark.skipif(importlib.util.find_spec("mindspore") is None, reason="MindSpore is not installed")


@real
@pytest.mark.slow(more=4)
@pytest.mark.timeout(1200)
def test_every_call_answers_as_mindspore(tmp_path, capsys):
    files = {package: tmp_path / f"{package}.json" for package in ("polyop.mindspore", "mindspore")}
    sides = [
        subprocess.Popen([sys.executable, SIDE, package, file], cwd=tmp_path)  # MindSpore writes files there
        for package, file in files.items()
    ]
    assert [side.wait() for side in sides] == [0, 0]
    ours, theirs = (json.loads(file.read_text()) for file in files.values())
    assert ours.keys() == theirs.keys()
    both, only_ours, differences = compare.compared(ours, theirs)
    with capsys.disabled():
        print(
            f"\n{len(rows.covered())} names, {len(ours)} calls: both answer {both}, MindSpore refuses {len(ours) - both}"
            f" ({len(only_ours)} of them are answered here), {len(differences)} differ"
        )
    assert both > 3000
    assert not differences, "\n".join(f"{call}: {text}" for call, text in differences.items())
    assert not [
        (call, text) for call, text in only_ours if "result = " in call
    ]  # programs: MindSpore runs all


TRAIN = """
import importlib, json, sys
sys.path.insert(0, "examples/10_digits")
sys.modules["mindspore"] = importlib.import_module(sys.argv[1])
import in_mindspore
print(json.dumps(in_mindspore.train()[0]))
"""


@real
@pytest.mark.slow(more=4)
def test_the_digits_network_learns_alike(capsys):
    losses = []
    for package in ("polyop.mindspore", "mindspore"):
        command = [sys.executable, "-c", TRAIN, package]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        losses.append(json.loads(done.stdout.splitlines()[-1]))
    with capsys.disabled():
        print("\n step  polyop.mindspore  MindSpore")
        for step in range(0, len(losses[0]), 25):
            print(f"{step:5}  {losses[0][step]:16.6f}  {losses[1][step]:9.6f}")
    assert len(losses[0]) == 150
    np.testing.assert_allclose(*losses, rtol=2e-3)


WRITE = """
import sys, importlib
ms = importlib.import_module(sys.argv[1])
nn, Tensor = ms.nn, ms.Tensor
net = nn.SequentialCell(nn.Conv2d(1, 2, 3, has_bias=True), nn.BatchNorm2d(2), nn.Dense(4, 3))
others = {"step": Tensor(7), "half": Tensor([1.5, -2.0], ms.float16), "scalar": Tensor(0.25), "flag": Tensor([True, False]),
          "brain": Tensor([1.0, 3.0], ms.bfloat16), "wide": Tensor([[1, 2]], ms.int64), "double": Tensor([0.1], ms.float64)}
if sys.argv[2] == "write":
    ms.save_checkpoint(net, sys.argv[3], append_dict=others)
    values = {**net.parameters_dict(), **others}
else:
    values = ms.load_checkpoint(sys.argv[3])
    ms.load_param_into_net(net, values)
    assert all((p == values[n]).all() for n, p in net.parameters_dict().items())
for name in sorted(values):
    array = values[name].astype(ms.float64).asnumpy()
    print(name, values[name].dtype, tuple(values[name].shape), array.reshape(-1).tolist())
"""


@real
@pytest.mark.slow(more=4)
@pytest.mark.parametrize(
    ("writer", "reader"), [("polyop.mindspore", "mindspore"), ("mindspore", "polyop.mindspore")]
)
def test_checkpoints_are_read_by_the_other(tmp_path, writer, reader):
    texts = []
    for package, what in ((writer, "write"), (reader, "read"), (writer, "read")):
        command = [sys.executable, "-c", WRITE, package, what, str(tmp_path / "net.ckpt")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        texts.append([line for line in done.stdout.splitlines() if "WARNING" not in line])
    assert len(texts[0]) == 15
    assert texts[0] == texts[1] == texts[2]


def test_a_checkpoint_is_read_again(tmp_path):
    net, other = nn.Dense(3, 2), nn.Dense(3, 2)
    ms.save_checkpoint(net, str(tmp_path / "net"), append_dict={"step": 3})
    loaded = ms.load_checkpoint(str(tmp_path / "net.ckpt"), other)
    assert list(loaded) == ["weight", "bias", "step"]
    assert np.array_equal(other.weight.asnumpy(), net.weight.asnumpy())
    assert ms.load_param_into_net(other, {"weight": net.weight, "extra": net.bias}) == (["bias"], ["extra"])
    (tmp_path / "net.ckpt").write_bytes(b"no checkpoint")
    with pytest.raises(ValueError, match="load_checkpoint: must be a checkpoint of MindSpore's format"):
        ms.load_checkpoint(str(tmp_path / "net.ckpt"))
    with pytest.raises(TypeError, match="save_checkpoint: save_obj must be a Cell"):
        ms.save_checkpoint(3, str(tmp_path / "net"))


@pytest.mark.parametrize(
    ("wrong", "more"),
    [(3, None), ([{"name": "weight"}], None), ({"weight": ms.Tensor([1.0])}, {"step": object()})],
)
def test_a_checkpoint_survives_a_save_that_fails(tmp_path, wrong, more):
    path = tmp_path / "net.ckpt"
    ms.save_checkpoint(nn.Dense(3, 2), str(path))
    before = path.read_bytes()
    with pytest.raises(TypeError):
        ms.save_checkpoint(wrong, str(path), append_dict=more)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_parameters_are_written_all_or_none(tmp_path):
    net = nn.Dense(3, 2)
    before = net.weight.asnumpy().copy()
    values = {"weight": ms.Tensor(before + 1), "bias": ms.Tensor([1.0, 2.0, 3.0])}
    with pytest.raises(ValueError, match=r"parameter bias needs data of shape \(2,\), but got \(3,\)"):
        ms.load_param_into_net(net, values)
    assert np.array_equal(net.weight.asnumpy(), before)


@pytest.mark.parametrize("other", [[1.0, 2.0, 3.0], [1, 2]])
def test_two_parameters_of_one_name_are_refused(tmp_path, other):
    """Records of one name are slices of one parameter; these have other sizes or another dtype."""
    for name, value in (("one", [1.0, 2.0]), ("two", other)):
        ms.save_checkpoint({"x": ms.Tensor(value)}, str(tmp_path / name))
    both = tmp_path / "both.ckpt"
    both.write_bytes((tmp_path / "one.ckpt").read_bytes() + (tmp_path / "two.ckpt").read_bytes())
    with pytest.raises(ValueError, match="two parameters are named x"):
        ms.load_checkpoint(str(both))
