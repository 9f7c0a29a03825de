"""Calling aclnn operators: orders of arguments, dtypes, errors, registration, Custom."""

import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
import torch

import polyop
from polyop import Custom
from polyop.kernels.provider import ProviderKernel
from polyop.providers import aclnn
from polyop.providers.aclnn import evaluate, launch, loops, names, prototype, register

X = np.array([[1, -2], [3, 4]], np.float32)


@pytest.fixture(autouse=True)
def _forget():
    """Remove the operators that a test registered."""
    before = set(names())
    yield
    for name in set(names()) - before:
        aclnn.forget(name)


def out(dtype=np.float32, shape=(2, 2)):
    return np.zeros(shape, dtype)


def test_both_orders_of_arguments_and_optional_ones():
    eye = np.eye(2, dtype=np.float32)
    for arguments in ((X, eye, "out", 0), (X, eye, "out"), (X, eye, 0, "out")):
        result = out()
        launch("aclnnMm", [result if isinstance(a, str) else a for a in arguments])
        assert result.tolist() == X.tolist()
    for arguments in ((X, eye, 1), (X, eye)):
        result = out()
        launch("aclnnAdd", [*arguments, result])
        assert result.tolist() == (X + eye).tolist()
    result = out()
    launch("aclnnAddmm", [X, X, eye, result])
    assert result.tolist() == (2 * X).tolist()


def test_the_prefix_may_be_missing():
    result = out()
    launch("Neg", [X, result])
    assert result.tolist() == (-X).tolist()
    assert prototype("Neg") == prototype("aclnnNeg")


def test_a_dtype_is_a_name_or_mindspores_number():
    for dtype in ("int32", 34, np.int32, "torch.int32"):
        result = out(np.int32)
        launch("aclnnCast", [X, dtype, result])
        assert result.tolist() == X.tolist()


def test_an_output_of_another_dtype_gets_the_cast_result():
    result = out(np.int8)
    launch("Muls", [X, 1.5, result])
    assert result.tolist() == [[1, -3], [4, 6]]
    small = out(ml_dtypes.bfloat16)
    launch("Adds", [X, 0.001, 1, small])
    assert small.dtype == ml_dtypes.bfloat16
    assert small.astype(np.float32).tolist() == X.tolist()


def test_the_output_may_be_an_input_or_overlap_one():
    x = X.copy()
    launch("Permute", [x, [1, 0], x])
    assert x.tolist() == X.T.tolist()
    line = np.arange(6, dtype=np.float32)
    launch("Flip", [line[:5], [0], line[1:]])
    assert line.tolist() == [0, 4, 3, 2, 1, 0]
    pair = np.arange(4, dtype=np.float32)
    launch("SplitTensor", [pair, 2, 0, [pair[2:], pair[:2]]])
    assert pair.tolist() == [2, 3, 0, 1]


def test_inputs_are_read_only_to_the_function():
    register("aclnnWritesItsInput(Tensor x, Tensor(a!) out) -> ()", lambda x: x.fill(0))
    with pytest.raises(ValueError, match="read-only"):
        launch("aclnnWritesItsInput", [X, out()])


@pytest.mark.parametrize(("name", "arguments", "error", "message"), [
    ("aclnnMull", [X], NotImplementedError, "aclnnMull: aclnn operators need CANN.*\n.*aclnnMul, aclnnMuls.*register"),
    ("aclnnQqqqqqqq", [X], NotImplementedError, r"this has none\n  register it: polyop\.register_aclnn\(.*polyop\.register_aclnn_library\("),
    ("aclnnMul", [X, out()], TypeError, r"aclnnMul: takes 3 arguments, but got 2\n.*aclnnMul\(Tensor self, Tensor other"),
    ("aclnnMm", [X], TypeError, "aclnnMm: takes 4 or 3 arguments, but got 1"),
    ("aclnnMul", [X, 2, out()], TypeError, r"argument other: must be Tensor, but got 2 \(int\)\n  its prototype"),
    ("aclnnMul", [X, [X], out()], TypeError, r"argument other: must be Tensor, but got a list of float32\[2, 2\]\n"),
    ("aclnnMuls", [X, X, out()], TypeError, r"argument other: must be Scalar, but got float32\[2, 2\]"),
    ("aclnnCat", [[X, None], 0, out()], TypeError, r"argument tensors: must be Tensor\[\]"),
    ("aclnnCat", [X, 0, out()], TypeError, r"argument tensors: must be Tensor\[\], but got float32\[2, 2\]"),
    ("aclnnCast", [X, 3, out()], TypeError, "argument dtype: must be a dtype's name or its TypeId, but got 3"),
    ("aclnnCast", [X, "nothing", out()], TypeError, "argument dtype: must be a dtype's name"),
    ("aclnnCast", [X, "int32", out()], TypeError, r"argument out: must be int32, as dtype says, but got float32\[2, 2\]"),
    ("aclnnSoftmax", [X, 1.5, out()], TypeError, r"argument dim: must be int, but got 1.5 \(float\)"),
    ("aclnnMul", [X, X, out(shape=(2, 3))], ValueError,
     r"argument out: the result has shape \(2, 2\), but got an output of \(2, 3\)\n  its prototype"),
    ("aclnnSplitTensor", [X, 1, 0, [out(shape=(1, 2))]], ValueError, "argument out: the result has 2 tensors, but got 1"),
    ("aclnnSplitTensor", [X, 1, 0, [out(shape=(1, 2)), out(shape=(2, 2))]], ValueError,
     r"argument out\[1\]: the result has shape \(1, 2\), but got an output of \(2, 2\)"),
    ("aclnnMul", [X, np.zeros((3, 2), np.float32), out()], ValueError,
     r"aclnnMul: cannot take these arguments: operands could not be broadcast.*float32\[2, 2\], float32\[3, 2\]"),
    ("aclnnIndexSelect", [X, 0, np.array([5]), out()], ValueError, "aclnnIndexSelect: cannot take these.*out of bounds"),
    ("aclnnSoftmax", [X, 2, out()], ValueError, "aclnnSoftmax: cannot take these arguments: axis 2 is out of bounds"),
    ("aclnnMul", [X, X, np.broadcast_to(np.float32(0), (2, 2))], ValueError, "argument out: is written.*a read-only array"),
    ("aclnnMul", [X, X, torch.zeros(2, 2)], TypeError, "argument out: must be a NumPy array here, but got Tensor"),
])  # fmt: skip
def test_errors_of_a_call(name, arguments, error, message):
    with pytest.raises(error, match=message):
        launch(name, arguments)


def test_names():
    assert len(names()) > 80
    assert names() == sorted(set(names()))
    for name in names():
        schema = prototype(name)
        assert schema.name == name
        assert schema.mutates
    assert {"aclnnMul", "aclnnInplaceAdd", "aclnnReduceSum"} <= set(names())


def test_loops_name_what_the_core_can_call():
    assert loops()["aclnnMul"] == "multiply"
    assert "aclnnMuls" not in loops()
    result = aclnn.core_loops()
    assert result["aclnnMul"] == (np.multiply, False)
    assert result["aclnnAdd"] == (np.add, True)
    for name, (ufunc, factor) in result.items():
        assert len(prototype(name).arguments) == ufunc.nin + ufunc.nout + factor, name


def test_evaluate_writes_nothing_and_casts_to_a_given_output():
    import array_api_compat.torch as xp

    x, result = torch.tensor([1.0, 2.0], requires_grad=True), torch.zeros(2, dtype=torch.float64)
    (value,) = evaluate("aclnnMuls", [x, 3, result], xp)
    assert (value.dtype, value.tolist(), result.tolist()) == (torch.float64, [3, 6], [0, 0])
    for arguments in ([x, 3], [x, 3, None]):
        assert evaluate("aclnnMuls", arguments, xp)[0].dtype == torch.float32
    value.sum().backward()
    assert x.grad.tolist() == [3, 3]
    with pytest.raises(
        ValueError, match=r"argument out: the result has shape \(2,\), but got an output of \(3,\)"
    ):
        evaluate("aclnnNeg", [x, torch.zeros(3)], xp)


def test_an_own_operator():
    for factor in (3, 4):  # running the same line again replaces it
        register("aclnnTriple(Tensor x, Tensor(a!) y) -> ()", lambda x, k=factor: k * x)
    result = out()
    launch("Triple", [X, result])
    assert result.tolist() == (4 * X).tolist()
    register(
        "aclnnTwoOut(Tensor x, int k, Tensor(a!) y, Tensor(b!) z) -> ()", lambda xp, x, k: (x + k, xp.sum(x))
    )
    total = out(np.float64, ())
    launch("TwoOut", [X, 1, result, total])
    assert (result.tolist(), total.item()) == ((X + 1).tolist(), 6)
    register("aclnnGrow(Tensor(a!) selfRef, Scalar by) -> ()", lambda x, by: x + by)
    launch("Grow", [result, 1])
    assert result.tolist() == (X + 2).tolist()
    register("aclnnUfunc(Tensor x, Tensor y, Tensor(a!) out) -> ()", np.hypot, loops="hypot")
    launch("Ufunc", [X, X, result])
    np.testing.assert_allclose(result, np.hypot(X, X))
    assert loops()["aclnnUfunc"] == "hypot"


@pytest.mark.parametrize(("text", "function", "error", "message"), [
    ("aclnnMul(Tensor x, Tensor(a!) y) -> ()", lambda x: x, ValueError,
     "aclnnMul: the name is taken by the one registered at polyop's own operators\n.*test_aclnn_calls.py"),
    ("aclnnBroken(Tensor x", lambda x: x, ValueError, "needs ',' or '\\)' here"),
    ("mul(Tensor x, Tensor(a!) y) -> ()", lambda x: x, ValueError, "mul: the name of a prototype must be aclnn and"),
    ("ns::aclnnN(Tensor x, Tensor(a!) y) -> ()", lambda x: x, ValueError, "ns::aclnnN: the name of a prototype"),
    ("aclnnPure(Tensor x) -> Tensor", lambda x: x, ValueError, "aclnnPure: an aclnn operator writes its outputs"),
    ("aclnnFew(Tensor x, int k, Tensor(a!) y) -> ()", lambda x: x, TypeError,
     r"aclnnFew: the function must take the 2 inputs \(x, k\) of aclnnFew\(.*test_aclnn_calls.py"),
    ("aclnnNone(Tensor x, Tensor(a!) y) -> ()", None, TypeError, "register: 'function' must be a function of arrays"),
])  # fmt: skip
def test_errors_of_registration(text, function, error, message):
    with pytest.raises(error, match=f"(?s){message}"):
        register(text, function)


CELL = """
from polyop import register_aclnn
register_aclnn("aclnnCell(Tensor x, Tensor(a!) y) -> ()", {function})
"""


def test_a_cell_or_module_that_is_run_again_replaces():
    notebook = {"__name__": "__main__"}
    out = np.empty(2)
    cells = [("lambda x: 2 * x", 2), ("np.negative, loops='negative'", -1), ("lambda x: 3 * x", 3)]
    exec("import numpy as np", notebook)
    for number, (function, factor) in enumerate(cells):
        exec(compile(CELL.format(function=function), f"<cell {number}>", "exec"), notebook)
        launch("aclnnCell", [np.ones(2), out])
        assert out.tolist() == [factor] * 2
    other = {"__name__": "another module", "np": np}
    with pytest.raises(ValueError, match=r"aclnnCell: the name is taken by the one registered at <cell 2>:3"):
        exec(compile(CELL.format(function="np.negative"), "<another>", "exec"), other)


def test_a_name_is_registered_once_and_the_ufunc_must_exist():
    register("aclnnOnce(Tensor x, Tensor(a!) y) -> ()", lambda x: x)
    with pytest.raises(
        ValueError, match=r"(?s)aclnnOnce: the name is taken by the one registered at .*:\d+.*defined at"
    ):
        register("aclnnOnce(Tensor x, Tensor(a!) y) -> ()", lambda x: -x)
    with pytest.raises(ValueError, match="loops must name a ufunc of NumPy, but got 'nothing'"):
        register("aclnnLoop(Tensor x, Tensor(a!) y) -> ()", lambda x: x, loops="nothing")


def test_forget():
    register("aclnnShort(Tensor x, Tensor(a!) y) -> ()", lambda x: x)
    aclnn.forget("Short")
    assert "aclnnShort" not in names()
    with pytest.raises(NotImplementedError, match="aclnnMul: was not registered\n  registered are none"):
        aclnn.forget("Mul")


def test_errors_of_an_own_function():
    register("aclnnRaises(Tensor x, Tensor(a!) y) -> ()", lambda x: x[9])
    with pytest.raises(IndexError, match="out of bounds"):
        launch("Raises", [X, out()])
    register("aclnnTwo(Tensor x, Tensor(a!) y) -> ()", lambda x: (x, x))
    with pytest.raises(
        RuntimeError, match=r"aclnnTwo: must return 1 values, one for each written argument, but got 2"
    ):
        launch("Two", [X, out()])


def same_shape(*shapes):
    return shapes[0]


@pytest.mark.parametrize("make", [np.array, torch.tensor], ids=["numpy", "torch"])
def test_custom_by_name(make):
    """A network's x + y - z, of two operators by name, one without the prefix."""
    add = Custom("aclnnAdd", lambda x, y: x, lambda x, y: x, "aot")
    sub = Custom("Sub", lambda x, y: x, lambda x, y: x, "aot")
    x, y, z = (make(np.arange(6, dtype=np.float16).reshape(2, 3) + k) for k in (1, 2, 3))
    result = sub(add(x, y), z)
    assert type(result) is type(x)
    assert result.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_custom_with_a_gradient():
    mul = Custom(
        "Mul", lambda x, y: x, lambda x, y: x, "aot", bprop=lambda x, y, o, g: (mul(g, y), mul(g, x))
    )
    x, y = torch.tensor([2.0, 3.0], requires_grad=True), torch.tensor([5.0, 7.0], requires_grad=True)
    mul(x, y).backward(torch.ones(2))
    assert (x.grad.tolist(), y.grad.tolist()) == ([5, 7], [2, 3])
    product, pull = mul.vjp(np.float32([2, 3]), np.float32([5, 7]))
    assert product.tolist() == [10, 21]
    assert [g.tolist() for g in pull(np.float32([1, 1]))] == [[5, 7], [2, 3]]


def test_custom_under_compile():
    double = Custom("Muls", lambda x: x, lambda x: x, "aot").add_prim_attr("other", 2)
    compiled = torch.compile(lambda x: double(x) + 1, fullgraph=True, backend="eager")
    assert compiled(torch.tensor([1.0, 2.0])).tolist() == [3, 5]


def test_custom_attributes_go_by_name():
    op = Custom("aclnnArgMin", lambda x: x[:1], lambda x: "int64", "aot")
    op.add_prim_attr("dim", -1).add_prim_attr("keep_dim", False)
    assert op(X).tolist() == [1, 0]
    op = Custom("Add", lambda x, y: x, lambda x, y: x, "aot").add_prim_attr("alpha", 10)
    assert op(X, X).tolist() == (11 * X).tolist()
    info = (polyop.CustomRegOp("aclnnReduceSum").input(0, "x").output(0, "y").attr("axis", "required", "listInt")
            .attr("keepDims", "required", "bool").attr("dtype", "required", "str").target("CPU").get_op_info())  # fmt: skip
    named = Custom("aclnnReduceSum", lambda x, a, k, d: [2], lambda x, a, k, d: x, "aot", reg_info=info)
    with pytest.raises(
        ValueError, match="aclnnReduceSum: has no attribute 'axis'; its attributes are dims, keepDims, dtype"
    ):
        named(X, [0], False, "float32")


def test_custom_attributes_without_names_go_in_order():
    op = Custom("Cast", lambda x, d: x, lambda x, d: "float32", "aot")
    assert op(X.astype(np.float16), 43).dtype == np.float32
    total = Custom("ReduceSum", lambda *a: [2], lambda x, *a: x, "aot")
    assert total(X, [0], False, "float32").tolist() == [4, 2]


def test_custom_with_lists_and_several_outputs():
    cat = Custom("aclnnCat", lambda x, d: [4, 2], lambda x, d: x[0], "aot")
    assert cat((X, X), 0).tolist() == np.concatenate([X, X]).tolist()
    split = Custom("SplitTensor", lambda x, *a: ([1, 2], [1, 2]), lambda x, *a: (x, x), "aot")
    assert [p.tolist() for p in split(X, 1, 0)] == [[[1, -2]], [[3, 4]]]
    norm = Custom("LayerNorm", lambda x: x, lambda x: x, "aot")
    norm.add_prim_attr("normalizedShape", [2]).add_prim_attr("eps", 0.0)
    np.testing.assert_allclose(norm(X), [[1, -1], [-1, 1]], rtol=1e-5)


@pytest.mark.parametrize(("name", "attributes", "inputs", "error", "message"), [
    ("aclnnNothing", {}, [X], NotImplementedError, "aclnnNothing: aclnn operators need CANN.*register"),
    ("aclnnNeg", {}, [X, X], TypeError, "aclnnNeg: takes 1 tensors, but got 2"),
    ("aclnnLayerNorm", {"normalizedShape": [2], "eps": 0.1}, [X] * 2, TypeError, "aclnnLayerNorm: takes 3 tensors, or 1, but got 2"),
    ("aclnnSoftmax", {}, [X], TypeError, r"aclnnSoftmax: needs the attribute 'dim'\n  add_prim_attr\('dim', value\)"),
    ("aclnnSoftmax", {"dim": "x"}, [X], TypeError, "aclnnSoftmax: argument dim: must be int, but got 'x'"),
    ("aclnnSoftmax", {"dim": 0, "axis": 0}, [X], ValueError, "has no attribute 'axis'; its attributes are dim"),
    ("aclnnMaxDim", {"dim": 0, "keepdim": True}, [X], TypeError, "aclnnMaxDim: writes 2 outputs, but got 1"),
    ("aclnnPermute", {"dims": [0]}, [X], ValueError, "aclnnPermute: cannot take these arguments: axes don't match"),
])  # fmt: skip
def test_errors_of_custom(name, attributes, inputs, error, message):
    op = Custom(name, same_shape, same_shape, "aot")
    for key, value in attributes.items():
        op.add_prim_attr(key, value)
    with pytest.raises(error, match=f"(?s){message}"):
        op(*inputs)


def test_custom_that_would_write_an_input():
    norm = Custom("BatchNorm", lambda x, *r: (x, [2], [2]), lambda x, *r: (x, x, x), "aot")
    norm.add_prim_attr("training", False).add_prim_attr("momentum", 0.1).add_prim_attr("eps", 0.0)
    one = np.ones(2, np.float32)
    y, mean, inverse = norm(X, one, one, 0 * one, 4 * one)
    assert (y.tolist(), mean.tolist(), inverse.tolist()) == ((X / 2 + 1).tolist(), [0, 0], [0.5, 0.5])
    norm.add_prim_attr("training", True)
    with pytest.raises(
        ValueError, match="aclnnBatchNorm: argument runningMean: is written, and the operator"
    ):
        norm(X, one, one, one, one)
    assert one.tolist() == [1, 1]


def test_a_schema_that_declares_written_arguments():
    grow = polyop.operator(
        "aclnn_tests::grow(Tensor(a!) x, Tensor y) -> ()", ProviderKernel("InplaceAdd"), infer=lambda x, y: ()
    )
    x = X.copy()
    grow(x, X)
    assert x.tolist() == (2 * X).tolist()
    tensor = torch.tensor(X)
    grow(tensor, torch.tensor(X))
    assert tensor.tolist() == (2 * X).tolist()


def test_custom_with_too_many_attributes():
    op = Custom("Neg", same_shape, same_shape, "aot")
    with pytest.raises(TypeError, match="aclnnNeg: takes 0 attributes, but got 1"):
        op(X, 3)


def test_the_provider_is_imported_at_the_first_call():
    code = "import sys, polyop; polyop.Custom('Mul', lambda x, y: x, lambda x, y: x, 'aot'); print('polyop.providers.aclnn' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
