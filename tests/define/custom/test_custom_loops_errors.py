"""Errors and warnings of loop kernels: the message and the line."""

import warnings

import numpy as np
import pytest

import polyop
from polyop import Custom

# ruff: noqa: F821 - the words of the language

X = np.arange(3, dtype=np.float32)


def copied(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i]
    return y


def squared_in_the_output(x):
    y = output_tensor(x.shape, x.dtype)
    for i0 in range(x.shape[0]):
        y[i0] = y[i0] * y[i0]
    return y


def picked(x, which):
    y = output_tensor(which.shape, x.dtype)
    for i in range(which.shape[0]):
        y[i] = x[which[i]]
    return y


def beyond(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i + 1]
    return y


class Callable:
    """Callable, and no function."""

    def __call__(self, x):
        """Return x."""
        return x


NO_KERNELS = [
    (lambda x: x, r"the loop kernel <lambda>: must be a function made by def, but got a lambda"),
    (np.sin, r"the loop kernel sin: must be a function made by def, but got ufunc"),
    (len, r"the loop kernel len: must be a function made by def, but got builtin_function_or_method"),
    (Callable(), r"must be a function made by def, but got Callable"),
    ("copied", r"'func' must be of type function, but got <class 'str'>"),
    (3, r"'func' must be of type function or str, but got <class 'int'>"),
    (None, r"'func' must be of type function or str, but got <class 'NoneType'>"),
]


def first_column(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i, 0] = x[i, 0]
    return y


@pytest.mark.parametrize(("function", "message"), NO_KERNELS)
@pytest.mark.parametrize("func_type", ["hybrid", "akg"])
def test_what_is_no_kernel(function, message, func_type):
    with pytest.raises(polyop.PolyopError, match=message):
        Custom(function, func_type=func_type)


def test_an_ordinary_function_of_arrays():
    def mean(x):
        return x.mean(axis=0)

    message = "the return value should be either a single tensor or a tuple, but got x.mean"
    advice = "whole-tensor maths is not compiled: write loops into an output_tensor"
    with pytest.raises(polyop.PolyopError, match=message) as excinfo:
        Custom(mean, func_type="hybrid")
    assert "return x.mean(axis=0)" in str(excinfo.value)
    assert advice in str(excinfo.value)


def test_text_that_cannot_be_read():
    names = {}
    text = "def f(x):\n    y = output_tensor(x.shape, x.dtype)\n    y[0] = x[0]\n    return y\n"
    exec(text, names)
    with pytest.raises(polyop.PolyopError, match="its source cannot be read") as excinfo:
        Custom(names["f"], func_type="hybrid")
    assert "write it in a file or a notebook cell" in str(excinfo.value)


RULES = [
    (lambda x: [7], lambda x: x, r"says float32\[7\] of output 0, and the kernel writes float32\[3\]"),
    (
        lambda x: x,
        polyop.dtype("int32"),
        r"says int32\[3\] of output 0, and the kernel writes float32\[3\]",
    ),
    ([4], None, r"says float32\[4\] of output 0, and the kernel writes float32\[3\]"),
    (None, polyop.dtype("float64"), r"says float64\[3\] of output 0, and the kernel writes float32\[3\]"),
]


@pytest.mark.parametrize(("out_shape", "out_dtype", "message"), RULES)
def test_rules_that_contradict_the_kernel(out_shape, out_dtype, message):
    op = Custom(copied, out_shape, out_dtype, "akg")
    with pytest.raises(polyop.PolyopError, match=message) as excinfo:
        op(X)
    assert "the kernel itself says it" in str(excinfo.value)


@pytest.mark.parametrize("rules", [(lambda x: (x, x), lambda x: (x, x)), (([3], [3]), None)])
def test_a_number_of_outputs_that_contradicts_the_kernel(rules):
    with pytest.raises(
        polyop.PolyopError, match="returns 1 tensor, and .* declare another number, but got 2"
    ):
        Custom(copied, *rules, "akg")


def test_right_rules_in_all_forms():
    for rules in (([3], np.float32), (lambda x: x, lambda x: x), ((3,), lambda x: x), (lambda x: x, None)):
        np.testing.assert_array_equal(Custom(copied, *rules, "akg")(X), X)


def test_a_gradient_that_nobody_gave():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    op = Custom(lambda x: x.copy(), lambda x: x, lambda x: x, "pyfunc")
    message = (
        r"has no gradient rule\n.*defined at .*test_custom_loops_errors.py:\d+\n.*give bprop=: a function"
    )
    out = op(torch.tensor(X, requires_grad=True))
    assert out.requires_grad
    with pytest.raises(polyop.PolyopError, match=message):
        out.sum().backward()
    with pytest.raises(polyop.PolyopError, match="has no gradient rule"):
        op.vjp(X)


def test_the_words_name_parameters_that_the_front_end_has():
    """Custom takes no gradient= and no batch=, operator() takes both."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    twice = polyop.operator("loops_errors::twice(Tensor x) -> Tensor", lambda x: x * 2, infer="x")
    for op, gradient, batch in (
        (Custom(lambda x: x * 2, lambda x: x, lambda x: x, "pyfunc"), "give bprop=: a function", False),
        (twice, r"give gradient= \(or bprop=\): a function", True),
    ):
        with pytest.raises(polyop.PolyopError, match=gradient):
            op.vjp(X)
        with pytest.warns(polyop.FallbackWarning, match="vmap runs one call per sample") as record:
            torch.vmap(op)(torch.ones(2, 3))
        assert ("batch=" in str(record[0].message)) == batch


def test_reading_before_writing_is_a_warning_and_starts_as_zeros():
    """MindSpore's own example does it."""
    op = Custom(squared_in_the_output, lambda x: x, lambda x: x, "akg")
    message = r"^y is read before it is written, so it starts as zeros: y\[i0\] = y"
    with pytest.warns(polyop.UninitialisedWarning, match=message) as record:
        assert op(X).tolist() == [0, 0, 0]
    assert (record[0].filename, record[0].lineno) == (__file__, 26)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert op(X).tolist() == [0, 0, 0]  # warned once
        assert Custom(copied, func_type="akg")(X).tolist() == [0, 1, 2]


def test_ranks_are_said_at_the_call():
    with pytest.raises(
        polyop.PolyopError, match=r"x has 1 dimension and needs as many indices, but got 2 in x\[i, 0\]"
    ):
        Custom(first_column, func_type="hybrid")(np.ones(2))
    with pytest.raises(
        polyop.PolyopError, match="the dtype of x must be one of bool, .* but got float8_e5m2fnuz"
    ):
        Custom(copied, func_type="hybrid")(X.astype(polyop.dtype("float8_e5m2fnuz").numpy))


def debugged_by_environment(function, monkeypatch):
    monkeypatch.setenv("POLYOP_LOOPS_DEBUG", "1")
    return Custom(function, func_type="hybrid")


def debugged_by_option(function, monkeypatch):
    return Custom(polyop.kernel(function, compile_attrs={"debug": True}), func_type="hybrid")


@pytest.mark.parametrize("debugged", [debugged_by_environment, debugged_by_option])
def test_debug_mode_names_line_index_and_size(debugged, monkeypatch):
    op = debugged(picked, monkeypatch)
    message = r"line 33: index {} is outside dimension 0 of x, which has size 3"
    for index in (3, -4):
        with pytest.raises(polyop.PolyopError, match=message.format(index)):
            op(X, np.array([0, index]))
    assert op(X, np.array([2, -1, -3])).tolist() == [2, 2, 0]  # as in Python, -1 is the last
    assert op(X, np.array([], np.int64)).shape == (0,)
    with pytest.raises(
        polyop.PolyopError, match="line 40: index 3 is outside dimension 0 of x, which has size 3"
    ):
        debugged(beyond, monkeypatch)(X)


def test_indices_are_checked_without_debug_mode_too():
    with pytest.raises(polyop.PolyopError, match="line 33: index 3 is outside dimension 0 of x"):
        Custom(picked, func_type="hybrid")(X, np.array([0, 3]))
    with pytest.raises(polyop.PolyopError, match="line 40: .*an index leaves dimension 0 of x"):
        Custom(beyond, func_type="hybrid")(X)


def test_debug_mode_on_pytorch(monkeypatch):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    op = debugged_by_environment(picked, monkeypatch)
    with pytest.raises(
        polyop.PolyopError, match="line 33: index 5 is outside dimension 0 of x, which has size 3"
    ):
        op(torch.tensor(X), torch.tensor([5]))
