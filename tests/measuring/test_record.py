"""Recording the calls of real programs, and their replay."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from polyop.bench import recorded_calls
from polyop.cli.load import load
from polyop.cli.main import main
from polyop.core.errors import ArgumentValueError

OPERATORS = """
import polyop


@polyop.kernel(name="recorded::silu")
def silu(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] / (1.0 + exp(-x[i, j]))
    return y


@polyop.kernel(name="recorded::scaled")
def scaled(x, factor: float = 1.0):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * factor
    return y
"""
TRAINING = """
import torch
from recorded_operators import scaled, silu

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.Linear(32, 4))
steps = torch.optim.SGD(net.parameters(), lr=0.01)
for _ in range(6):
    loss = scaled(net[1](silu(net[0](torch.randn(8, 16)))), 0.5).square().mean()
    steps.zero_grad()
    loss.backward()
    steps.step()
with torch.no_grad():
    for _ in range(3):
        silu(torch.randn(32, 8).t())
    compiled = torch.compile(silu, backend="aot_eager", fullgraph=True)
    compiled(torch.randn(3, 5))
    compiled(torch.randn(3, 5))
print(loss.item())
"""


def run(folder, text, **variables):
    (folder / "recorded_operators.py").write_text(OPERATORS)
    command = [sys.executable, "-c", text]
    env = {**os.environ, **variables}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="session")
def training(tmp_path_factory):
    folder = tmp_path_factory.mktemp("training")
    return folder, run(folder, TRAINING, POLYOP_RECORD="calls.json")


def counts(path):
    rows = json.loads(path.read_text())["calls"]
    return {(r["operator"], *(_layout(t) for t in r["tensors"].values() if t)): r["count"] for r in rows}


def _layout(tensor):
    return tuple(tensor["shape"]), tuple(tensor["strides"])


@pytest.mark.slow
def test_a_training_run_is_recorded(training):
    folder, _ = training
    assert counts(folder / "calls.json") == {
        ("recorded::silu", ((8, 32), (32, 1))): 6,
        ("recorded::silu", ((8, 32), (1, 8))): 3,
        ("recorded::silu", ((3, 5), (5, 1))): 2,
        ("recorded::silu__backward", *[((8, 32), (32, 1))] * 3): 6,
        ("recorded::scaled", ((8, 4), (4, 1))): 6,
        ("recorded::scaled__backward", ((8, 4), (4, 1))): 6,
    }


@pytest.mark.slow
def test_recording_changes_no_value(training):
    folder, loss = training
    assert run(folder, TRAINING) == loss


def test_rows_have_attributes_times_and_host(training):
    rows = json.loads((training[0] / "calls.json").read_text())["calls"]
    scaled = next(r for r in rows if r["operator"] == "recorded::scaled")
    assert (scaled["attributes"], scaled["host"], scaled["part_of"]) == ({"factor": 0.5}, "torch", "")
    assert all(0 < r["median"] <= r["seconds"] and not r["traced"] for r in rows)
    assert [r["seconds"] for r in rows] == sorted((r["seconds"] for r in rows), reverse=True)


def test_recorded_calls_are_replayed(training, capsys):
    folder, _ = training
    file, calls, out = (str(folder / name) for name in ("recorded_operators.py", "calls.json", "out.json"))
    assert main(["bench", file, "--from", calls, "--rounds", "2", "--json", out]) == 0
    names = {row["name"] for row in json.loads(Path(out).read_text())["rows"]}
    assert names == {
        "recorded::silu float32[8,32] in NumPy",
        "recorded::silu float32[3,5] in NumPy",
        "recorded::scaled float32[8,4] (factor=0.5) in NumPy",
    }
    assert main(["bench", file, "scaled", "--from", calls, "--rounds", "2"]) == 0
    text = capsys.readouterr().out
    assert text.rpartition("recorded::scaled")[2].count("silu") == 0
    assert main(["bench", file, "other", "--from", calls]) == 1
    assert "must have calls of other, but got recorded::scaled" in capsys.readouterr().err


def test_numpy_and_jax_are_recorded(tmp_path):
    text = """
import jax, numpy as np
from recorded_operators import silu
x = np.ones((2, 3), np.float32)
for _ in range(4): silu(x)
silu(jax.numpy.asarray(x))
jax.jit(silu)(jax.numpy.asarray(x))
"""
    run(tmp_path, text, POLYOP_RECORD=str(tmp_path / "deep" / "calls.json"))
    rows = json.loads((tmp_path / "deep" / "calls.json").read_text())["calls"]
    found = {(r["host"], r["traced"]): r["count"] for r in rows}
    assert (found["numpy", False], found["jax", False], found["jax", True]) == (4, 1, 1)


def test_each_process_has_its_file(tmp_path):
    """A process without calls writes none; --from takes several files."""
    text = "import numpy as np; from recorded_operators import silu; silu(np.ones(({rows}, 3), np.float32))"
    for program in (text.format(rows=2), text.format(rows=4), "import polyop"):
        run(tmp_path, program, POLYOP_RECORD="calls.%p.json")
    files = sorted(tmp_path.glob("calls.*.json"))
    assert len(files) == 2
    assert all(re.fullmatch(r"calls\.\d+\.json", file.name) for file in files)
    module = load(str(tmp_path / "recorded_operators.py"))
    found = recorded_calls.calls_of(files, lambda name: module.silu)
    assert sorted(specs[0].shape for _, specs, _ in found) == [(2, 3), (4, 3)]


def test_a_call_that_cannot_be_recorded_still_returns(tmp_path):
    text = """
import numpy as np
from polyop.call import record
from recorded_operators import silu
def refuse(host, value): raise OverflowError("no text")
record._describe = refuse
for _ in range(3): assert silu(np.zeros((2, 3), np.float32)).shape == (2, 3)
"""
    (tmp_path / "recorded_operators.py").write_text(OPERATORS)
    env = {**os.environ, "POLYOP_RECORD": "calls.json"}
    done = subprocess.run(
        [sys.executable, "-c", text], cwd=tmp_path, env=env, capture_output=True, text=True, check=True
    )
    said = "calls that are not recorded: 3; the first: recorded::silu: OverflowError: no text"
    assert done.stderr == f"polyop: POLYOP_RECORD: {said}\n"
    assert not (tmp_path / "calls.json").exists()


TENSOR = {"dtype": "float32", "shape": [2], "strides": [1], "device": "cpu"}
ROW = {"operator": "a::b", "part_of": "", "tensors": {"x": TENSOR}, "attributes": {}}


def changed(without=None, **fields):
    """Return the text of a file whose only row lacks a field, or has others."""
    row = {name: value for name, value in {**ROW, **fields}.items() if name != without}
    return json.dumps({"format": 1, "calls": [row]})


@pytest.mark.parametrize(
    ("content", "seen"),
    [
        (None, "FileNotFoundError"),
        ("[]", "there is no format"),
        ("[" * 100_000, "nested too deeply"),
        ('{"format": 7, "calls": []}', "format: must be 1, but got 7"),
        ('{"format": 1, "calls": {}}', "a dict is no list"),
        (changed(operator=3), r"calls\[0\]\.operator: must be .*, but got 3 is no text"),
        (changed(part_of=None), r"calls\[0\]\.part_of: .* None is no text"),
        (changed("part_of"), r"calls\[0\]\.part_of: .* there is no part_of"),
        (changed(attributes=[]), r"calls\[0\]\.attributes: .* a list has no fields"),
        (changed(attributes={"factor": {}}), r"calls\[0\]\.attributes: .* a dictionary"),
        (changed(tensors={"x": 3}), r"calls\[0\]\.tensors: .* there is no shape"),
        (changed(tensors={"x": {**TENSOR, "shape": [-1]}}), r"calls\[0\]\.tensors: .* a size of -1"),
        (changed(tensors={"x": {**TENSOR, "dtype": "float3"}}), r"calls\[0\]\.tensors: .*float3"),
        (changed(seconds="1"), r"calls\[0\]\.seconds: .* is no time"),
    ],
)
def test_other_files_are_refused(tmp_path, content, seen):
    path = tmp_path / "calls.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ArgumentValueError, match=seen) as refused:
        recorded_calls.read(path)
    assert str(path) in str(refused.value)


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("", "it is a folder"),
        ("file.txt/calls.json", "."),
        ("/proc/calls.json", "."),
        ("/proc/none/calls.%p.json", "."),
        ("/dev/null/calls.json", "."),
        ("x" * 300, "File name too long"),
    ],
)
def test_a_path_that_cannot_be_written_is_an_error_at_once(tmp_path, target, reason):
    (tmp_path / "file.txt").write_text("")
    path = tmp_path / target if not target.startswith("/") else target
    done = subprocess.run(
        [sys.executable, "-c", "import polyop; print('imported')"],
        env={**os.environ, "POLYOP_RECORD": str(path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1 and done.stdout == ""
    words = r"ArgumentValueError: POLYOP_RECORD: must be a file that can be written, but got '.*': "
    assert re.search(f"{words}.*{reason}.*\n  name a file in a folder", done.stderr), done.stderr


def test_the_check_of_the_path_leaves_nothing(tmp_path):
    (tmp_path / "calls.json").write_text("an older file")
    env = {**os.environ, "POLYOP_RECORD": str(tmp_path / "calls.json")}
    subprocess.run([sys.executable, "-c", "import polyop"], env=env, check=True)
    assert [path.name for path in tmp_path.iterdir()] == ["calls.json"]
    assert (tmp_path / "calls.json").read_text() == "an older file"


def test_what_happens_once_is_not_in_the_times(tmp_path):
    text = """
import time, numpy as np, polyop

def spec(x):
    time.sleep(0.5 * (x.shape == (2, 2)))  # as a compile does
    return x

def double(x):
    time.sleep(0.03 * (x.size > 4))
    return x * 2

op = polyop.operator("recorded::double(Tensor x) -> Tensor", double, infer=spec)
op(np.ones((2, 2)))
for _ in range(4):
    op(np.ones(8))
"""
    run(tmp_path, text, POLYOP_RECORD="calls.json")
    rows = json.loads((tmp_path / "calls.json").read_text())["calls"]
    assert [(r["tensors"]["x"]["shape"], r["count"]) for r in rows] == [([8], 4), ([2, 2], 1)]
