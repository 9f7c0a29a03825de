"""A wheel carries the schedules that ``polyop tune`` kept, with their libraries, or why loops are in order."""

import importlib
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from loop_tools import use
from wheel_tools import build, contents, install

import polyop
from polyop import Schedule
from polyop.cli.load import load
from polyop.core.spec import Spec
from polyop.loops.emit.c.loops import Loops
from polyop.loops.library import tuned
from polyop.tune.keep import keep
from polyop.tune.search import Outcome, Tried
from polyop.tune.variants import SAME_BITS, Subject
from polyop.wheel import LoopExtension
from polyop.wheel.loop_build import compile_module

MODULE = """
import polyop


@polyop.kernel
def squares(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * x[i, j]
    return y
"""
STEPS = Schedule().tile("j", 8)


def find(operator, shape, steps):
    """Keep a schedule as a search does; return the file."""
    subject = Subject.of(operator, [Spec(shape, "float32")], {})
    outcome = Outcome(subject, best=Tried(steps, "measured", values=SAME_BITS), gain=(2.0, 1.5, 2.5))
    return Path(keep(outcome))


@pytest.fixture
def package(tmp_path, request):
    """A package whose kernel has a tuned schedule; it is compiled as a build does it."""
    name = f"tunedops_{len(request.node.name)}"
    file = tmp_path / name / "kernels.py"
    file.parent.mkdir()
    file.write_text(MODULE)
    yield name, file, LoopExtension(f"{name}.kernels", {"squares": ["float32[:,:]", "float64[:,:]"]})
    for module in [module for module in sys.modules if module.startswith(name)]:
        del sys.modules[module]


def test_each_schedule_has_a_library(package, tmp_path):
    name, file, extension = package
    path = find(load(str(file)).squares, (64, 64), STEPS)
    assert path == Path(f"{file}.tuned.json")
    assert len(compile_module(extension, file, tmp_path)) == 3
    squares = importlib.import_module(f"{name}.kernels").squares
    kernel = squares.operator.kernels[0]

    def notes(*sizes):
        return "\n".join(kernel.explain([Spec(sizes, "float32")], {}))

    assert "tuned on" in notes(60, 60) and "as the schedule says: tile" in notes(60, 60)
    assert "tuned on" not in notes(60, 600)
    assert all(
        f"shipped: {file.parent}/__polyop__/squares-" in notes(*sizes) for sizes in ((60, 60), (60, 600))
    )
    for shape in ((60, 60), (60, 600)):
        x = np.random.default_rng(0).random(shape, np.float32)
        np.testing.assert_array_equal(squares(x), x * x)
    assert {Path(library.path).parent.name for library in kernel._libraries.values()} == {"__polyop__"}
    assert len(kernel._libraries) == 2


def test_a_schedule_that_is_refused_is_left_out(package, tmp_path):
    _, file, extension = package
    find(load(str(file)).squares, (64, 64), Schedule().tile("k", 8))
    with pytest.warns(polyop.FallbackWarning, match="a tuned schedule is left out: .*there is no loop k"):
        assert len(compile_module(extension, file, tmp_path)) == 2


@pytest.mark.slow
def test_a_wheel_that_pip_builds(loop_project, tmp_path, without_compilers):
    project = shutil.copytree(
        loop_project, tmp_path / "project", ignore=shutil.ignore_patterns("build", "dist")
    )
    source = project / "src" / "loopops" / "kernels.py"
    find(load(str(source)).softmax, (7, 33), Schedule().vectorize("j"))
    wheel = build(project)
    assert "loopops/kernels.py.tuned.json" in contents(wheel)
    index = json.loads(contents(wheel)["loopops/__polyop__/kernels.json"])
    assert (
        sum(row["signature"] == "float32[:,:]" and row["function"] == "softmax" for row in index["kernels"])
        == 2
    )
    program = """
import numpy as np, loopops
from polyop.core.spec import Spec
kernel = loopops.kernels.softmax.operator.kernels[0]
loopops.softmax(np.ones((7, 33), np.float32))
print(*kernel.explain([Spec((7, 33), "float32")], {}), sep="\\n")
"""
    said = use(install(wheel, tmp_path / "installed"), program, **without_compilers).stdout
    assert "shipped: " in said and "tuned on" in said
    tuned._read.clear()


def test_a_kernel_whose_text_the_compiler_refuses_is_in_the_authors_order(package, tmp_path, monkeypatch):
    name, file, extension = package
    monkeypatch.setattr(Loops, "vector", lambda self, *_: self.out.line("max_f32(1 2);"))
    monkeypatch.delenv("POLYOP_STRICT")
    with pytest.warns(polyop.FallbackWarning, match="squares: loops stay in the author's order.*expected"):
        assert len(compile_module(extension, file, tmp_path)) == 2
    squares = importlib.import_module(f"{name}.kernels").squares
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    with pytest.warns(polyop.FallbackWarning, match="squares: loops stay in the author's order"):
        np.testing.assert_array_equal(squares(x), x * x)
    told = "\n".join(squares.operator.kernels[0].explain([Spec((2, 3), "float32")], {}))
    assert "loops stay in the author's order" in told
