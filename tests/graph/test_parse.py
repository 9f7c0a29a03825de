"""Reading and writing REG_OP headers."""

import math
import pathlib
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyop.core.errors import ArgumentValueError, SchemaError
from polyop.graph import AttributeItem, Prototype, TensorItem, Types, header, parse
from polyop.graph.default_values import quote
from polyop.graph.header import macros
from polyop.graph.parse import read
from polyop.graph.prototype import DatatypeItem, DTypeName, GraphItem
from polyop.graph.tokens import unescape
from polyop.graph.vocabulary import ATTRIBUTE_TYPES, DTYPE_NUMBERS, NAMED_SETS, TENSOR_MACROS

EVERY = pathlib.Path(__file__).parents[1] / "golden" / "graph" / "every_macro.h"


def one(items, name="Op"):
    [operator] = parse(f"REG_OP({name}){items}.OP_END_FACTORY_REG({name})", "h.h")
    return operator


def default(kind, text):
    return one(f".ATTR(a, {kind}, {text})").attributes[0].default


def types(text):
    return one(f".INPUT(x, {text}).DATATYPE(T, TensorType::ALL())").inputs[0].types


def test_the_operator_of_a_project():
    [op] = parse(
        '#include "operator_reg.h"\n\nnamespace ge {\nREG_OP(AddCustom)\n'
        "    .INPUT(x, ge::TensorType::ALL())\n    .INPUT(y, ge::TensorType::ALL())\n"
        "    .OUTPUT(z, ge::TensorType::ALL())\n    .OP_END_FACTORY_REG(AddCustom);\n}\n",
        "custom_reg_op.h",
    )
    everything = Types(("ALL",))
    assert op.name == "AddCustom" and str(op.origin) == "custom_reg_op.h:4"
    assert op.items == (
        TensorItem("INPUT", "x", everything),
        TensorItem("INPUT", "y", everything),
        TensorItem("OUTPUT", "z", everything),
    )


def test_every_macro_and_attribute_type():
    ops = {op.name: op for op in read(EVERY)}
    assert list(ops) == [
        "Tensors", "Lists", "Attributes", "WithFlags", "WithWords", "WithTensor", "MaybeResult", "Branch",
        "Choose", "Constant",
    ]  # fmt: skip
    values = {a.name: a.default for a in ops["Attributes"].attributes if not a.required}
    assert values == {
        "axis": -16, "eps": 1e-8, "slope": -2500.0, "flag": True, "mode": 'say "no"\tC:\\tmp',
        "dst": "DT_FLOAT16", "wide": "DT_BF16", "ints": (1, 2, -3), "none": (),
        "floats": (0.5, 1e-5, math.inf), "flags": (True, False), "words": ("a", 'b"c'),
        "dtypes": ("DT_DOUBLE", "DT_COMPLEX32"), "table": ((1, 2), (), (3,)), "weights": ((0.25, 1.0),),
        "lambda": 1.0, "x": 0,
    }  # fmt: skip
    assert [a.name for a in ops["Attributes"].attributes][:2] == ["last", "name"]
    assert ops["Tensors"].origin.line == 11
    assert ops["WithTensor"].attributes[0].default == "ge::Tensor()"
    assert ops["Branch"].graphs == (GraphItem("GRAPH", "then_branch"), GraphItem("GRAPH", "else_branch"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("TensorType({DT_FLOAT, DT_INT32})", Types(("DT_FLOAT", "DT_INT32"))),
        ("TensorType{DT_FLOAT}", Types(("DT_FLOAT",))),
        ("TensorType(DT_FLOAT, ge::DT_BF16)", Types(("DT_FLOAT", "DT_BF16"))),
        ("ge::TensorType({ge::DataType::DT_BOOL,})", Types(("DT_BOOL",))),
        ("DT_STRING", Types(("DT_STRING",))),
        ("TensorType::BasicType()", Types(("BasicType",))),
        ("TensorType({BasicType(), DT_BOOL})", Types(("BasicType", "DT_BOOL"))),
        ("TensorType({FloatingDataType, DT_BF16})", Types(("FloatingDataType", "DT_BF16"))),
        ("ListTensorType(TensorType::ALL())", Types(("ALL",), sequence=True)),
        ("ListTensorType({DT_INT8, DT_INT4})", Types(("DT_INT8", "DT_INT4"), sequence=True)),
        ('"T"', Types(variable="T")),
        ("TensorType({})", Types()),
    ],
)
def test_forms_of_dtypes(text, expected):
    assert types(text) == expected


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("Int", "0x1F", 31), ("Int", "0b101", 5), ("Int", "017", 15), ("Int", "1'000L", 1000), ("Int", "- 3", -3),
        ("Int", "INT_MAX", 2147483647), ("Int", "true", 1), ("Int", "2.0", 2), ("Int", "Int(4)", 4),
        ("Int", "static_cast<int>(7)", 7), ("Int", "-9223372036854775808", -(2**63)), ("Int", "(5)", 5),
        ("Int", "-(1)", -1), ("Int", "-(-(3))", 3), ("Int", "+((2))", 2), ("Float", "-(1.5f)", -1.5),
        ("ListInt", "{-(1), (2)}", (-1, 2)),
        ("Float", "1e-8", 1e-8), ("Float", ".5f", 0.5), ("Float", "1.", 1.0), ("Float", "-2E+3", -2000.0),
        ("Float", "0x1p-3", 0.125), ("Float", "3", 3.0), ("Float", "-INFINITY", -math.inf),
        ("Float", "FLT_MAX", 3.4028234663852886e38),
        ("Bool", "false", False), ("Bool", "1", True),
        ("String", '"a" "b"', "ab"), ("String", 'R"x(a\\"b)x"', 'a\\"b'), ("String", '"\\x41\\101\\u00e9"', "AAé"),
        ("String", 'std::string("q")', "q"), ("String", '"// no comment"', "// no comment"),
        ("AscendString", '""', ""),
        ("Type", "ge::DT_BF16", "DT_BF16"), ("Type", "DataType::DT_BOOL", "DT_BOOL"), ("Type", "11", "DT_DOUBLE"),
        ("ListInt", "{}", ()), ("ListInt", "ListInt()", ()), ("ListInt", "{1, 2,}", (1, 2)),
        ("ListInt", "ge::UNKNOWN_SHAPE", (-1,)), ("ListInt", "std::vector<int64_t>({4})", (4,)),
        ("ListListInt", "{{1}, {}}", ((1,), ())), ("ListListFloat", "{{1, 2.5}}", ((1.0, 2.5),)),
        ("ListListBool", "{{true}}", ((True,),)), ("ListListString", '{{"a"}}', (("a",),)),
        ("ListString", 'ListString{"a"}', ("a",)), ("ListDataType", "{DT_INT8}", ("DT_INT8",)),
        ("AnyValue", "AnyValue::From( 3 , 4 )", "AnyValue::From(3, 4)"), ("Bytes", 'Bytes("a\\n")', 'Bytes("a\\n")'),
    ],
)  # fmt: skip
def test_forms_of_defaults(kind, text, expected):
    parsed = default(kind, text)
    assert parsed == expected and type(parsed) in (type(expected), DTypeName)


def test_the_types_of_attributes_are_all_read():
    for kind in ATTRIBUTE_TYPES:
        assert one(f".REQUIRED_ATTR(a, {kind})").attributes == (AttributeItem("a", kind),)


BAD = [
    # header, line, words
    ("REG_OP Add)", 1, r"expected '\(' after REG_OP, but got 'Add'"),
    ("REG_OP()", 1, r"expected the operator's name, but got '\)'"),
    ("\nREG_OP(Add)\n.INPUT(x, DT_FLOAT)\n", 3, r"expected '.' and a macro, or .OP_END_FACTORY_REG\(Add\), but got the end.*\n.*begins at line 2"),
    ("REG_OP(A).INPUT(x, DT_INT8)\nREG_OP(B)", 2, r"expected '.' and a macro.*got 'REG_OP'"),
    ("REG_OP(A)\n.INPTU(x, DT_INT8)", 2, "expected a macro of REG_OP, but got 'INPTU'\n  the nearest are INPUT"),
    ("REG_OP(A)\n.OP_END_FACTORY_REG(B)", 2, "OP_END_FACTORY_REG must name A, as REG_OP at line 1 does, but got B"),
    ("REG_OP(A).INPUT(x)", 1, r"expected ',' and dtypes in INPUT\(x, ...\), but got '\)'"),
    ("REG_OP(A).INPUT(x, float)", 1, "expected dtypes, but got 'float'\n  as in TensorType"),
    ("REG_OP(A).INPUT(x, TensorType({DT_FLAOT}))", 1, "expected a ge::DataType, but got 'DT_FLAOT'\n.*DT_FLOAT"),
    ("REG_OP(A).INPUT(x, TensorType::Basic())", 1, "a named set of TensorType, but got 'Basic'\n.*BasicType"),
    ("REG_OP(A).INPUT(x, TensorType({DT_INT8 DT_INT4}))", 1, r"expected ',' or '}', but got 'DT_INT4'"),
    ("REG_OP(A).INPUT(x, TensorType({DT_INT8)", 1, r"expected ',' or '}', but got '\)'"),
    ("REG_OP(A).INPUT(x, TensorType DT_INT8)", 1, r"expected '\(', '{' or '::' after TensorType"),
    ('REG_OP(A).INPUT(x, "T").OP_END_FACTORY_REG(A)', 1, r'gives x the dtypes "T", and has no DATATYPE\(T, ...\)'),
    ("REG_OP(A).INPUT(x, DT_INT8)\n.INPUT(x, DT_INT8)", 2, "a second input is called 'x'"),
    ("REG_OP(A).ATTR(a, Int, 1)\n.REQUIRED_ATTR(a, Float)", 2, "a second attribute is called 'a'"),
    ("REG_OP(A).ATTR(a, Integer, 1)", 1, "expected the type of attribute a, but got 'Integer'"),
    ("REG_OP(A).ATTR(a, Int)", 1, r"expected ',' and a default in ATTR\(a, Int, ...\), but got '\)'"),
    ("REG_OP(A).REQUIRED_ATTR(a, Int, 1)", 1, r"expected '\)' at the end of REQUIRED_ATTR\(a, ...\), but got ','"),
    ("REG_OP(A).ATTR(a, Int,\n1.5)", 2, r"expected an integer for the default of attribute a \(Int\), but got 1.5"),
    ("REG_OP(A).ATTR(a, Int, -(true))", 1, "expected a number behind the sign of the default of attribute a"),
    ('REG_OP(A).ATTR(a, Float, -("1"))', 1, "expected a number behind the sign of the default of attribute a"),
    ("REG_OP(A).ATTR(a, Int, -(1)", 1, r"expected '\)' at the end of ATTR"),
    ("REG_OP(A).ATTR(a, Int, -(1, 2))", 1, r"expected '\)' after the default of attribute a"),
    ("REG_OP(A).ATTR(a, Int, 9223372036854775808)", 1, "must fit in 64 bits"),
    ("REG_OP(A).ATTR(a, Int, 12ab)", 1, "expected a number .* but got '12ab'"),
    ("REG_OP(A).ATTR(a, Float, 1e39)", 1, "must fit in a float of 32 bits"),
    ("REG_OP(A).ATTR(a, Float, 1e999)", 1, "must fit in a float of 32 bits"),
    ('REG_OP(A).ATTR(a, Float, "1")', 1, "expected a number for the default of attribute a"),
    ("REG_OP(A).ATTR(a, Bool, 2)", 1, "expected true or false .* but got 2"),
    ("REG_OP(A).ATTR(a, String, DT_INT8)", 1, "expected a string in quotes"),
    ("REG_OP(A).ATTR(a, String, 'x')", 1, "expected a string in quotes"),
    ("REG_OP(A).ATTR(a, Type, 5)", 1, "expected a ge::DataType for the default"),
    ("REG_OP(A).ATTR(a, ListInt, 1)", 1, "expected '{' for the default"),
    ("REG_OP(A).ATTR(a, ListInt, {1 2})", 1, r"expected ',' or '}', but got '2'"),
    ("REG_OP(A).ATTR(a, ListListInt, {1})", 1, "expected '{' for the default"),
    ("REG_OP(A).ATTR(a, Tensor, )", 1, "expected the default of attribute a"),
    ("REG_OP(A).ATTR(a, Tensor, Tensor(", 1, r"expected '\)' after the default of attribute a, but got the end"),
    ("REG_OP(A).OP_END_FACTORY_REG(A)\n\nREG_OP(A).OP_END_FACTORY_REG(A)", 3, r"REG_OP\(A\) is there already, at h.h:1"),
    ("namespace ge {\nREG_OP(A).OP_END_FACTORY_REG(A)", 1, "the namespace has no '}'"),
    ("\n}", 2, "'}' closes nothing"),
    ("// fine\n.INPUT(x, DT_INT8)", 2, r"expected REG_OP\(Name\) before .INPUT"),
    ("REGOP(Add)\n.INPUT(x, DT_INT8)", 2, r"expected REG_OP\(Name\) before .INPUT, but got '\)'"),
    ("int x\nREG_OP(A)", 2, "expected ';' before REG_OP"),
    ("class Unfinished", 1, r"expected REG_OP\(Name\), a namespace or a declaration that ends in ';'"),
    ("int f() {\n (} ", 2, "has a bracket that does not match"),
    ("struct S {", 1, "the declaration has no '}'"),
    ("\n/* open", 2, "the comment has no end"),
    ('REG_OP(A).ATTR(a, String, "x)\n', 1, "does not end on its line"),
    ('REG_OP(A).ATTR(a, String, "\\q")', 1, r"C\+\+ has no such escape in a string, but got \\q"),
    ('REG_OP(A).ATTR(a, String, "\\xff")', 1, "a string must be UTF-8"),
    ("#ifdef X\n", 1, "the #if has no #endif"),
    ("\n#endif", 2, "#endif without an #if"),
    ("#define M \\\n  (x) \\\n  y\nREG_OP(A).PUT(x)", 4, "expected a macro of REG_OP"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "message"), BAD, ids=[message[:30] for *_, message in BAD])
def test_malformed_headers_say_where_and_what(text, line, message):
    with pytest.raises(SchemaError, match=message) as caught:
        parse(text, "h.h")
    assert str(caught.value).startswith(f"h.h:{line}: ")


def test_a_header_that_cannot_be_read(tmp_path):
    with pytest.raises(ArgumentValueError, match="could not be read as a header.*No such file"):
        read(tmp_path / "nowhere.h")


CONDITIONS = r"""#if 0 // not yet
REG_OP(broken
#ifdef INNER
#endif
#else
REG_OP(A).OP_END_FACTORY_REG(A)
#endif
#ifdef B  /* of two
lines */
REG_OP(B).OP_END_FACTORY_REG(B)
#else
REG_OP(broken
#endif
enum E { ONE, TWO };
inline int f(int x) { return x; }
extern "C" { int g(); }
namespace a::b { using std::string; }
// REG_OP(C) \
REG_OP(still_in_the_comment
REG_OP(D).OP_END_FACTORY_REG(D)
"""


def test_text_that_the_preprocessor_removes():
    assert [(op.name, op.origin.line) for op in parse(CONDITIONS)] == [("A", 6), ("B", 10), ("D", 20)]


@pytest.mark.parametrize("macro", ["INPUT(x, ", "ATTR(a, Int, "])
def test_nesting_without_end(macro):
    brackets = "{" if "INPUT" in macro else "("
    with pytest.raises(SchemaError, match="h.h:1: more than 100 brackets are inside each other"):
        parse(f"REG_OP(A).{macro}{brackets * 100_000}", "h.h")


WHOLE = EVERY.read_text()


@pytest.mark.slow
@given(
    st.integers(0, len(WHOLE)),
    st.integers(0, 12),
    st.sampled_from([*"(){},.;\"'\\#/*<:-", " ", "REG_OP", "DT_"]),
)
@settings(max_examples=300)
def test_a_damaged_header_is_a_schema_error_or_harmless(start, length, instead):
    try:
        parse(WHOLE[:start] + instead + WHOLE[start + length :], "h.h")
    except SchemaError as problem:
        assert str(problem).startswith("h.h:")


names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)
texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=8)
dtypes = st.sampled_from(sorted(DTYPE_NUMBERS))
scalars = {
    "int": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32, allow_nan=False),
    "bool": st.booleans(),
    "str": texts,
    "dtype": dtypes.map(DTypeName),
}
dtype_sets = st.builds(
    lambda known, sequence: Types(tuple(known), sequence=sequence),
    st.lists(st.one_of(dtypes, st.sampled_from(sorted(NAMED_SETS))), max_size=4),
    st.booleans(),
)


def defaults(kind):
    row = ATTRIBUTE_TYPES[kind]
    if row.item == "opaque":
        return st.just(f"{kind}()")
    strategy = scalars[row.item]
    for _ in range(row.lists):
        strategy = st.lists(strategy, max_size=3).map(tuple)
    return strategy


attributes = st.sampled_from(sorted(ATTRIBUTE_TYPES)).flatmap(
    lambda kind: st.builds(AttributeItem, names, st.just(kind), defaults(kind))
)
required = st.builds(AttributeItem, names, st.sampled_from(sorted(ATTRIBUTE_TYPES)))
tensors = st.builds(TensorItem, st.sampled_from(sorted(TENSOR_MACROS)), names, dtype_sets)
graphs = st.builds(GraphItem, st.sampled_from(("GRAPH", "DYNAMIC_GRAPH")), names)
variables = st.builds(DatatypeItem, names, dtype_sets)


def kind_of(item):
    return (type(item), getattr(item, "is_input", None), item.name)


items = st.lists(st.one_of(attributes, required, tensors, graphs, variables), max_size=6, unique_by=kind_of)


@pytest.mark.slow
@given(st.lists(st.builds(Prototype, names, items.map(tuple)), max_size=3, unique_by=lambda op: op.name))
@settings(max_examples=150)
def test_a_written_header_reads_back_equal(ops):
    assert parse(header(ops)) == tuple(ops)


@given(texts)
def test_strings_survive_quoting(text):
    assert unescape(quote(text)[1:-1]) == text


def test_the_compiler_agrees_on_strings(tmp_path):
    text = 'a"b\\c\n\t\x01\x7f??/é\u2028😀1'
    source = tmp_path / "print.cc"
    source.write_text(f"#include <cstdio>\nint main() {{ std::fputs({quote(text)}, stdout); }}\n")
    subprocess.run(["g++", "-std=c++17", source, "-o", tmp_path / "print"], check=True)
    assert subprocess.run([tmp_path / "print"], capture_output=True, check=True).stdout.decode() == text


def test_macros_are_one_on_each_line():
    op = one('.INPUT(x,"T").ATTR(k,ListFloat,{1,2}).GRAPH(g).DATATYPE(T,TensorType{DT_INT8,ge::DT_INT4})')
    assert macros(op).splitlines() == [
        "REG_OP(Op)",
        '    .INPUT(x, "T")',
        "    .ATTR(k, ListFloat, {1.0, 2.0})",
        "    .GRAPH(g)",
        "    .DATATYPE(T, TensorType({DT_INT8, DT_INT4}))",
        "    .OP_END_FACTORY_REG(Op)",
    ]
