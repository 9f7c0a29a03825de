"""Where the text of a loop kernel comes from: files that change, notebooks, closures, one name twice."""

import importlib
import linecache
import sys

import numpy as np
import pytest

import polyop
from polyop import Custom

# ruff: noqa: F821 - the words of the language

X = np.arange(3, dtype=np.float32)
TEXT = """
def f(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * {}
    return y
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / "kernels_that_change.py").write_text(TEXT.format(2))
    yield importlib.import_module("kernels_that_change")
    del sys.modules["kernels_that_change"]


def test_edited_and_reloaded(module, tmp_path):
    before, first = module.f, Custom(module.f, func_type="akg")
    assert first(X).tolist() == [0, 2, 4]
    (tmp_path / "kernels_that_change.py").write_text("\n# longer now\n" + TEXT.format(3))
    assert Custom(before, func_type="akg")(X).tolist() == [0, 2, 4]  # Python runs the old text, too
    importlib.reload(module)
    assert Custom(module.f, func_type="akg")(X).tolist() == [0, 3, 6]
    assert polyop.kernel(module.f).python(X).tolist() == [0, 3, 6]
    assert first(X.astype(np.float64)).tolist() == [0, 2, 4]  # compiled only now, from what it was


def test_a_notebook_cell():
    name = "<ipython-input-3-abcdef>"
    text = TEXT.format(7)
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    names = {}
    exec(compile(text, name, "exec"), names)
    assert Custom(names["f"], func_type="hybrid")(X).tolist() == [0, 7, 14]
    with pytest.raises(polyop.PolyopError, match=r"<ipython-input-3-abcdef>:4") as excinfo:
        Custom(names["f"], func_type="hybrid")(np.float32(1))
    assert "for i in range(x.shape[0])" in str(excinfo.value)


def test_a_cell_that_is_run_again_after_an_edit():
    operators = []
    for number, factor in enumerate((2, 5)):
        name, text = f"<ipython-input-{number}-fedcba>", TEXT.format(factor)
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        names = {}
        exec(compile(text, name, "exec"), names)
        operators.append(Custom(names["f"], func_type="hybrid"))
    assert [op(X).tolist() for op in operators] == [[0, 2, 4], [0, 5, 10]]


def more():
    def f(x):
        y = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            y[i] = x[i] + 1
        return y

    return f


def less():
    def f(x):
        y = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            y[i] = x[i] - 1
        return y

    return f


def times(factor):
    def f(x):
        y = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            y[i] = x[i] * factor
        return y

    return f


def test_kernels_of_one_name_stay_apart():
    ops = [Custom(function, func_type="akg") for function in (more(), less(), times(2), times(5))]
    assert len({op.name for op in ops}) == 4
    for _ in range(2):
        assert [op(X).tolist() for op in ops] == [[1, 2, 3], [-1, 0, 1], [0, 2, 4], [0, 5, 10]]


def test_on_pytorch_too():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    ops = [Custom(function, func_type="akg") for function in (more(), less(), times(5))]
    torch._dynamo.reset()
    together = torch.compile(lambda t: [op(t).sum() for op in ops], fullgraph=True, backend="aot_eager")
    assert [float(x) for x in together(torch.tensor(X))] == [6, 0, 15]


def test_the_function_and_its_module_stay_as_they_are():
    function, names = times(3), set(globals())
    code = function.__code__
    Custom(function, func_type="hybrid")(X)
    polyop.kernel(function).python(X)
    assert function.__code__ is code
    assert not hasattr(function, "reg_info")
    assert set(globals()) == names
    with pytest.raises(NameError, match="output_tensor"):
        function(X)


def test_an_unknown_name_is_said_when_the_operator_is_made():
    def f(x):
        y = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            y[i] = x[i] + nowhere
        return y

    with pytest.raises(polyop.PolyopError, match="there is no variable nowhere") as excinfo:
        Custom(f, func_type="hybrid")
    assert "y[i] = x[i] + nowhere" in str(excinfo.value)
