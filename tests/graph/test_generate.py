"""The Python text for prototypes; test_torchair.py runs it."""

import ast
import pathlib

import pytest

from polyop.graph import generate, parse
from polyop.graph.vocabulary import ATTRIBUTE_TYPES, DTYPE_NUMBERS

EVERY = pathlib.Path(__file__).parents[1] / "golden" / "graph" / "every_macro.h"


def generated(items, name="Op"):
    return generate(parse(f"REG_OP({name}){items}.OP_END_FACTORY_REG({name})"), "h.h")


def signature(text, name="Op"):
    [function] = [n for n in ast.parse(text).body if isinstance(n, ast.FunctionDef) and n.name == name]
    arguments = function.args
    skipped = len(arguments.args) - len(arguments.defaults)
    positional = [a.arg if i < skipped else f"{a.arg}=" for i, a in enumerate(arguments.args)]
    defaults = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    keywords = [a.arg if d is None else f"{a.arg}={ast.unparse(d)}" for a, d in defaults]
    return positional, keywords


def test_every_macro_and_attribute_type(golden):
    done = generate(parse(EVERY.read_text(), "every_macro.h"), "every_macro.h")
    golden("graph/every_macro.py.txt", done.text)
    assert done.summary == "total 10, generated 3, skipped 7"
    compile(done.text, "every_macro.py", "exec")


def test_defect_1_the_imports_name_where_things_are():
    text = generated(".INPUT(x, DT_INT8)").text
    lines = [line for line in text.splitlines() if line.startswith("from torchair")]
    assert lines == [
        "from torchair.ge._ge_graph import auto_convert_to_tensor, TensorType",
        "from torchair.ge import Tensor, DataType, attr",
        "from torchair._ge_concrete_graph.compat_ir import ge_op, IrDef",
    ]


@pytest.mark.parametrize("value", ["1e-8", "1e-5", "1e-30", "0.1", "16777217.0", "-1e20"])
def test_defect_2_small_floats_are_kept(value):
    _, keywords = signature(generated(f".ATTR(eps, Float, {value})").text)
    assert float(keywords[0].removeprefix("eps=")) == float(value)
    assert generated(f".ATTR(eps, Float, {value})").text.count(f"attr.Float({float(value)!r})") == 1


@pytest.mark.parametrize("text", [r"\"", r"\\", r"\n", '"', "'", r"\"\"\"", r"a\\\"b'c", "é\\u2028"])
def test_defect_3_quotes_are_escaped(text):
    literal = f'"{text}"' if text != '"' else 'R"(")"'
    expected = {'"': '"', r"\"": '"', r"\\": "\\", r"\n": "\n", "'": "'", r"\"\"\"": '"""',
                r"a\\\"b'c": "a\\\"b'c", "é\\u2028": "é\u2028"}[text]  # fmt: skip
    _, keywords = signature(generated(f".ATTR(mode, String, {literal})").text)
    assert ast.literal_eval(keywords[0].removeprefix("mode=")) == expected


@pytest.mark.parametrize("kind", [k for k, row in ATTRIBUTE_TYPES.items() if not row.builder])
def test_defect_4_types_without_an_attribute_are_skipped_with_a_reason(kind):
    value = f"{kind}()" if "Tensor" in kind else "{}" if kind.startswith("ListList") else f"{kind}(1)"
    for item in (f".ATTR(a, {kind}, {value})", f".REQUIRED_ATTR(a, {kind})"):
        done = generated(item)
        reason = f"attribute a of type {kind}, which torchair has no attribute for"
        assert f"# IR Op skipped as {reason}\n" in done.text and "def Op" not in done.text
        assert [(each.name, each.reason) for each in done.skipped] == [("Op", reason)]


@pytest.mark.parametrize("name", sorted(DTYPE_NUMBERS))
def test_defect_5_dtypes_are_written_by_name(name):
    text = generated(f".ATTR(dst, Type, {name}).ATTR(more, ListType, {{{name}}})").text
    _, keywords = signature(text)
    assert keywords[:2] == [f"dst=DataType.{name}", f"more=[DataType.{name}]"]


def test_dtypes_in_another_spelling_are_those_that_torchair_has():
    _, keywords = signature(generated(".ATTR(dst, Type, DT_FLOAT32)").text)
    assert keywords[0] == "dst=DataType.DT_FLOAT"


def test_defect_6_the_nodes_name_is_passed_on():
    text = generated(".INPUT(x, DT_INT8)").text
    [call] = [
        n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Call) and ast.unparse(n.func) == "ge_op"
    ]
    keywords = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
    assert keywords["node_name"] == "node_name" and keywords["dependencies"] == "dependencies"


def test_defect_7_inputs_from_the_first_optional_one_on_may_be_left_out():
    text = generated(
        ".INPUT(x, DT_INT8).OPTIONAL_INPUT(b, DT_INT8).INPUT(w, DT_INT8).DYNAMIC_INPUT(xs, DT_INT8)"
    ).text
    positional, _ = signature(text)
    assert positional == ["x", "b=", "w=", "xs="]
    assert '@_optional_inputs("b")\n@auto_convert_to_tensor(' in text
    assert "_optional_inputs" not in generated(".INPUT(x, DT_INT8)").text


def test_order_of_parameters_and_of_the_definition():
    text = generated(
        ".ATTR(k, Int, 1).OUTPUT(y, DT_INT8).REQUIRED_ATTR(n, Int).DYNAMIC_OUTPUT(zs, DT_INT8).INPUT(x, DT_INT8)"
    ).text
    positional, keywords = signature(text, "_Op")
    assert positional == ["x"]
    assert keywords == ["size_of_zs", "n", "k=1", "dependencies=[]", "node_name=None"]
    definition = [line.strip().split("(")[0] for line in text[text.index("ir=IrDef") :].splitlines()]
    assert definition[1:6] == [".input", ".required_attr", ".attr", ".output", ".dynamic_output"]


def test_names_that_python_or_the_file_needs_are_changed():
    text = generated(
        ".INPUT(x, DT_INT8).INPUT(lambda, DT_INT8).INPUT(attr, DT_INT8).DYNAMIC_OUTPUT(y, DT_INT8)"
        ".ATTR(x, Int, 1).ATTR(from, Int, 2).ATTR(node_name, Int, 3).ATTR(size_of_y, Int, 4)"
    ).text
    positional, keywords = signature(text, "_Op")
    assert positional == ["x", "lambda_changed_as_is_python_key", "attr_changed_as_is_used_here"]
    assert keywords[:5] == [
        "size_of_y",
        "x_changed_as_duplicate_with_input=1",
        "from_changed_as_is_python_key=2",
        "node_name_changed_as_is_used_here=3",
        "size_of_y_changed_as_is_used_here=4",
    ]
    assert '"lambda": lambda_changed_as_is_python_key,' in text
    assert '"x": attr.Int(x_changed_as_duplicate_with_input),' in text
    assert "def Tensor_changed_as_is_used_here(" in generated(".INPUT(x, DT_INT8)", "Tensor").text


@pytest.mark.parametrize(
    ("types", "tensor_type", "dtypes"),
    [
        ("TensorType::ALL()", "TT_ALL", ""),
        ("ge::TensorType::UnaryDataType()", "TT_UNARY", ""),
        ("TensorType({DT_INT64, DT_INT32})", "TT_INDEX_NUMBER", "DT_INT64, DT_INT32"),
        ("TensorType({DT_FLOAT})", None, "DT_FLOAT"),
        ("TensorType({BasicType(), DT_BOOL})", None, "BasicType(), DT_BOOL"),
        ('"T"', None, ""),
    ],
)
def test_dtypes_of_inputs(types, tensor_type, dtypes):
    text = generated(f".INPUT(x, {types}).DATATYPE(T, TensorType(DT_INT8))").text
    expected = f", inputs_tensor_type=[TensorType.{tensor_type}]" if tensor_type else ""
    assert f"@auto_convert_to_tensor([False], [False]{expected})\n" in text
    assert f'.input("x", "{dtypes}")' in text


@pytest.mark.parametrize(
    ("items", "name", "reason"),
    [
        (".OPTIONAL_OUTPUT(y, DT_INT8)", "Op", "optional output"),
        (".GRAPH(g)", "Op", "graph"),
        (".DYNAMIC_GRAPH(g)", "Op", "dynamic graph"),
        (".OUTPUT(y, DT_INT8)", "PlaceholderV2", "Deformed prototype"),
    ],
)
def test_skipped_prototypes(items, name, reason):
    done = generated(items, name)
    assert done.summary == "total 1, generated 0, skipped 1"
    head = f"# This file is auto-generated by h.h\n# Summary: {done.summary}\n"
    assert done.text.startswith(head) and done.text.endswith(f"# IR {name} skipped as {reason}\n")


def test_an_operator_without_inputs_and_one_without_outputs():
    assert signature(generated(".OUTPUT(y, DT_INT8)").text)[0] == []
    assert "    _outputs = [\n    ]\n" in generated(".INPUT(x, DT_INT8)").text
