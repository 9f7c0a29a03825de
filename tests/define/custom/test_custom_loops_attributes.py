"""Attributes of loop kernels: registered under the parameters' names, by position and by keyword."""

import numpy as np
import pytest

import polyop
from polyop import Custom, CustomRegOp, DataType

# ruff: noqa: F821 - the words of the language

X = np.arange(3, dtype=np.float32)


def scale():
    """Return a new function: information is stored for each function."""

    def scale(x, alpha, n=2):
        y = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            y[i] = x[i] * alpha + n
        return y

    return scale


def info(*attributes, tensors=True):
    builder = CustomRegOp()
    if tensors:
        builder.input(0, "data").output(0, "y").dtype_format(DataType.F32_Default, DataType.F32_Default)
    for name, kind, more in attributes:
        builder.attr(name, "required", kind, **more)
    return builder.target("CPU").get_op_info()


ALPHA = ("alpha", "float", {})
N = ("n", "int", {"default_value": "2"})


def test_by_position_by_keyword_and_by_default():
    op = Custom(scale(), func_type="hybrid", reg_info=info(ALPHA, N))
    assert str(op.schema).endswith("(Tensor data, float alpha, int n=2) -> Tensor")
    np.testing.assert_array_equal(op(X, 3.0, 5), X * 3 + 5)
    np.testing.assert_array_equal(op(X, 3.0), X * 3 + 2)
    np.testing.assert_array_equal(op(X, alpha=3.0, n=1), X * 3 + 1)
    np.testing.assert_array_equal(op(X, n=1, alpha=3), X * 3 + 1)  # an int where a float is due
    np.testing.assert_array_equal(op(data=X, alpha=0.5), X / 2 + 2)


def test_the_order_is_that_of_the_information():
    op = Custom(scale(), func_type="akg", reg_info=info(N, ALPHA))
    np.testing.assert_array_equal(op(X, 5, 3.0), X * 3 + 5)


def test_information_of_attributes_alone():
    """The tensors are then those of the function, under its names."""
    op = Custom(scale(), func_type="hybrid", reg_info=info(ALPHA, tensors=False))
    assert str(op.schema).endswith("(Tensor x, float alpha) -> Tensor")
    np.testing.assert_array_equal(op(X.astype(np.float64), 3.0), X * 3 + 2)
    np.testing.assert_array_equal(op(x=X, alpha=3.0), X * 3 + 2)


def test_a_parameter_with_a_default_that_nobody_registers():
    op = Custom(scale(), func_type="hybrid", reg_info=info(ALPHA))
    np.testing.assert_array_equal(op(X, 3.0), X * 3 + 2)
    np.testing.assert_array_equal(op.add_prim_attr("n", 7)(X, 3.0), X * 3 + 7)


def test_the_default_is_the_functions_own_where_the_information_has_none():
    op = Custom(scale(), func_type="hybrid", reg_info=info(ALPHA, ("n", "int", {})))
    np.testing.assert_array_equal(op(X, 3.0), X * 3 + 2)


def test_a_value_in_the_information_is_no_argument():
    op = Custom(scale(), func_type="hybrid", reg_info=info(("alpha", "float", {"value": 4.0})))
    np.testing.assert_array_equal(op(X), X * 4 + 2)


def test_from_the_decorator_and_beside_the_python_function():
    function = polyop.kernel(scale(), reg_info=info(ALPHA, N))
    np.testing.assert_array_equal(function.python(X, 2.0), X * 2 + 2)
    np.testing.assert_array_equal(Custom(function, func_type="hybrid")(X, 2.0), X * 2 + 2)
    registered = polyop.custom_info_register(info(ALPHA, N))(scale())
    np.testing.assert_array_equal(Custom(registered, func_type="hybrid")(X, 2.0), X * 2 + 2)


def test_attributes_with_a_gradient_on_pytorch():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")

    def bprop(x, alpha, n, out, dout):
        return dout * alpha, None, None

    op = Custom(scale(), func_type="hybrid", bprop=bprop, reg_info=info(ALPHA, N))
    leaf = torch.tensor(X, requires_grad=True)
    op(leaf, 3.0).sum().backward()
    assert leaf.grad.tolist() == [3, 3, 3]
    compiled = torch.compile(lambda t, n: op(t, 3.0, n), fullgraph=True, backend="aot_eager")
    assert [compiled(torch.tensor(X), n).tolist() for n in (1, 4)] == [[1, 4, 7], [4, 7, 10]]


@pytest.mark.parametrize(
    ("kind", "value"), [("int", 3), ("float", 3), ("float", np.float32(3)), ("bool", True), ("int", -2)]
)
def test_types_of_attributes(kind, value):
    op = Custom(scale(), func_type="hybrid", reg_info=info(("alpha", kind, {})))
    np.testing.assert_array_equal(op(X, value), X * np.float32(value) + 2)


UNREGISTERED = r"must be set for hybrid kernels with attributes, but got the attributes \['alpha'\]"
HINT = r"[\s\S]*alpha is never indexed, so it must be a number: index it, remove it, or register it"
NAMES = r"must be registered under the names of its parameters \['x', 'alpha', 'n'\], but got "
WRONG_INFORMATION = [  # information, message
    (None, UNREGISTERED + HINT + r""":\s*reg_info=CustomRegOp\(\).attr\("alpha", "required", "float"\)"""),
    (info(("beta", "float", {})), NAMES + r"\['beta'\]; \['alpha'\] are not"),
    (info(N), NAMES + r"\['n'\]; \['alpha'\] are not" + HINT),
    (info(ALPHA, ("gamma", "int", {})), NAMES + r"\['alpha', 'gamma'\]"),
    (info(ALPHA, ("x", "float", {}), tensors=False), "an attribute is a number, and the function uses this one as a tensor, but got x"),
    (info(("alpha", "listFloat", {})), "the attribute alpha of a loop kernel must be an int, a float or a bool, but got listFloat"),
    (info(("alpha", "str", {})), "must be an int, a float or a bool, but got str"),
]  # fmt: skip


@pytest.mark.parametrize(("reg_info", "message"), WRONG_INFORMATION)
def test_what_is_registered_wrongly_is_said_at_once(reg_info, message):
    with pytest.raises(polyop.PolyopError, match=message) as excinfo:
        Custom(scale(), func_type="hybrid", reg_info=reg_info)
    assert "test_custom_loops_attributes.py:" in str(excinfo.value)


CALLS = [  # arguments, keywords, message
    ((), {}, r"needs argument 'alpha' \(Tensor data, float alpha, int n=2\) -> Tensor, but got 1 argument"),
    ((3.0,), {"beta": 1}, "has no argument 'beta'"),
    ((3.0, 2.5), {}, r"argument n: must be int, but got 2.5 \(float\)"),
    (("a",), {}, r"argument alpha: must be float, but got 'a' \(str\)"),
    ((3.0, 1, 2), {}, "takes 3 positional arguments"),
]


@pytest.mark.parametrize(("args", "kwargs", "message"), CALLS)
def test_what_is_passed_wrongly(args, kwargs, message):
    op = Custom(scale(), func_type="hybrid", reg_info=info(ALPHA, N))
    with pytest.raises(polyop.PolyopError, match=message):
        op(X, *args, **kwargs)


def test_dtype_rows_are_kept():
    op = Custom(scale(), func_type="hybrid", reg_info=info(ALPHA))
    with pytest.raises(polyop.PolyopError, match="input 0 'data' must be float32, and is float64"):
        op(X.astype(np.float64), 3.0)


def test_numbers_of_tensors_must_agree():
    two = CustomRegOp().input(0, "x").input(1, "y").output(0, "z").attr("alpha", "required", "float")
    with pytest.raises(
        polyop.PolyopError, match="has 2 inputs, and the function must have as many, but got 1"
    ):
        Custom(scale(), func_type="hybrid", reg_info=two.target("CPU").get_op_info())
    two = CustomRegOp().input(0, "x").output(0, "y").output(1, "z").attr("alpha", "required", "float")
    with pytest.raises(
        polyop.PolyopError, match="returns 1 tensor, and .* declare another number, but got 2"
    ):
        Custom(scale(), func_type="hybrid", reg_info=two.target("CPU").get_op_info())
