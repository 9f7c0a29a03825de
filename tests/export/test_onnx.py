"""A session of ONNX Runtime runs the operators of an exported library, in a process without polyop."""

import pathlib
import subprocess
import sys

import pytest

import exported_by_hand
from polyop.export.surfaces import onnx


@pytest.fixture(scope="session")
def path(tmp_path_factory):
    return exported_by_hand.build(onnx, tmp_path_factory.mktemp("exported"))


SESSIONS = """
import sys
sys.modules["polyop"] = None  # cannot be imported
import numpy as np, onnxruntime as ort
from onnx import TensorProto as T, helper

def run(nodes, outputs, **inputs):
    types = {"float32": T.FLOAT, "float64": T.DOUBLE, "int32": T.INT32}
    value = lambda name, dtype: helper.make_tensor_value_info(name, types[dtype], None)
    graph = helper.make_graph(
        [helper.make_node(kind, ins, outs, domain="toy", **attributes)
         for kind, ins, outs, attributes in nodes],
        "graph", [value(name, str(array.dtype)) for name, array in inputs.items()],
        [value(name, dtype) for name, dtype in outputs.items()],
        value_info=[value("m", "float32")])  # a session does not infer the dtypes of custom operators
    domains = [helper.make_opsetid("", 18), helper.make_opsetid("toy", 1)]
    model = helper.make_model(graph, opset_imports=domains, ir_version=8)
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.register_custom_ops_library(sys.argv[1])
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(list(outputs), inputs)

x = np.arange(6, dtype=np.float32).reshape(2, 3)
float32 = {"y": "float32"}
for factor, attributes in ((2.0, {}), (2.5, {"factor": 2.5}), (3.0, {"factor": 3})):
    (y,) = run([("scale", ["x"], ["y"], attributes)], float32, x=x)
    np.testing.assert_array_equal(y, factor * x)
(y,) = run([("scale", ["x"], ["m"], {}), ("scale", ["m"], ["y"], {"factor": 0.5})], float32, x=x)
np.testing.assert_array_equal(y, x)

both = {"y": "float32", "n": "int32"}
given = {"weights": [1, 2], "mode": "short", "negate": 1}
y, n = run([("weigh", ["x"], ["y", "n"], given)], both, x=x)
np.testing.assert_array_equal(y, -3 * x)
assert n == 5
y, n = run([("weigh", ["x", "b"], ["y", "n"], {})], both, x=x, b=x)
np.testing.assert_array_equal(y, x)
assert n == len("plain")
(y,) = run([("weigh", ["x"], ["y"], {"weights": [4]})], float32, x=x)  # an output that is not used
np.testing.assert_array_equal(y, 4 * x)

wide = x.astype("float64")
for words, node, array in (
    ("(the factor must not be 0)", ("scale", ["x"], ["y"], {"factor": 0.0}), x),
    ("toy::scale: no kernel of this library takes x float64[2, 3]", ("scale", ["x"], ["y"], {}), wide),
    ("the attribute factor must be a float, not a text", ("scale", ["x"], ["y"], {"factor": "two"}), x),
    ("the attribute factor must be a float", ("scale", ["x"], ["y"], {"factor": [1.0]}), x),
    ("the attribute weights must be a list of ints, not an int", ("weigh", ["x"], ["y"], {"weights": 1}), x),
    ("the attribute weights must be a list of ints", ("weigh", ["x"], ["y"], {"weights": [1.5]}), x),
    ("the node has 2 inputs and 1 outputs", ("scale", ["x", "x"], ["y"], {}), x),
):
    try:
        run([node], float32, x=array)
    except Exception as problem:
        assert "toy::" in str(problem) and words in str(problem), problem
    else:
        raise AssertionError(words)
print("called")
"""


def test_sessions_without_polyop(path):
    for package in ("onnx", "onnxruntime"):
        pytest.importorskip(package, reason=f"not run: {package} is not installed")
    command = [sys.executable, "-c", SESSIONS, str(path)]
    ran = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert ran.stdout == "called\n", ran.stdout + ran.stderr


def model(path, **attributes):
    """Write a model with one node, toy::scale."""
    from onnx import TensorProto, helper

    node = helper.make_node("scale", ["x"], ["y"], domain="toy", **attributes)
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "xy")
    domains = [helper.make_opsetid("", 18), helper.make_opsetid("toy", 1)]
    graph = helper.make_graph([node], "graph", [x], [y])
    path.write_bytes(helper.make_model(graph, opset_imports=domains, ir_version=8).SerializeToString())


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    """Return a C++ program that runs a model, built against ONNX Runtime's library."""
    folder = tmp_path_factory.mktemp("program")
    package = pytest.importorskip("onnxruntime", reason="not run: onnxruntime is not installed")
    libraries = sorted((pathlib.Path(package.__file__).parent / "capi").glob("libonnxruntime.so*"))
    if not libraries:
        pytest.skip("not run: this wheel of onnxruntime has no libonnxruntime.so")
    root = exported_by_hand.ROOT
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Werror", f"-I{root / 'include'}", "-Wl,--no-as-needed"]
    links = [str(libraries[-1]), f"-Wl,-rpath,{libraries[-1].parent}", "-ldl", "-o", str(folder / "program")]
    source = root / "tests" / "sources" / "exported_onnx.cc"
    subprocess.run(["g++", *flags, str(source), *links], check=True, timeout=120)
    (folder / "libonnxruntime.so.1").symlink_to(libraries[-1])  # the wheel's file has another name
    return folder / "program"


def run_model(program, library, path):
    return subprocess.run(
        [str(program), str(library), str(path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={"LD_LIBRARY_PATH": str(program.parent)},
    )


def test_a_session_of_a_cxx_program(program, path, tmp_path):
    pytest.importorskip("onnx", reason="not run: onnx is not installed")
    model(tmp_path / "m.onnx", factor=3.0)
    done = run_model(program, path, tmp_path / "m.onnx")
    assert (done.returncode, done.stdout) == (0, "0 3 6 9 12 15 \n"), done.stdout + done.stderr
    for words, attributes in (
        ("toy::scale: the kernel returned 1 (the factor must not be 0)", {"factor": 0.0}),
        ("the attribute factor must be a float, not a text", {"factor": "two"}),
    ):
        model(tmp_path / "bad.onnx", **attributes)
        done = run_model(program, path, tmp_path / "bad.onnx")
        assert done.returncode == 1
        assert words in done.stdout


def test_it_loads_without_onnx_runtime_and_exports_one_function(path):
    program = f"import ctypes, os; ctypes.CDLL({str(path)!r}, mode=os.RTLD_NOW); print('loaded')"
    command = [sys.executable, "-c", program]
    ran = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert ran.stdout == "loaded\n", ran.stderr
    assert exported_by_hand.exported(path) == {"RegisterCustomOps"}


@pytest.mark.parametrize(
    ("signature", "words"),
    [
        ("(Tensor(a!) x, Tensor y) -> ()", "it writes into an argument"),
        ("(Tensor x) -> ()", "it returns nothing"),
        ("(Tensor x, str[] names) -> Tensor", "the attribute names is a list of texts"),
        ("(Tensor x, complex z) -> Tensor", "the attribute z is a complex"),
    ],
)
def test_an_operator_that_a_session_cannot_run(signature, words):
    operator = exported_by_hand.operator(f"toy::f{signature}")
    assert onnx.refused(operator).startswith(words)
    assert onnx.source([operator]) == ""
