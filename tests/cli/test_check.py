"""``polyop check`` in another process."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys

import pytest

GOOD = """
import polyop
double = polyop.operator("cli::double(Tensor x) -> Tensor", lambda x: x * 2, infer="x", reference=lambda x: x + x)
"""
WRONG = """
import polyop
wrong = polyop.operator("cli::wrong(Tensor x) -> Tensor", lambda x: x * 2, infer="x", reference=lambda x: x + 1)
"""
SAMPLED = """
import numpy as np
import polyop

def index(x, i):
    return x[i]

index = polyop.operator(
    "cli::pick(Tensor x, Tensor i) -> Tensor", index, infer=lambda x, i: polyop.Spec((*i.shape, *x.shape[1:]), x.dtype)
)
polyop_samples = {"cli::pick": (np.ones((4, 2), np.float32), np.array([0, 3, 1]))}
"""


RUNNING = """
import numpy as np
import polyop

running = polyop.operator(
    "cli::running(Tensor x) -> Tensor", lambda x: np.cumsum(x, dtype=x.dtype), dims="n -> n", parallel="n"
)
"""


def polyop_check(folder, *arguments):
    command = [sys.executable, "-m", "polyop", "check", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)


def test_good_operators_return_0_and_a_plain_table(tmp_path):
    (tmp_path / "good.py").write_text(GOOD)
    done = polyop_check(tmp_path, "good.py", "--host", "numpy")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == f"cli::double, defined at {tmp_path / 'good.py'}:3"
    assert lines[1].split() == ["check", "host", "result", "detail"]
    assert "\x1b" not in done.stdout


def test_a_failure_returns_1_and_is_named(tmp_path):
    (tmp_path / "wrong.py").write_text(WRONG)
    (tmp_path / "good.py").write_text(GOOD)
    done = polyop_check(tmp_path, "wrong.py", "good", "--host", "numpy")
    assert done.returncode == 1
    assert "the reference gives" in done.stdout
    assert "cli::wrong" in done.stdout and "cli::double" in done.stdout


def test_a_false_claim_about_a_dimension_is_named_with_its_smallest_case(tmp_path):
    (tmp_path / "running.py").write_text(RUNNING)
    done = polyop_check(tmp_path, "running.py", "--host", "numpy")
    assert done.returncode == 1
    lines = [line.strip() for line in done.stdout.splitlines()]
    start = next(k for k, line in enumerate(lines) if line.startswith("dims, parallel "))
    assert lines[start].endswith(
        'cli::running: parallel="n" is false: for n=2, the slices 0:1, 1:2 of n differ from the whole'
    )
    assert lines[start + 1 : start + 4] == [
        "x = [1., 0.]",
        "whole:  output 0 = [1., 1.]",
        "slices: output 0 = [1., 0.]",
    ]


def test_one_operator_of_a_file_can_be_named(tmp_path):
    (tmp_path / "both.py").write_text(GOOD + WRONG)
    for name in ("double", "cli::double"):
        done = polyop_check(tmp_path, f"both.py:{name}", "--host", "numpy")
        assert done.returncode == 0
        assert "cli::wrong" not in done.stdout


def test_samples_of_the_file_are_used(tmp_path):
    (tmp_path / "sampled.py").write_text(SAMPLED)
    done = polyop_check(tmp_path, "sampled.py", "--host", "numpy")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("samples", "words"),
    [
        ('["cli::pick"]', "polyop_samples: must be a dictionary, from the names of operators"),
        (
            '{"cli::pick": 3}',
            "polyop_samples['cli::pick']: must be a tuple of sample inputs, or a dictionary",
        ),
        ('{"pick": ()}', "polyop_samples: has no operator 'pick'\n  did you mean 'pick'? it has cli::pick"),
        ('{"cli::pack": ()}', "polyop_samples: has no operator 'cli::pack'\n  did you mean 'cli::pick'?"),
    ],
)
def test_samples_of_another_form_or_of_no_operator_are_errors(samples, words, tmp_path):
    (tmp_path / "sampled.py").write_text(f"{SAMPLED}polyop_samples = {samples}\n")
    done = polyop_check(tmp_path, "sampled.py", "--host", "numpy")
    assert (done.returncode, done.stdout) == (1, "")
    assert words in done.stderr


def test_drawn_inputs_that_do_not_fit(tmp_path):
    (tmp_path / "volume.py").write_text(
        "import polyop\n\n\n@polyop.kernel\ndef copied(x):\n    y = output_tensor(x.shape, x.dtype)\n"
        "    for i in range(x.shape[2]):\n        y[0] = x[0] * i\n    return y\n"
    )
    done = polyop_check(tmp_path, "volume.py", "--host", "numpy")
    assert done.returncode == 1
    words = 'were drawn; if they do not fit, give its samples in the file: polyop_samples = {"volume::copied": (...)}'
    assert words in done.stderr


def test_no_operator_and_no_file_are_errors(tmp_path):
    (tmp_path / "empty.py").write_text("")
    done = polyop_check(tmp_path, "empty.py")
    assert done.returncode == 1
    assert "empty.py: must define an operator, but got no operators" in done.stderr
    done = polyop_check(tmp_path, "absent.py")
    assert done.returncode == 1
    assert "must be a Python file or an importable module" in done.stderr
    (tmp_path / "good.py").write_text(GOOD)
    done = polyop_check(tmp_path, "good.py", "double")  # it is good.py:double; nothing is checked before
    assert (done.returncode, done.stdout) == (1, "")
    assert "an operator of a file is FILE:OPERATOR" in done.stderr


def test_a_terminal_gets_a_drawn_table(tmp_path):
    (tmp_path / "good.py").write_text(GOOD)
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "polyop", "check", "good.py", "--host", "numpy"]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, cwd=tmp_path, env=environment) as process:
        os.close(theirs)
        text = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # the other side was closed
                break
            if not part:
                break
            text += part
        assert process.wait() == 0
    os.close(ours)
    assert "checking cli::double ..." in text.decode()
    assert "┃" in text.decode()


MESH = """
import polyop
columns = polyop.operator("cli::columns(Tensor x) -> Tensor", lambda x: x.cumsum(1), dims="m n -> m n", parallel="n")
"""


@pytest.mark.parametrize("host", ["torch", "jax"])
def test_a_false_claim_is_seen_on_several_devices(tmp_path, host):
    """Also from JAX, which has one CPU device without a flag."""
    pytest.importorskip(host, reason=f"{host} is not installed")
    (tmp_path / "columns.py").write_text(MESH)
    done = polyop_check(tmp_path, "columns.py", "--host", "numpy", "--host", host)
    assert done.returncode == 1
    row = next(line for line in done.stdout.splitlines() if line.split()[:2] == ["mesh", host])
    assert '(parallel="n"): output 0' in row


def test_what_was_not_run_is_one_line_for_each_reason(tmp_path):
    (tmp_path / "good.py").write_text(GOOD)
    lines = polyop_check(tmp_path, "good.py", "--host", "numpy").stdout.splitlines()
    reasons = [line.rpartition(": ")[2] for line in lines if line.startswith("not run: ")]
    assert "no gradient rule" in reasons and len(set(reasons)) == len(reasons)
    (gradients,) = (line for line in lines if line.endswith(": no gradient rule"))
    assert gradients.startswith("not run: ") and "gradient, layouts" in gradients
    assert not any(re.search(r"  not run( |$)", line) for line in lines)


def test_json(tmp_path):
    (tmp_path / "wrong.py").write_text(WRONG)
    done = polyop_check(tmp_path, "wrong.py", "--host", "numpy", "--json")
    (report,) = json.loads(done.stdout)
    assert done.returncode == 1 and (report["operator"], report["ok"]) == ("cli::wrong", False)
    failed = {row["check"]: row["detail"] for row in report["results"] if row["status"] == "failed"}
    assert "the reference gives" in failed["values, reference"]


WAITING = """
import pathlib, time
import polyop

def wait(x):
    deadline = time.monotonic() + 60
    while not pathlib.Path("seen").exists():
        assert time.monotonic() < deadline, "the first report was not seen before"
        time.sleep(0.05)
    return x * 3

first = polyop.operator("cli::first(Tensor x) -> Tensor", lambda x: x * 2, infer="x")
second = polyop.operator("cli::second(Tensor x) -> Tensor", wait, infer="x")
"""
STREAMS = [
    # the options, the stream that says what is finished, its last line of an operator
    ((), "stdout", r"\d+ passed, 0 failed, \d+ not run"),
    (("--json",), "stderr", r"cli::first: \d+ passed, 0 failed, \d+ not run"),
]


@pytest.mark.parametrize(("options", "name", "last"), STREAMS, ids=["plain", "json"])
def test_an_operator_is_reported_before_the_next_one_is_checked(tmp_path, options, name, last):
    (tmp_path / "waiting.py").write_text(WAITING)
    command = [sys.executable, "-m", "polyop", "check", "waiting.py", "--host", "numpy", *options]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, cwd=tmp_path, **pipes) as process:
        for line in getattr(process, name):
            if re.fullmatch(last, line.strip()):
                break
        (tmp_path / "seen").touch()
        stdout, stderr = process.communicate()
    assert process.returncode == 0, stdout + stderr
    if options:
        assert [report["operator"] for report in json.loads(stdout)] == ["cli::first", "cli::second"]
        assert re.fullmatch(r"cli::second: \d+ passed, 0 failed, \d+ not run\n", stderr)
    else:
        assert stderr == "" and "cli::second, defined at" in stdout
