"""``polyop explain --print-after`` and ``--time-passes``, and errors in their arguments."""

import re

import pytest

from polyop.cli.main import main
from polyop.loops.derive.pipelines import PIPELINES
from polyop.loops.pipeline import PIPELINE

TEXT = """
import polyop


@polyop.kernel
def doubled(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = 2.0 * x[i]
    return y


loops = polyop.operator("{name}::doubled(Tensor x) -> Tensor", doubled)
plain = polyop.operator("{name}::plain(Tensor x) -> Tensor", lambda x: x, infer="x")
"""


@pytest.fixture
def file(tmp_path, request):
    namespace = f"explain_{re.sub(r'[^a-z]', '_', request.node.name.lower())}"
    path = tmp_path / f"{namespace}.py"
    path.write_text(TEXT.format(name=namespace))
    return str(path), namespace


def test_the_loops_after_one_pass(file, capsys):
    path, name = file
    arguments = ["--input", "float32[8]", "--print-after", "plan_loops"]
    assert main(["explain", path, f"{name}::doubled", *arguments]) == 0
    text = capsys.readouterr().out
    assert re.search(r"# pass \d+, plan_loops: Loops become threads, vectors, register tiles\.", text)
    assert "for i in range(x.shape[0]):  # threads, vector" in text
    assert text.count("# pass") == 1


def test_all_passes_and_their_times(file, capsys):
    path, name = file
    arguments = ["--input", "float32[8]", "--print-after", "all", "--time-passes"]
    assert main(["explain", path, f"{name}::doubled", *arguments]) == 0
    text = capsys.readouterr().out
    assert re.findall(r"^# pass \d+, (\w+):", text, re.MULTILINE) == [one.name for one in PIPELINE]
    assert re.findall(r" ms  (\w+)$", text, re.MULTILINE) == [one.name for one in PIPELINE]
    assert text.rstrip().endswith("all passes")


@pytest.mark.parametrize("form", PIPELINES)
def test_the_passes_of_a_derived_form_come_first(file, capsys, form):
    path, name = file
    arguments = ["--input", "float32[8]", "--derived", form, "--print-after", "all", "--time-passes"]
    assert main(["explain", path, f"{name}::doubled", *arguments]) == 0
    text = capsys.readouterr().out
    compiled = () if form == "saving" else PIPELINE  # there is nothing to save
    names = [one.name for one in (*PIPELINES[form], *compiled)]
    assert re.findall(r"^# pass \d+, (\w+):", text, re.MULTILINE) == names
    assert re.findall(r" ms  (\w+)$", text, re.MULTILINE) == names


@pytest.mark.parametrize(
    ("operator", "arguments", "message"),
    [
        (
            "doubled",
            ["--input", "float32[8]", "--print-after", "inlin"],
            "must be a pass (strip_gradient_marks,",
        ),
        (
            "doubled",
            ["--input", "float32[8]", "--derived", "gradient", "--print-after", "all"],
            "--derived: must be one of backward, checkpointed, saving",
        ),
        ("doubled", ["--print-after", "all"], "give them in order: --input 'float32[2]'"),
        ("plain", ["--input", "float32[8]", "--time-passes"], "only loop kernels have passes"),
    ],
)
def test_wrong_arguments(file, capsys, operator, arguments, message):
    path, name = file
    assert main(["explain", path, f"{name}::{operator}", *arguments]) == 1
    assert message in capsys.readouterr().err
