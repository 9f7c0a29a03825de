"""REG_OP prototypes of operators."""

import dataclasses

import numpy as np
import pytest

import polyop
from polyop.call.bound import BoundOperator
from polyop.call.operator import Operator
from polyop.core.errors import UnsupportedError
from polyop.core.information.information import Information
from polyop.core.parse import parse as parse_schema
from polyop.graph import header, parse, prototype_of
from polyop.graph.header import macros


def operator(schema, **options):
    name = f"from_operator::{schema}"
    options.setdefault("infer", lambda *arguments: arguments[0])
    return polyop.operator(name, lambda *arguments, **fixed: arguments[0], **options)


def lines(op, name=None):
    return [line.strip() for line in macros(prototype_of(op, name)).splitlines()]


def unregistered(schema):
    """Return an operator that is not registered with hosts: PyTorch has no lists of lists."""
    value = Operator(parse_schema(f"from_operator::{schema}"), infer=lambda arguments: (), kernels=())
    return BoundOperator(value, register=False)


def test_tensors_and_attributes():
    op = unregistered(
        "all_kinds(Tensor x, Tensor? bias, Tensor[] xs, int n, float eps=1e-8, *, bool flag=True, "
        'str mode="a\\"b", int[2] pads=1, float[] scales=[0.5, 2], bool[] flags=[True], '
        'str[] words=["a"], int[][] table=[[1, 2], [3]]) -> (Tensor first, Tensor)',
    )
    assert lines(op) == [
        "REG_OP(AllKinds)",
        ".INPUT(x, TensorType::ALL())",
        ".OPTIONAL_INPUT(bias, TensorType::ALL())",
        ".DYNAMIC_INPUT(xs, TensorType::ALL())",
        ".OUTPUT(first, TensorType::ALL())",
        ".OUTPUT(y1, TensorType::ALL())",
        ".REQUIRED_ATTR(n, Int)",
        ".ATTR(eps, Float, 1e-08)",
        ".ATTR(flag, Bool, true)",
        r'.ATTR(mode, String, "a\"b")',
        ".ATTR(pads, ListInt, {1, 1})",
        ".ATTR(scales, ListFloat, {0.5, 2.0})",
        ".ATTR(flags, ListBool, {true})",
        '.ATTR(words, ListString, {"a"})',
        ".ATTR(table, ListListInt, {{1, 2}, {3}})",
        ".OP_END_FACTORY_REG(AllKinds)",
    ]
    prototype = prototype_of(op)
    assert parse(header([prototype])) == (prototype,)


def test_another_name_and_an_output_beside_an_input_called_y():
    op = operator("add_custom(Tensor x, Tensor y) -> Tensor")
    assert lines(op, "MyAdd")[0] == "REG_OP(MyAdd)"
    assert ".OUTPUT(z, TensorType::ALL())" in lines(op)


def test_lists_of_results():
    op = operator("halves(Tensor x) -> Tensor[]", infer=lambda x: [x, x])
    assert ".DYNAMIC_OUTPUT(y, TensorType::ALL())" in lines(op)


def test_dtypes_of_a_kernel(tmp_path):
    source = tmp_path / "twice.cc"
    source.write_text(
        'extern "C" int twice(int n, void **p, int *d, long **s, const char **t, void *q, void *e) { return 0; }\n'
    )
    op = polyop.operator(
        "from_operator::twice(Tensor x) -> Tensor",
        f"{source}:twice",
        infer="x",
        dtypes=["float16", "float32"],
    )
    both = "TensorType({DT_FLOAT16, DT_FLOAT})"
    assert lines(op)[1:3] == [f".INPUT(x, {both})", f".OUTPUT(y, {both})"]
    unlike = polyop.operator(
        "from_operator::unlike(Tensor x) -> Tensor",
        f"{source}:twice",
        infer=lambda x: polyop.Spec(x.shape, "int32"),
        dtypes=["bfloat16"],
    )
    assert lines(unlike)[1:3] == [".INPUT(x, TensorType({DT_BF16}))", ".OUTPUT(y, TensorType::ALL())"]


def info(target, *rows):
    cells = [[(name, "DefaultFormat") for name in row] for row in rows]
    fields = {
        "inputs": [{"index": 0, "name": "x"}, {"index": 1, "name": "index"}],
        "outputs": [{"index": 0, "name": "picked"}],
        "attr": [{"name": "depth", "type": "int", "value": 3}],
        "dtype_format": cells,
        "target": target,
    }
    return Information.from_any(fields, subject="test", func_type="aot")


def test_dtypes_and_names_come_from_the_information_for_ascend_first():
    import dataclasses

    plain = operator("pick(Tensor a, Tensor b) -> Tensor").operator
    of_cpu = info("CPU", ("float64", "int64", "float64"))
    of_ascend = info("Ascend", ("float16", "int32", "float16"), ("float32", "int32", "float32"))
    op = dataclasses.replace(plain, information=(*of_cpu, *of_ascend))
    assert lines(op)[1:5] == [
        ".INPUT(a, TensorType({DT_FLOAT16, DT_FLOAT}))",
        ".INPUT(b, TensorType({DT_INT32}))",
        ".OUTPUT(picked, TensorType({DT_FLOAT16, DT_FLOAT}))",
        ".ATTR(depth, Int, 3)",
    ]
    more = operator("pick_two(Tensor a, Tensor b) -> (Tensor, Tensor)", infer=lambda a, b: (a, b)).operator
    more = dataclasses.replace(more, information=of_ascend)  # which says nothing of the second result
    assert lines(more)[3:5] == [
        ".OUTPUT(picked, TensorType({DT_FLOAT16, DT_FLOAT}))",
        ".OUTPUT(y1, TensorType::ALL())",
    ]
    anything = dataclasses.replace(plain, information=info("CPU", ("", "int64", "float8_e5m2")))
    assert lines(anything)[1:4] == [
        ".INPUT(a, TensorType::ALL())",
        ".INPUT(b, TensorType({DT_INT64}))",
        ".OUTPUT(picked, TensorType({DT_FLOAT8_E5M2}))",
    ]


def test_an_argument_written_in_place_is_input_and_output():
    def fill(x, value):
        x[...] = value

    op = polyop.operator("from_operator::fill(Tensor(a!) x, float value) -> ()", fill, infer=lambda x, v: ())
    assert lines(op)[1:4] == [
        ".INPUT(x, TensorType::ALL())",
        ".OUTPUT(x, TensorType::ALL())",
        ".REQUIRED_ATTR(value, Float)",
    ]
    x = np.zeros(2)
    op(x, 3.0)
    assert list(x) == [3.0, 3.0]


def test_fixed_values_become_attributes():
    op = operator("fixed(Tensor x) -> Tensor", attributes={"k": 2, "w": [0.5, 1], "empty": []})
    assert lines(op)[3:6] == [
        ".ATTR(k, Int, 2)",
        ".ATTR(w, ListFloat, {0.5, 1.0})",
        ".ATTR(empty, ListInt, {})",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            "Tensor x, int? n=None",
            r"argument n: an attribute of GE always has a value, but got int\?\n.*\n  give it",
        ),
        (
            "Tensor x, Scalar s",
            "argument s: GE has attributes of int, .*, but got Scalar\n.*\n  say float or int",
        ),
        ("Tensor x, Device d", "argument d: GE has attributes of .*, but got Device"),
        ("Tensor x, float k=1e300", "attribute k: GE's floats have 32 bits, but got 1e\\+300"),
        ("Tensor?[] x", "argument x: GE has tensors, optional tensors and lists"),
    ],
)
def test_schemas_that_ge_cannot_hold(arguments, message):
    name = f"bad_{abs(hash(arguments))}"
    with pytest.raises(UnsupportedError, match=f"from_operator::{name}: {message}") as caught:
        prototype_of(operator(f"{name}({arguments}) -> Tensor", infer=lambda *a: polyop.Spec((1,), "int8")))
    assert f"defined at {__file__}" in str(caught.value)


@pytest.fixture(scope="session")
def plain():
    return operator("other(Tensor a, Tensor b) -> Tensor").operator


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        (
            "information",
            info("CPU", ("float8_e4m3fnuz", "int8", "int8")),
            "dtypes: GE's dtypes are those of .*, but got float8_e4m3fnuz",
        ),
        ("attributes", {"k": {"a": 1}}, "attribute k: GE has no attribute for its value"),
        ("attributes", {"k": [1, "a"]}, "attribute k: GE has no attribute for its value"),
    ],
)
def test_dtypes_and_values_that_ge_does_not_have(plain, field, value, message):
    with pytest.raises(UnsupportedError, match=message):
        prototype_of(dataclasses.replace(plain, **{field: value}))
