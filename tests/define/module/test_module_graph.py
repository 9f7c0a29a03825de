"""Operators of graph mode (G1 to G11), in rehearsal, on NumPy and PyTorch."""

import pathlib
import subprocess
import sys
import warnings

import numpy as np
import pytest

from polyop.core.errors import (
    ArgumentValueError,
    FallbackWarning,
    GradientError,
    InferError,
    KernelError,
    LibraryError,
)
from polyop.define.module.builder import CustomOpBuilder
from polyop.define.module.graph import GraphOnly

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("yaml", reason="PyYAML is not installed")
SOURCES = pathlib.Path(__file__).parents[2] / "sources"
X, Y = np.array([1, 2, 3], np.float16), np.array([4, 5, 6], np.float16)


def paths(*names):
    return tuple(str(SOURCES / f"graph_{name}") for name in names)


def build(name, sources, **options):
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.setenv("POLYOP_ASCEND", "rehearse")
        warnings.simplefilter("ignore", FallbackWarning)  # that this is a rehearsal, once for each process
        return CustomOpBuilder(name, paths(*sources), backend="Ascend", **options).load()


@pytest.fixture(scope="session")
def ops():
    return build(
        "graph_ops",
        ("add.cpp", "norm.cpp", "loop.cpp", "module.cpp"),
        op_def=paths("add.yaml", "norm.yaml", "loop.yml"),
        op_doc=paths("add_doc.yaml")[0],
    )


@pytest.fixture(params=[np.asarray, torch.from_numpy], ids=["numpy", "torch"])
def host(request):
    return request.param


def compiled(function):
    return torch.compile(function, fullgraph=True, backend="aot_eager")


@pytest.mark.slow
def test_g1_g2_an_operator_with_its_text(ops, host):
    np.testing.assert_array_equal(np.asarray(ops.add4(host(X), host(Y), 1)), X + Y)
    assert ops.add4.__doc__.startswith("Adds one tensor to another, scaled.\n\nBoth are broadcast.")
    assert "Args:\n    input: the first tensor." in ops.add4.__doc__


def test_g3_an_operator_without_a_text(ops, host):
    assert ops.add_three.__doc__.startswith("The operator graph_ops::add_three(Tensor input")
    np.testing.assert_array_equal(np.asarray(ops.add_three(host(X), host(Y), alpha=2.5)), X + 2.5 * Y)


@pytest.mark.slow
def test_g4_the_default_in_a_graph(ops):
    out = compiled(lambda x, y: ops.add4(x, y))(torch.from_numpy(X), torch.from_numpy(Y))
    np.testing.assert_array_equal(out.numpy(), X + Y)


def test_g5_one_after_the_other(ops, host):
    def chain(x, y):
        return ops.add_three(ops.add4(x, y), y)

    np.testing.assert_array_equal(np.asarray(chain(host(X), host(Y))), X + 2 * Y)
    out = compiled(chain)(torch.from_numpy(X), torch.from_numpy(Y))
    np.testing.assert_array_equal(out.numpy(), X + 2 * Y)


@pytest.mark.slow
def test_g6_a_package_of_the_library_alone(tmp_path):
    sources = [tmp_path / path.name for path in map(pathlib.Path, paths("add.cpp", "module.cpp", "add.yaml"))]
    for path in sources:
        path.write_bytes((SOURCES / path.name).read_bytes())
    *code, op_def = map(str, sources)
    CustomOpBuilder("my_package", code, backend="CPU", op_def=op_def, build_dir=str(tmp_path / "out")).build()
    for path in sources:
        path.unlink()
    script = (
        "import numpy as np\n"
        "from my_package_auto_generate.gen_ops_def import add4\n"
        "from my_package_auto_generate.gen_ops_prim import AddThree\n"
        "x, y = np.float32([1, 2]), np.float32([3, 4])\n"
        "print(add4(x, y), AddThree(2)(x, y))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path / "out", capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.returncode) == ("[4. 6.] [ 7. 10.]\n", 0), done.stderr


def batch_norm(x, mean, variance):
    sizes = (1, -1, 1, 1)
    return (x - mean.reshape(sizes)) / np.sqrt(variance.reshape(sizes) + np.float64(np.float32(1e-5)))


def test_g10_batch_norm(ops, host):
    x = np.random.default_rng(0).random((2, 3, 4, 4), np.float32)
    mean, variance = np.float32([0.1, 0.2, 0.3]), np.float32([1, 2, 4])
    out = ops.batch_norm(host(x), None, None, host(mean), host(variance))
    assert [tuple(one.shape) for one in out] == [(2, 3, 4, 4), (3,), (3,)]
    np.testing.assert_allclose(np.asarray(out[0]), batch_norm(x, mean, variance), rtol=1e-5, atol=1e-6)


def test_g10_batch_norm_in_a_graph(ops):
    x, mean, variance = np.ones((2, 3, 4, 4), np.float32) * 3, np.zeros(3, np.float32), np.ones(3, np.float32)
    out = compiled(lambda x, *statistics: ops.batch_norm(x, None, None, *statistics)[0])(
        *map(torch.from_numpy, (x, mean, variance))
    )
    np.testing.assert_allclose(out.numpy(), batch_norm(x, mean, variance), rtol=1e-6)


def test_g11_an_argument_is_written(ops, host):
    x = host(X.copy())
    assert ops.inplace_add(x, host(Y)) is x
    np.testing.assert_array_equal(np.asarray(x), X + Y)
    assert (
        str(ops.inplace_add.schema) == "graph_ops::inplace_add(Tensor(a!) input, Tensor other) -> Tensor(a!)"
    )


def test_g11_an_argument_is_written_in_a_graph(ops):
    def step(x, y):
        doubled = x * 2
        ops.inplace_add(doubled, y)
        ops.inplace_add(x, y)
        return doubled + x

    x = torch.from_numpy(X.copy())
    out = compiled(step)(x, torch.from_numpy(Y))
    np.testing.assert_array_equal(x.numpy(), X + Y)
    np.testing.assert_array_equal(out.numpy(), X * 2 + Y + X + Y)


def test_g11_a_view_is_written_where_it_lies(ops):
    whole = np.zeros((3, 2), np.float32)
    ops.inplace_add(whole.T, np.arange(6, dtype=np.float32).reshape(2, 3))
    np.testing.assert_array_equal(whole, [[0, 3], [1, 4], [2, 5]])


def test_a_definition_in_the_source(ops, host):
    assert ops.add2.schema.signature == "(Tensor input, Tensor other, Scalar alpha) -> Tensor"
    np.testing.assert_array_equal(np.asarray(ops.add2(host(X), host(Y), 2)), X + 2 * Y)


def test_a_kernel_with_a_loop_and_a_workspace(ops, host):
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(np.asarray(ops.rows(host(x), (2, 3))), [1, 12])
    np.testing.assert_array_equal(np.asarray(ops.rows(host(x.copy()).T, [1, 0, 2], scale=2)), [0, 0, 14])


@pytest.mark.slow(1)
def test_a_list_of_tensors(ops, host):
    x = np.arange(4, dtype=np.float32)
    total, count = ops.total([host(x), host(2 * x), host(x[::-1].copy())])
    np.testing.assert_array_equal(np.asarray(total), 3 * x + x[::-1])
    assert int(count) == 4


def test_numbers_and_dtypes_are_unified(ops, host):
    whole, real = np.int32([1, 2]), np.float32([0.5, 0.25])
    mixed = ops.Custom_mix(host(whole), host(real))
    np.testing.assert_array_equal(np.asarray(mixed), [1.5, 2.25])
    assert "float32" in str(mixed.dtype)
    assert "int64" in str(ops.Custom_mix(host(whole), 2).dtype)
    np.testing.assert_array_equal(np.asarray(ops.Custom_mix(host(real), 2)), real + 2)
    halves = ops.Custom_mix(torch.ones(2, dtype=torch.bfloat16), torch.ones(2, dtype=torch.float16))
    assert halves.dtype == torch.float32
    unsigned = ops.Custom_mix(host(np.uint8([255])), host(np.int8([-1])))
    assert ("int16" in str(unsigned.dtype), int(unsigned[0])) == (True, 254)
    with pytest.raises(KernelError, match="uint64 and a signed integer have no dtype in common"):
        ops.Custom_mix(host(np.uint64([1])), host(np.int8([1])))


def test_a_number_for_a_tensor_in_a_graph(ops):
    out = compiled(lambda x: ops.Custom_mix(x, 1.5))(torch.tensor([1.0, 2.0]))
    assert out.tolist() == [2.5, 3.5]


def test_shapes_that_depend_on_data(ops, host):
    np.testing.assert_array_equal(np.asarray(ops.first(host(np.arange(5.0)), host(np.array(3)))), [0, 1, 2])
    with pytest.raises(Exception, match=r"(?s)the data of a tensor was requested.*load\(infer="):
        compiled(ops.first)(torch.arange(5.0), torch.tensor(3))


@pytest.mark.slow(4)
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda ops, x: ops.rows(x, (2,)), r"graph_ops::rows.*ValueError: rows needs 2 lengths, not 1"),
        (lambda ops, x: ops.rows(x, (2, 3), mode="max"), "rows: its kernel refused the arguments"),
        (lambda ops, x: ops.rows(x, (2, 9)), r"rows: Launch\(\) returned false"),
        (
            lambda ops, x: ops.add4(x, x[0, :2]),
            r"For 'add4', input1 of shape \[2, 3\] and input2 of shape \[2\]",
        ),
        (
            lambda ops, x: ops.add_three(x, x.astype("f8")),
            "For 'add3', the dtypes differ: Float32 and Float64",
        ),
        (lambda ops, x: ops.add4(x.astype("i4"), 2, 1.5), "alpha is a float and the tensors are integers"),
        (lambda ops, x: ops.add4(x, x, True), "alpha must be a float or an int, but has the TypeId 30"),
    ],
)
def test_what_infer_and_kernel_refuse(ops, call, message):
    with pytest.raises(KernelError, match=f"(?s){message}"):
        call(ops, np.arange(6, dtype=np.float32).reshape(2, 3))


def test_there_is_no_gradient(ops):
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(GradientError, match="graph_ops::add4.*the gradient of output 0 is not known"):
        ops.add4(x, x).sum().backward()
    with pytest.raises(
        GradientError, match="A leaf tensor that need grad is being used in an inplace operator"
    ):
        ops.inplace_add(x, x)


def test_operators_are_batched(ops):
    x = torch.arange(6.0).reshape(2, 3)
    with pytest.warns(FallbackWarning, match="graph_ops::add4: vmap runs one call per sample"):
        out = torch.vmap(lambda row: ops.add4(row, row))(x)
    assert torch.equal(out, 2 * x)


@pytest.fixture(params=[True, False], ids=["graph", "pynative"])
def mode(request):
    return request.param


def test_modes(ops, mode):
    """G7 to G9. A module that is not loaded by a MindSpore-style script has no modes."""
    module = ops.in_mode(lambda: mode)
    assert module.has_modes
    assert not ops.has_modes
    x = np.float32([[1, -2]])
    np.testing.assert_array_equal(module.mix(x, x), 2 * x)  # registered for both
    assert "nothing" not in dir(module)
    with pytest.raises(AttributeError, match="'nothing' is neither in func_module nor in so_module"):
        _ = module.nothing
    if mode:
        np.testing.assert_array_equal(module.add4(x, x), 2 * x)
        rule = "does not support GRAPH mode. Please register it for GRAPH mode or switch to PYNATIVE mode"
        with pytest.raises(AttributeError, match=f"'npu_abs_reduce_sum' {rule}"):
            _ = module.npu_abs_reduce_sum
    else:
        np.testing.assert_array_equal(module.npu_abs_reduce_sum(x, (1,), True), [[3]])
        assert isinstance(module.add4, GraphOnly)
        with pytest.raises(RuntimeError, match="graph_ops.add4 does not support PyNative mode"):
            module.add4(x, x)


class ScriptBuilder(CustomOpBuilder):
    def _graph_mode(self):
        return in_graph


def in_graph():
    from polyop.mindspore import context

    return context.graph_mode() or torch.compiler.is_dynamo_compiling()


@pytest.fixture
def script(ops, monkeypatch):
    ms = pytest.importorskip("polyop.mindspore", reason="polyop.mindspore cannot be imported")
    monkeypatch.setenv("POLYOP_ASCEND", "rehearse")
    loaded = ScriptBuilder(
        "graph_ops",
        paths("add.cpp", "norm.cpp", "loop.cpp", "module.cpp"),
        backend="Ascend",
        op_def=paths("add.yaml", "norm.yaml", "loop.yml"),
        op_doc=paths("add_doc.yaml")[0],
    ).load()
    assert loaded.add2 is not None
    assert loaded.Custom_add4 is ops.add4  # the library is the same, and so are its operators
    yield ms, loaded
    ms.set_context(mode=ms.PYNATIVE_MODE)


def cell(ms, function):
    class Net(ms.nn.Cell):
        def construct(self, *inputs):
            return function(*inputs)

    return Net()


def test_a_cell_in_graph_mode(script):
    ms, ops = script
    ms.set_context(mode=ms.GRAPH_MODE)
    x, y = ms.Tensor(X), ms.Tensor(Y)
    out = cell(ms, lambda x, y: ops.add_three(ops.add4(x, y, 1), y))(x, y)
    np.testing.assert_array_equal(out.asnumpy(), X + 2 * Y)
    # while PyTorch traces the cell, it wraps the error in its own; the message is in it
    with pytest.raises(Exception, match="'npu_abs_reduce_sum' does not support GRAPH mode"):
        cell(ms, lambda x: ops.npu_abs_reduce_sum(x, (0,), True))(x)
    with pytest.raises(AttributeError, match="'npu_abs_reduce_sum' does not support GRAPH mode"):
        _ = ops.npu_abs_reduce_sum


def test_a_cell_in_pynative_mode(script):
    ms, ops = script
    x, y = ms.Tensor(X), ms.Tensor(Y)
    with pytest.raises(RuntimeError, match="not support PyNative mode"):
        cell(ms, lambda x, y: ops.add4(x, y, 1))(x, y)
    with pytest.raises(AttributeError, match="neither in func_module nor in so_module"):
        cell(ms, lambda x, y: ops.nothing(x, y))(x, y)
    np.testing.assert_array_equal(cell(ms, lambda x: ops.npu_abs_reduce_sum(x, (0,), True))(x).asnumpy(), [6])


def test_jit_is_a_graph_in_pynative_mode(script):
    ms, ops = script
    x = ms.Tensor(X.copy())
    np.testing.assert_array_equal(ms.jit(lambda x, y: ops.add4(x, y))(x, ms.Tensor(Y)).asnumpy(), X + Y)
    ms.jit(lambda x, y: ops.inplace_add(x, y))(x, ms.Tensor(Y))
    np.testing.assert_array_equal(x.asnumpy(), X + Y)


@pytest.mark.slow
def test_an_operator_that_no_source_registers():
    with pytest.raises(
        LibraryError, match=r"op_def has the operator add3, .*REG_GRAPH_MODE_OP\(add3, Infer, Kernel\)"
    ):
        build("graph_missing", ("module.cpp",), op_def=paths("add.yaml"))


@pytest.mark.slow
def test_an_operator_that_no_op_def_has():
    with pytest.raises(LibraryError, match=r"REG_GRAPH_MODE_OP\(inplace_add\): no op_def has this operator"):
        build("graph_undefined", ("norm.cpp", "module.cpp"))


@pytest.mark.slow
def test_infer_rules():
    """The caller gives an infer rule where shapes depend on data."""
    builder = CustomOpBuilder(
        "graph_rules", paths("loop.cpp", "module.cpp"), backend="CPU", op_def=paths("loop.yml")
    )
    with pytest.raises(ArgumentValueError, match="must name its functions: npu_abs_reduce_sum, mix, rows"):
        builder.load(infer={"nothing": "x"})
    ops = builder.load(infer={"first": "x"})
    assert compiled(lambda x, n: ops.first(x, n) + 1)(torch.arange(2.0), torch.tensor(2)).tolist() == [1, 2]


@pytest.fixture(scope="session")
def tasks():
    return build("graph_pyboost", ("pyboost.cpp",))


@pytest.mark.slow
def test_f9_a_device_task(tasks, host):
    x, y = np.float32([2, 3]), np.float32([5, 7])
    out, pull = tasks.mul.vjp(host(x), host(y))
    np.testing.assert_array_equal(np.asarray(out), x * y)
    for gradient, expected in zip(pull(host(np.float32([1, 2]))), (y * [1, 2], x * [1, 2]), strict=True):
        np.testing.assert_array_equal(np.asarray(gradient), expected)


@pytest.mark.slow
def test_f9_a_device_task_in_a_graph(tasks):
    x, y = torch.tensor([2.0, 3.0], requires_grad=True), torch.tensor([5.0, 7.0], requires_grad=True)
    compiled(lambda x, y: tasks.mul(x, y).sum())(x, y).backward()
    assert (x.grad.tolist(), y.grad.tolist()) == ([5, 7], [2, 3])


@pytest.mark.slow
def test_an_operator_of_op_def_has_the_dimensions_that_load_gives(monkeypatch):
    monkeypatch.setenv("POLYOP_ASCEND", "rehearse")
    sources = paths("add.cpp", "module.cpp")
    builder = CustomOpBuilder("graph_dims", sources, backend="Ascend", op_def=paths("add.yaml"))
    dims = {"dims": "..., ... -> ...", "parallel": "..."}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        ops = builder.load(dims={"add4": dims})
    np.testing.assert_array_equal(ops.add4(X, Y, 1), X + Y)
    with pytest.raises(InferError, match=r"dimensions \.\.\. are \(1,\) in argument other and \(3,\) in"):
        ops.add4(X, Y[:1], 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        out = torch.vmap(lambda x, y: ops.add4(x, y, 1))(torch.ones(2, 3).half(), torch.ones(2, 3).half())
    torch.testing.assert_close(out, torch.full((2, 3), 2.0).half())
