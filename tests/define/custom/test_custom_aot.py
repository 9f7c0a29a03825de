"""MindSpore's own scenarios for aot kernels (A1 to A9) and construction errors (E1 to E5), on every host."""

import json

import numpy as np
import pytest

import polyop
from polyop import Custom, CustomRegOp, DataType

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
F32 = polyop.dtype("float32")


def as_numpy(array):
    return array


def as_torch(array):
    return torch.from_numpy(np.ascontiguousarray(array))


@pytest.fixture(params=[as_numpy, as_torch], ids=["numpy", "torch"])
def host(request):
    return request.param


def library(sources, tmp_path, name="add"):
    return polyop_build(sources / f"{name}.cc", tmp_path / f"{name}.so")


def polyop_build(source, output):
    from polyop.build import build

    return build([source], output=output)


def information(inputs=2, target="CPU", rows=True):
    info = CustomRegOp()
    for i in range(inputs):
        info.input(i, f"x{i}")
    info.output(0, "y")
    if rows:
        info.dtype_format(*[DataType.None_None] * (inputs + 1))
    return info.target(target)


def pair(rng=None):
    rng = rng or np.random.default_rng(0)
    return rng.random((4, 5), dtype=np.float32), rng.random((4, 5), dtype=np.float32)


def test_a1_prebuilt_library_with_information(sources, tmp_path, host):
    op = Custom(
        f"{library(sources, tmp_path)}:CustomAdd", ((4, 5),), (F32,), "aot", None, information().get_op_info()
    )
    x, y = pair()
    out = op(host(x), host(y))
    assert isinstance(out, tuple) and len(out) == 1
    np.testing.assert_allclose(out[0], x + y)


@pytest.mark.parametrize(
    "form", [lambda info: info, json.dumps, lambda info: [info], lambda info: ((json.dumps(info),),)]
)
def test_every_form_of_reg_info(sources, tmp_path, form):
    op = Custom(
        f"{library(sources, tmp_path)}:CustomAdd",
        (4, 5),
        F32,
        "aot",
        reg_info=form(information().get_op_info()),
    )
    x, y = pair()
    np.testing.assert_allclose(op(x, y), x + y)


def test_a2_source_with_attributes_and_a_workspace(sources, host):
    info = (
        information(rows=False)
        .attr("scale", "required", "float")
        .attr("paddings", "required", "listFloat", value=[2.0, 2.0])
    )
    info.dtype_format(*[DataType.None_None] * 3)
    op = Custom(
        f"{sources / 'add_with_attr.cc'}:AddWithAttr",
        lambda x, y, _: x,
        lambda x, y, _: x,
        "aot",
        reg_info=info.get_op_info(),
    )
    x, y = pair()
    np.testing.assert_allclose(op(host(x), host(y), 0.7), x + 2 * np.float32(0.7) * y + 4, rtol=1e-6)
    np.testing.assert_allclose(op(host(x), host(y), scale=0.5), x + y + 4, rtol=1e-6)


def test_the_three_routes_of_an_attribute_reach_the_kernel(sources):
    func = f"{sources / 'add_with_attr.cc'}:AddWithAttr"
    x, y = pair()
    expected = x + 2 * np.float32(0.5) * y + 4
    fixed = (
        Custom(func, lambda x, y: x, lambda x, y: x, "aot")
        .add_prim_attr("scale", 0.5)
        .add_prim_attr("paddings", [1, 3.0])
    )
    np.testing.assert_allclose(fixed(x, y), expected, rtol=1e-6)
    modern = polyop.operator(
        "aot::add_with_attr(Tensor x, Tensor y, float scale=0.5, float[] paddings=[4.0]) -> Tensor",
        func,
        infer="x",
    )
    np.testing.assert_allclose(modern(x, y), expected, rtol=1e-6)


def test_a4_shape_and_dtype_from_the_library(sources, host):
    op = Custom(f"{sources / 'add.cc'}:CustomAdd", None, None, "aot")
    x, y = pair()
    np.testing.assert_allclose(op(host(x), host(y)), x + y)
    np.testing.assert_allclose(op(host(x[0]), host(y[0])), x[0] + y[0])


def test_a4_infer_shape_handles_an_unknown_rank(sources):
    from polyop import _core

    kernel = polyop.source(sources / "add.cc", function="CustomAdd")
    shapes = _core.call_infer_shape(
        kernel._infer_shape, [([-2], "float32"), ([-2], "float32")], _core.make_extra({}), False
    )
    assert shapes == [[-2]]


def test_a6_gather(sources, host):
    op = Custom(f"{sources / 'kernels.c'}:gather", lambda x, i: i, lambda x, i: x, "aot")
    out = op(host(np.array([1, 4, 9, 16, 25], np.float32)), host(np.array([3, 2, 0, 1, 4])))
    assert np.asarray(out).tolist() == [16, 9, 1, 4, 25]


def test_a7_different_dtypes(sources, host):
    op = Custom(f"{sources / 'kernels.c'}:square_times", lambda x, y: x, lambda x, y: y, "aot")
    x, y = np.array([1.5, 2, 3], np.float32), np.array([2, 0.5, 1], np.float16)
    out = np.asarray(op(host(x), host(y)))
    assert out.dtype == np.float16 and out.tolist() == [4.5, 2, 9]


def squares(sources, bprop):
    return Custom(f"{sources / 'kernels.c'}:square", lambda x: x, lambda x: x, "aot", bprop)


def dx_of_two_squares(op, mode):
    x = np.array([1, 4, 9], np.float32)
    if mode == "numpy":
        once, back_once = op.vjp(x)
        _, back_twice = op.vjp(once)
        return back_once(back_twice(np.ones(3, np.float32))[0])[0]
    tensor = torch.tensor(x, requires_grad=True)
    net = (
        (lambda t: op(op(t)))
        if mode == "torch"
        else torch.compile(lambda t: op(op(t)), fullgraph=True, backend="aot_eager")
    )
    net(tensor).sum().backward()
    return tensor.grad.numpy()


@pytest.mark.parametrize("mode", ["numpy", "torch", "compiled"])
def test_a8_python_bprop(sources, mode):
    op = squares(sources, lambda x, out, dout: (2 * x * dout,))
    assert dx_of_two_squares(op, mode).tolist() == [4, 256, 2916]


@pytest.mark.parametrize("mode", ["numpy", "torch", "compiled"])
@pytest.mark.parametrize("inside", [False, True], ids=["built outside", "built inside"])
def test_a9_bprop_calls_another_operator(sources, mode, inside):
    def make():
        return Custom(
            f"{sources / 'kernels.c'}:square_grad", lambda x, out, dout: x, lambda x, out, dout: x, "aot"
        )

    if inside and mode == "compiled":
        pytest.skip(
            "not run: an operator cannot be defined while torch.compile traces, nor in MindSpore's graphs"
        )
    outside = make()
    op = squares(sources, lambda x, out, dout: ((make() if inside else outside)(x, out, dout),))
    assert dx_of_two_squares(op, mode).tolist() == [4, 256, 2916]


def test_several_outputs_inferred_in_cpp(sources, host):
    info = (
        CustomRegOp()
        .input(0, "x")
        .output(0, "value")
        .output(1, "where")
        .attr("keepdims", "required", "bool")
        .target("CPU")
    )
    op = Custom(f"{sources / 'two_outputs.cc'}:RowMax", None, None, "aot", reg_info=info.get_op_info())
    x = np.array([[1, 5, 2], [7, 0, 3]], np.float32)
    value, where = op(host(x), False)
    assert (np.asarray(value).tolist(), np.asarray(where).tolist()) == ([5, 7], [1, 0])
    assert op(host(x), True)[1].shape == (2, 1)


def test_e1_a_name_alone_constructs_and_says_at_the_call_what_is_missing():
    op = Custom("aclnnAddCustom", lambda x, _: x, lambda x, _: x, func_type="aot")
    with pytest.raises(NotImplementedError, match="aclnnAddCustom: aclnn operators need CANN"):
        op(np.zeros(2), np.zeros(2))


def test_e2_a_source_constructs_without_shapes(sources):
    assert Custom(f"{sources / 'add.cc'}:CustomAdd", None, None, func_type="aot").schema.name.startswith(
        "CustomAdd"
    )


@pytest.mark.parametrize(("func", "func_type", "error", "message"), [
    (None, "aot", TypeError, "'func' must be of type str"),
    (lambda x: x, "aot", TypeError, "information goes to reg_info"),
    ("no_colon", "aot", TypeError, "'func' should be like 'file_name:func_name'"),
    ("a:b:c", "aot", TypeError, "'func' should be like 'file_name:func_name'"),
    (3, "pyfunc", TypeError, "'func' must be of type function or str"),
    ("text", "pyfunc", TypeError, "'func' must be of type function"),
    (lambda x: x, "nonsense", ValueError, "'func_type' must be one of"),
    (lambda x: x, "tbe", ValueError, "the registration information must be set for tbe"),
    ("name", "aicpu", ValueError, "the registration information must be set for aicpu"),
    ("f.jl:M:f", "julia", NotImplementedError, "removed it after 2.7.0"),
])  # fmt: skip
def test_e3_e4_construction_errors(func, func_type, error, message):
    with pytest.raises(error, match=message) as excinfo:
        Custom(func, None, None, func_type=func_type)
    assert f"'func_type': {func_type}" in str(excinfo.value)


@pytest.mark.parametrize(
    ("func_type", "message"),
    [("tbe", "write an 'aot' kernel"), ("aicpu", "Ascend")],
)
def test_kinds_that_are_recognised_say_what_to_use_instead(func_type, message):
    with pytest.raises(NotImplementedError, match=message):
        Custom(
            lambda x: x,
            None,
            None,
            func_type=func_type,
            reg_info=information(1, target="Ascend").get_op_info(),
        )


def test_e5_a_library_outside_the_allowed_folders_is_refused(sources, tmp_path, monkeypatch):
    path = library(sources, tmp_path)
    (tmp_path / "allowed").mkdir()
    monkeypatch.setenv("MS_CUSTOM_AOT_WHITE_LIST", str(tmp_path / "allowed"))
    with pytest.raises(TypeError, match="the legal path for the file is"):
        Custom(f"{path}:CustomAdd", lambda x, _: x, lambda x, _: x, "aot")
    monkeypatch.setenv("MS_CUSTOM_AOT_WHITE_LIST", str(tmp_path))
    assert Custom(f"{path}:CustomAdd", lambda x, _: x, lambda x, _: x, "aot") is not None


def test_the_number_of_inputs_can_be_known_only_at_the_call(sources, host):
    op = Custom(f"{sources / 'add.cc'}:CustomAdd", (4, 5), F32, "aot")
    x, y = pair()
    np.testing.assert_allclose(op(host(x), host(y)), x + y)


def test_path_from_the_environment(sources, tmp_path, monkeypatch):
    monkeypatch.setenv("ADD_LIBRARY", str(library(sources, tmp_path)))
    op = Custom("ADD_LIBRARY:CustomAdd", lambda x, _: x, lambda x, _: x, "aot").add_prim_attr(
        "path_from_env", True
    )
    x, y = pair()
    np.testing.assert_allclose(op(x, y), x + y)


def test_primitive_target_runs_the_cpu_kernel(sources, host):
    op = Custom(f"{sources / 'add.cc'}:CustomAdd", lambda x, _: x, lambda x, _: x, "aot")
    assert op.add_prim_attr("primitive_target", "CPU") is op
    x, y = pair()
    np.testing.assert_allclose(op(host(x), host(y)), x + y)
    with pytest.raises(ValueError, match="the target must be one of"):
        op.add_prim_attr("primitive_target", "TPU")


def test_a_device_this_machine_lacks_is_named(sources):
    op = Custom(f"{sources / 'add.cc'}:CustomAdd", lambda x, _: x, lambda x, _: x, "aot").set_device("GPU")
    with pytest.raises(polyop.PolyopError, match="is bound to cuda, where NumPy arrays are on the CPU"):
        op(*pair())
