"""Generated functions and converters, run by the torchair of the torch-npu wheel, without CANN.

``POLYOP_TORCH_NPU`` names a folder that ``pip install --target`` has put torch-npu in: installed
beside PyTorch it would be imported with it, and fail where there is no CANN.
"""

import ast
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

import polyop
from polyop.call.bound import BoundOperator
from polyop.call.operator import Operator
from polyop.core.errors import SchemaError, UnsupportedError
from polyop.core.parse import parse as parse_schema
from polyop.graph import generate, header, parse, prototype_of
from polyop.graph import torchair as converters
from polyop.graph.parse import read
from polyop.graph.vocabulary import DTYPE_NUMBERS

HERE = pathlib.Path(__file__).parent
EVERY = HERE.parent / "golden" / "graph" / "every_macro.h"
ADD = """namespace ge {
REG_OP(AddCustom)
    .INPUT(x, ge::TensorType::ALL())
    .INPUT(y, ge::TensorType::ALL())
    .OUTPUT(z, ge::TensorType::ALL())
    .OP_END_FACTORY_REG(AddCustom);
}
"""


@pytest.fixture(scope="session")
def site_packages():
    """Return the folder that torch-npu is installed in."""
    named = os.environ.get("POLYOP_TORCH_NPU", "")
    spec = importlib.util.find_spec("torch_npu")
    if not named and (spec is None or spec.origin is None):
        pytest.skip("not run: torch-npu is not installed, and POLYOP_TORCH_NPU names no folder with it")
    return named or str(pathlib.Path(spec.origin).parents[1])


@pytest.fixture(scope="session")
def results(site_packages, tmp_path_factory):
    """Return what each step of torchair_program.py gave."""
    folder = tmp_path_factory.mktemp("torchair")
    (folder / "every_macro.py").write_text(generate(parse(EVERY.read_text()), "every_macro.h").text)
    (folder / "add_custom.h").write_text(ADD)
    path = os.pathsep.join(filter(None, (site_packages, os.environ.get("PYTHONPATH"))))
    done = subprocess.run(
        [sys.executable, HERE / "torchair_program.py", folder / "every_macro.h"],
        env={**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "PYTHONPATH": path},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULTS ")]
    assert lines, done.stdout + done.stderr
    return json.loads(lines[0].removeprefix("RESULTS "))


def ok(results, name):
    result = results[name]
    assert not (isinstance(result, dict) and "failed" in result), result["failed"]
    return result


def names(node, direction):
    return [each["name"] for each in node.get(f"{direction}_desc", [])]


@pytest.mark.slow
def test_the_tables_are_torchairs(results):
    assert ok(results, "vocabulary") == {"dtypes": [], "sets": [], "builders": []}


def test_the_generated_functions_give_a_graph(results, golden):
    graph = ok(results, "generated")
    golden("graph/every_macro.json", json.dumps(graph, indent=1, sort_keys=True) + "\n")


@pytest.mark.slow
def test_nodes_of_the_graph(results):
    tensors, index, bias, named, lists, plain, given = ok(results, "generated")
    assert tensors["type"] == "Tensors" and names(tensors, "input") == ["x", "index", "xs0", "xs1"]
    assert names(tensors, "output") == ["y", "x"]
    # a number is a constant: int64 for an index, float for a number beside floats
    constants = [(op["type"], op["attr"]["value"]["t"]["desc"]["dtype"]) for op in (index, bias)]
    assert sorted(constants) == [("Const", "DT_FLOAT"), ("Const", "DT_INT64")]
    assert named["name"] == "chosen" and names(named, "input") == ["x", "bias", "index", "xs0", "mask"]
    assert named["input"][-1].endswith(":-1")  # the dependency
    assert names(lists, "output") == ["ys0", "ys1"]
    assert set(plain["attr"]) == {"last", "name"}  # a default is not written
    attributes = {name: next(iter(value.values())) for name, value in given["attr"].items()}
    assert given["attr"]["eps"] == {"f": 0.0} and given["attr"]["dst"] == {"dt": "27"}
    assert attributes["axis"] == "3" and attributes["lambda"] == 2.0 and attributes["x"] == "9"
    assert attributes["floats"]["f"] == [pytest.approx(1e-8)]
    assert len(attributes) == 19


def test_inputs_that_are_missing(results):
    no_index, no_tensor, no_size = ok(results, "missing_inputs")
    assert no_index == "TypeError: Tensors() needs the inputs index, xs"
    assert no_tensor == "no error"  # torchair makes a constant of a number
    assert no_size.startswith("TypeError") and "size_of_ys" in no_size


def test_a_converter_written_by_hand(results):
    for cast, constant, add in ok(results, "converter_by_hand"):
        assert cast["type"] == "Cast" and cast["attr"]["dst_type"] == {"i": "1"}
        assert constant["attr"]["value"]["t"]["desc"]["dtype"] == "DT_FLOAT16"
        assert add["type"] == "AddCustom" and add["input"] == ["Cast:0", "Const:0"]


@pytest.mark.slow
def test_a_converter_made_from_the_schema(results):
    cast, many, second = ok(results, "converter_of_a_schema")
    assert cast["type"] == "Cast" and cast["attr"]["dst_type"] == {"i": "0"}
    assert many["type"] == "Many" and names(many, "input") == ["x", "bias", "xs0", "xs1"]
    assert many["attr"] == {"n": {"i": "5"}, "dtype": {"dt": "27"}, "eps": {"f": 0.25}}
    assert names(many, "output") == ["y0", "y1"]
    assert names(second, "input") == ["x", "xs0"] and second["attr"]["dtype"] == {"dt": "3"}


def test_a_converter_for_a_list_of_results(results):
    [node] = ok(results, "converter_of_a_list")
    assert node["type"] == "Pieces" and names(node, "output") == ["y0", "y1", "y2"]


def test_names_that_the_generated_function_needs_itself(results):
    cast, node = ok(results, "converter_with_names_in_the_way")
    assert cast["type"] == "Cast" and names(node, "input") == ["y0", "y1", "attr0"]
    assert node["attr"] == {"node_name": {"i": "4"}} and names(node, "output") == ["z0", "z1"]


def test_a_model_is_exported(results):
    text = ok(results, "exported_model")
    assert [line.strip() for line in text.splitlines() if line.strip().startswith("op: ")] == [
        'op: "Data"', 'op: "Data"', 'op: "Cast"', 'op: "AddCustom"', 'op: "NetOutput"',
    ]  # fmt: skip
    node = text[text.index('op: "AddCustom"') :].split("\nnode {")[0]
    assert 'input: "Cast:0"' in node and "f: 2.5" in node


def test_refused_converters(results):
    messages = ok(results, "refusals")
    assert messages["symbolic"].startswith(
        "UnsupportedError: graph_tests::refused: argument n is a symbolic number, and an attribute of GE"
    )
    assert "promote: must name inputs: x, but got 'n'" in messages["promote"]
    assert messages["no operator"].startswith(
        "ArgumentTypeError: register_fx_node_ge_converter: must be an operator, or"
    )
    assert "cannot be put into a GE graph: graph\n  defined at malformed.h:1" in messages["skipped"]


REAL = """every(Tensor x, Tensor? bias, Tensor[] xs, int n, float eps=1e-8, *, bool flag=True, ScalarType t,
str mode="a\\"b", int[2] pads=1, float[] scales=[0.5, 2], bool[] flags=[True], str[] words=["a"],
int[][] table=[[1, 2], [3]]) -> (Tensor first, Tensor)"""


def test_the_compiler_takes_the_header_of_an_operator_with_the_macros_of_ge(site_packages, tmp_path):
    schema = f"graph_tests::{' '.join(REAL.split())}"
    value = Operator(parse_schema(schema), infer=lambda arguments: (), kernels=())
    op = BoundOperator(value, register=False)  # PyTorch has no lists of lists
    (tmp_path / "every.h").write_text(header([prototype_of(op)]))
    (tmp_path / "use.cc").write_text(
        '#include "every.h"\nauto made = ge::op::Every("node").set_attr_eps(0.5f);\n'
    )
    include = f"-I{site_packages}/torch_npu/include"
    command = ["g++", "-std=c++17", "-fsyntax-only", "-w", include, "use.cc"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_prototypes_that_are_in_use_are_read(site_packages):
    folder = pathlib.Path(site_packages, "torch_npu", "include", "op_proto")
    parsed = {op.name for path in sorted(folder.glob("*_ops.h")) for op in read(path)}
    written = {
        name
        for path in folder.glob("*_ops.h")
        for name in re.findall(r"^REG_OP\((\w+)\)", path.read_text(), re.M)
    }
    assert parsed == written and "ConcatD" in parsed


def shape_of(function):
    """Return inputs, keywords and decorator of a generated function; dtypes as numbers, floats rounded."""
    [decorator] = [text for text in map(ast.unparse, function.decorator_list) if "auto_convert" in text]
    inputs = [(a.arg, ast.unparse(a.annotation)) for a in function.args.args]
    return function.name, inputs, decorator, [
        (a.arg, a.annotation and ast.unparse(a.annotation), default and rounded(ast.unparse(default)))
        for a, default in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
    ]  # fmt: skip


def rounded(text):
    text = re.sub(r"DataType\.(DT_\w+)", lambda name: str(DTYPE_NUMBERS[name[1]]), text)
    return re.sub(r"-?\d+\.\d+(e-?\d+)?|-?\d+e-?\d+", lambda number: f"{float(number[0]):.6f}", text)


@pytest.mark.slow
def test_torchairs_own_prototypes_give_torchairs_own_functions(site_packages):
    """The docstrings of its file are prototypes, though edited by hand in places."""
    graph = pathlib.Path(site_packages, "torch_npu", "dynamo", "torchair", "_ge_concrete_graph")
    tree = ast.parse((graph / "auto_generated_ge_raw_ops.py").read_text())
    equal, different, unread = 0, [], []
    for theirs in [node for node in tree.body if isinstance(node, ast.FunctionDef)]:
        text = ast.get_docstring(theirs, clean=False) or ""
        if not text.startswith("REG_OP("):
            continue
        name = re.match(r"REG_OP\((\w+)\)", text)[1]
        try:
            generated = generate(parse(f"{text}\n.OP_END_FACTORY_REG({name})"), "h.h")
        except SchemaError:
            unread.append(name)
            continue
        ours = [node for node in ast.parse(generated.text).body if isinstance(node, ast.FunctionDef)][-1]
        if shape_of(ours) == shape_of(theirs):
            equal += 1
        else:
            different.append(name)
    assert equal > 1600 and len(different) < 40 and len(unread) < 70, (equal, different, unread)


def test_operators_that_a_graph_cannot_hold_are_refused_before_torchair_is_asked():
    def fill(x):
        x[...] = 0

    op = polyop.operator("graph_tests::fill(Tensor(a!) x) -> ()", fill, infer=lambda x: ())
    with pytest.raises(
        UnsupportedError, match="graph_tests::fill: writes in place.*\n.*\n  return a new tensor"
    ):
        converters.register(op)
    op = polyop.operator("graph_tests::flags(Tensor x, bool[][] f) -> Tensor", lambda x, f: x, infer="x")
    with pytest.raises(
        UnsupportedError, match="cannot be put into a GE graph: attribute f of type ListListBool"
    ):
        converters.register(op)
