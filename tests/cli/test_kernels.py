"""``polyop explain`` and ``polyop check`` take a loop kernel that the file only decorates."""

import itertools

import pytest

from polyop.cli.main import main

FILE = """
import numpy as np
import polyop

@polyop.kernel
def scaled(x, by: float = 2.0):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * by
    return y

@polyop.kernel
def only_for_custom(x, by):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * by
    return y

made = polyop.operator("{name}_made::op(Tensor x, float by) -> Tensor", only_for_custom)
polyop_samples = {{scaled.name: (np.ones(3),), made.name: {{"x": np.ones(3), "by": 2.0}}}}
"""


_files = itertools.count()


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / f"cli_kernels_{next(_files)}.py"
    path.write_text(FILE.format(name=path.stem))
    return path


@pytest.mark.parametrize("name", ["scaled", "{module}::scaled", ""])
def test_explain(file, name, capsys):
    chosen = [name.format(module=file.stem)] if name else []
    assert main(["explain", str(file), *chosen]) == 0
    out = capsys.readouterr().out
    assert f"{file.stem}::scaled(Tensor x, float by=2.0) -> Tensor" in out
    assert ("_made::op" in out) == (not name)


def test_check(file, capsys):
    assert main(["check", f"{file}:scaled"]) == 0
    assert "scaled" in capsys.readouterr().out
