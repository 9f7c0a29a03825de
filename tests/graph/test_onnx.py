"""Models exported to ONNX and run by ONNX Runtime: the same kernels, the same values as in PyTorch."""

import pathlib
import subprocess
import sys
import threading

import numpy as np
import pytest

import polyop

onnx = pytest.importorskip("onnx", reason="not run: onnx is not installed")
pytest.importorskip("onnxscript", reason="not run: onnxscript is not installed")
ort = pytest.importorskip("onnxruntime", reason="not run: onnxruntime is not installed")
torch = pytest.importorskip("torch", reason="not run: PyTorch is not installed")

from polyop.core.errors import HostError  # noqa: E402
from polyop.graph.onnx import library, session_options, translation_table  # noqa: E402

SOURCES = pathlib.Path(__file__).parents[1] / "sources"
pytestmark = pytest.mark.filterwarnings(
    "ignore::FutureWarning"
)  # PyTorch's exporter warns about its own functions
MODULE = """
#include "ms_extension/all.h"
using ms::Tensor;
Tensor times(const Tensor &x, double k) {
  Tensor out(x.data_type(), x.shape());
  polyop::launch_aclnn("aclnnMuls", x, k, out);
  return out;
}
PYBIND11_MODULE(MS_EXTENSION_NAME, m) { m.def("times", &times, py::arg("x"), py::arg("k") = 2.0); }
"""


@polyop.kernel
def outer_sum(a, b):
    c = output_tensor((a.shape[0], b.shape[0]), a.dtype)  # noqa: F821 - words of a loop kernel
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            c[i, j] = a[i, 0] + b[j, 0] * 3.0
    return c


@pytest.fixture(scope="session")
def operators(tmp_path_factory):
    """Return an aot kernel with attributes and a workspace, a C++ module, a loop kernel."""
    schema = "onnx_aot::add(Tensor x, Tensor y, float scale=0.5, float[] paddings=[4.0]) -> Tensor"
    aot = polyop.operator(schema, f"{SOURCES / 'add_with_attr.cc'}:AddWithAttr", infer="x")
    source = tmp_path_factory.mktemp("onnx") / "times.cpp"
    source.write_text(MODULE)
    module = polyop.CustomOpBuilder("onnx_module", [str(source)]).load()
    return aot, module, polyop.Custom(outer_sum, func_type="hybrid")


def model_of(function):
    class Model(torch.nn.Module):
        def forward(self, *args):
            return function(*args)

    return Model().eval()


def exported(function, inputs, path, operators=(), dynamic=None):
    """Export, check and save a model; return its protobuf."""
    program = torch.onnx.export(
        model_of(function),
        inputs,
        dynamo=True,
        verbose=False,
        optimize=False,
        dynamic_shapes=dynamic,
        custom_translation_table=translation_table(*operators),
    )
    program.save(path)
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    return model


def session(path):
    options = ort.SessionOptions()
    options.log_severity_level = 4
    return ort.InferenceSession(path, session_options(options))


def run(path, *inputs):
    running = session(path)
    names = [each.name for each in running.get_inputs()]
    return running.run(None, dict(zip(names, map(np.asarray, inputs), strict=True)))


def nodes(model):
    return {node.op_type: node for node in model.graph.node if node.domain}


def attributes(node):
    return {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}


@pytest.mark.slow
def test_three_kinds_of_kernels_in_one_model(operators, tmp_path):
    aot, module, loop = operators

    def forward(x, y):
        first = aot(x, y, 0.1, [1.0, 0.25])
        return loop(first, module.times(torch.relu(y), 0.3)), first

    x, y = torch.randn(5, 1), torch.randn(5, 1)
    path = tmp_path / "model.onnx"
    model = exported(forward, (x, y), path)
    custom_nodes = nodes(model)
    assert {(n.domain, n.op_type) for n in custom_nodes.values()} >= {
        ("onnx_aot", "add"),
        ("onnx_module", "times"),
    }
    assert {each.domain: each.version for each in model.opset_import}["onnx_aot"] == 1
    product, first = run(path, x, y)
    want_product, want_first = forward(x, y)
    np.testing.assert_array_equal(product, want_product.numpy())
    np.testing.assert_array_equal(first, want_first.numpy())
    by_hand = (x + y * np.float32(0.1) * 2 + 1.25).numpy()
    np.testing.assert_allclose(first, by_hand, rtol=1e-5)
    np.testing.assert_allclose(product, by_hand + 0.9 * torch.relu(y).numpy().T, rtol=1e-5)


@pytest.mark.slow
def test_options_get_operators_once(operators, tmp_path):
    aot, *_ = operators
    x, y = torch.randn(3), torch.randn(3)
    exported(lambda x, y: aot(x, y), (x, y), tmp_path / "m.onnx")
    first, second = session_options(), session_options()
    assert session_options(first) is first and session_options(second) is second
    for options in (first, second, first):
        running = ort.InferenceSession(tmp_path / "m.onnx", options)
        names = [each.name for each in running.get_inputs()]
        [output] = running.run(None, dict(zip(names, (x.numpy(), y.numpy()), strict=True)))
        np.testing.assert_array_equal(output, aot(x, y).numpy())
    late = polyop.operator("onnx_late::f(Tensor x) -> Tensor", lambda x: x, infer="x")
    message = "these options have polyop's operators already, and take none that were defined since, but got "
    with pytest.raises(HostError, match=f"{message}{late.name}\n  begin with new SessionOptions"):
        session_options(first)
    assert session_options(session_options()) is not first


@pytest.mark.slow
def test_a_dynamic_axis(operators, tmp_path):
    aot, _, loop = operators
    path = tmp_path / "model.onnx"
    n = torch.export.Dim("n")
    example = torch.ones(4, 1)
    model = exported(lambda x: loop(aot(x, x), x), (example,), path, (aot, loop), dynamic=(({0: n},),))
    assert model.graph.input[0].type.tensor_type.shape.dim[0].dim_param
    typed = {each.name: each.type.tensor_type.elem_type for each in model.graph.value_info}
    assert onnx.TensorProto.FLOAT in typed.values()
    running = session(path)
    for size in (4, 9, 0, 1, 9):
        x = np.arange(size, dtype=np.float32).reshape(size, 1)
        [output] = running.run(None, {running.get_inputs()[0].name: x})
        np.testing.assert_allclose(output, (2 * x + 4) + 3 * x.T)


@pytest.mark.slow
def test_threads_share_a_session(operators, tmp_path):
    aot = operators[0]
    path = tmp_path / "model.onnx"
    n = torch.export.Dim("n")
    exported(lambda x: aot(x, x), (torch.ones(4, 1),), path, (aot,), dynamic=(({0: n},),))
    running = session(path)
    wrong = []

    def many(start):
        for size in range(start, start + 150):  # more sizes than are kept
            x = np.full((size, 1), size, np.float32)
            [output] = running.run(None, {running.get_inputs()[0].name: x})
            wrong.extend([] if np.array_equal(output, 2 * x + 4) else [size])

    threads = [threading.Thread(target=many, args=(start,)) for start in (1, 50, 100)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong


EVERY = """onnx_every::f(Tensor x, Tensor? b, Tensor[] more, *, int i, float f, float g, bool t, str s,
 int[] ii, float[] ff, float[] gg, bool[] tt, str[] ss, float? none=None, int[] empty, Scalar n, Scalar h,
 ScalarType dtype) -> Tensor"""
GIVEN = {
    "i": -(2**62), "f": 0.5, "g": 0.1, "t": True, "s": "ä\n", "ii": [3, 1], "ff": [0.25, float("inf")],
    "gg": [1e-300, 1.0], "tt": [True, False], "ss": ["a", "", "ü"], "empty": [], "n": 7, "h": 0.2,
}  # fmt: skip


def test_every_attribute_type(tmp_path):
    calls = []

    def kernel(x, b, more, *attributes_given):
        calls.append((b is None, len(more), attributes_given))
        return x + sum(more, np.zeros_like(x)) + (0 if b is None else b)

    op = polyop.operator(EVERY.replace("\n", ""), kernel, infer="x")

    def forward(x):
        return op(x, None, [x, x], dtype=torch.float16, **GIVEN) + op(x, x, [], dtype=torch.int8, **GIVEN)

    x, path = torch.arange(3.0), tmp_path / "model.onnx"
    model = exported(forward, (x,), path, (op,))
    first, second = [attributes(node) for node in model.graph.node if node.op_type == "f"]
    assert (first["b"], first["more"], second["b"], second["more"]) == (0, 2, 1, 0)
    assert first["f"] == 0.5 and first["ff"] == [0.25, float("inf")] and first["t"] == 1 and first["n"] == 7
    assert onnx.numpy_helper.to_array(first["g"]) == np.float64(0.1)  # 32 bits would change it
    assert "none" not in first and first["dtype"] == b"float16" and second["dtype"] == b"int8"
    calls.clear()
    [output] = run(path, x)
    np.testing.assert_array_equal(output, 5 * x.numpy())
    in_runtime = sorted(calls, key=lambda row: row[0])
    calls.clear()
    forward(x)
    in_torch = sorted(calls, key=lambda row: row[0])
    assert in_runtime == in_torch and len(in_torch) == 2
    i, f, g, t = in_torch[0][2][:4]
    assert (i, f, g) == (-(2**62), 0.5, 0.1) and t is True


@pytest.mark.slow
def test_several_results_and_dtypes(tmp_path):
    schema = "onnx_several::split(Tensor x) -> (Tensor, Tensor)"

    def specs(x):
        return polyop.Spec(x.shape, "int64"), polyop.Spec(x.shape, "bool")

    op = polyop.operator(schema, lambda x: (x.astype(np.int64), x > 1), infer=specs)
    x, path = torch.arange(4.0), tmp_path / "model.onnx"
    exported(lambda x: op(x), (x,), path, (op,))
    whole, large = run(path, x)
    assert whole.dtype == np.int64 and whole.tolist() == [0, 1, 2, 3]
    assert large.tolist() == [False, False, True, True]
    exported(lambda x: op(x)[1], (x,), path, (op,))  # of the first result nothing is used
    assert run(path, x)[0].tolist() == [False, False, True, True]


@pytest.mark.slow
def test_a_model_runs_in_another_process(operators, tmp_path):
    """The model names operators; the process defines them."""
    aot = operators[0]
    path = tmp_path / "model.onnx"
    exported(lambda x: aot(x, x, 0.125), (torch.ones(3),), path, (aot,))
    define = (
        "import polyop\n"
        f"op = polyop.operator({str(aot.schema)!r}, {str(SOURCES / 'add_with_attr.cc') + ':AddWithAttr'!r}, "
        "infer='x')\n"
    )
    program = (
        "import sys, numpy as np, onnxruntime as ort\n"
        "from polyop.graph.onnx import session_options\n"
        "{define}"
        "options = ort.SessionOptions(); options.log_severity_level = 4\n"
        f"running = ort.InferenceSession({str(path)!r}, session_options(options))\n"
        "print(running.run(None, {{running.get_inputs()[0].name: np.ones(3, np.float32)}})[0].tolist())\n"
        "assert 'torch' not in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program.format(define=define)], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.returncode) == ("[5.25, 5.25, 5.25]\n", 0), done.stderr
    done = subprocess.run(
        [sys.executable, "-c", program.format(define="")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1 and "onnx_aot" in done.stderr and "is not a registered" in done.stderr


def test_an_error_of_the_library_alone_names_what_it_needs():
    program = f"import onnxruntime as ort\nort.SessionOptions().register_custom_ops_library({library()!r})\n"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "polyop: polyop.graph.onnx is not imported in this process" in done.stderr
