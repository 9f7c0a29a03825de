"""Graphs in MindIR files: written by one process, run by another that has defined the operators."""

import pathlib
import subprocess
import sys

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn

import polyop
from polyop.core.errors import UnsupportedError

PROGRAM = pathlib.Path(__file__).parent / "mindir_networks.py"


def run(*arguments):
    return subprocess.run(
        [sys.executable, str(PROGRAM), *map(str, arguments)], capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mindir")
    done = run("write", folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_another_process_runs_what_one_has_written(folder):
    done = run("run", folder)
    assert done.returncode == 0, done.stderr


def test_a_process_that_has_not_defined_the_operator(folder):
    done = run("bare", folder)
    assert done.returncode != 0
    assert "this program calls it, and this process has not defined it" in done.stderr
    assert "import the module that defines it before the program runs" in done.stderr


def test_the_file_is_also_run_by_the_process_that_wrote_it(tmp_path):
    op = polyop.operator("ms_mindir::half(Tensor x) -> Tensor", lambda x: x / 2, infer="x")

    class Net(nn.Cell):
        def construct(self, x):
            return op(x) + 1

    x = Tensor(np.ones(3, np.float32))
    ms.export(Net(), x, file_name=str(tmp_path / "net"), file_format="MINDIR")
    result = nn.GraphCell(ms.load(str(tmp_path / "net.mindir")))(x)
    np.testing.assert_array_equal(result.asnumpy(), np.full(3, 1.5, np.float32))


def test_a_gradient_on_numpy_arrays_cannot_be_written(tmp_path):
    op = polyop.operator(
        "ms_mindir::sine(Tensor x) -> Tensor",
        lambda x: np.sin(x),
        infer="x",
        gradient=lambda x, out, dout: (np.cos(x) * dout,),
    )

    class Net(nn.Cell):
        def construct(self, x):
            return ms.grad(lambda x: op(x).sum())(x)

    x = Tensor(np.ones(3, np.float32))
    with (
        pytest.warns(polyop.FallbackWarning, match="it uses numpy"),
        pytest.raises(UnsupportedError, match="another process would not find it"),
    ):
        ms.export(Net(), x, file_name=str(tmp_path / "net"), file_format="MINDIR")
    assert not list(tmp_path.iterdir())
