import copy
import json
import pickle
import re
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyop.core.dtypes import dtype
from polyop.core.errors import ArgumentTypeError, InformationError
from polyop.core.information.attribute_types import VALUE_TYPES, parse_default
from polyop.core.information.information import Information, check_function, check_required
from polyop.core.schema import MISSING
from polyop.core.spec import Spec

F32, F64, I32 = (Spec((2, 3), dtype(name)) for name in ("float32", "float64", "int32"))
F, D, I, ANY = (
    ("float32", "DefaultFormat"),
    ("float64", "DefaultFormat"),
    ("int32", "DefaultFormat"),
    ("", ""),
)


def information(*rows, inputs=("required",), outputs=("required",), attr=(), func_type="aot", **rest):
    info = {
        "inputs": [{"index": i, "name": f"x{i}", "paramType": kind} for i, kind in enumerate(inputs)],
        "outputs": [{"index": i, "paramType": kind} for i, kind in enumerate(outputs)],
        "attr": list(attr),
        "dtype_format": list(rows),
        "target": "CPU",
        **rest,
    }
    (parsed,) = Information.from_any(info, subject="demo", func_type=func_type)
    return parsed


def attribute(name="a", **rest):
    return {"name": name, "paramType": "required", **rest}


# The forms of reg_info

PLAIN = {"op_name": "f", "inputs": [{"index": 0, "name": "x"}], "outputs": [{"index": 0}], "target": "GPU"}


@pytest.mark.parametrize("form", [
    lambda i: i, json.dumps, lambda i: [i], lambda i: (i,), lambda i: [[(i,)], []], lambda i: json.dumps([[i]]),
    lambda i: [json.dumps(i)],
])  # fmt: skip
def test_every_form_is_parsed_to_the_same(form):
    (parsed,) = Information.from_any(form(PLAIN), subject="demo", func_type="aot")
    assert (parsed,) == Information.from_any(PLAIN, subject="demo", func_type="aot")
    assert (parsed.op_name, parsed.target, parsed.fusion_type, parsed.rows) == ("f", "GPU", "OPAQUE", ())
    assert parsed.origin is not None
    assert parsed.origin.file == __file__


def test_empty_lists_have_no_information():
    assert Information.from_any([(), []], subject="demo", func_type="aot") == ()


@pytest.mark.parametrize(("reg_info", "message"), [
    (3, "must be of type dict, but got 3 \\(int\\)"),
    (None, "must be of type dict, but got None"),
    ([PLAIN, 3], "must be of type dict, but got 3"),
    ("3", "must be of type dict, but got 3"),
    ('"text"', "must be of type dict"),
    (json.dumps(json.dumps(PLAIN)), "must be of type dict"),
])  # fmt: skip
def test_other_types_than_dictionaries_are_refused(reg_info, message):
    with pytest.raises(ArgumentTypeError, match=f"demo: the registration information {message}"):
        Information.from_any(reg_info, subject="demo", func_type="aot")


def test_a_builder_instead_of_its_result_says_what_to_call():
    from polyop.define.custom.reg_op import CustomRegOp

    with pytest.raises(TypeError, match=r"must be of type dict(.|\n)*get_op_info"):
        Information.from_any(CustomRegOp(), subject="demo", func_type="aot")


@pytest.mark.parametrize("text", ["{'op_name': 1}", "", "[" * 100_000])
def test_a_broken_text_is_refused(text):
    with pytest.raises(InformationError, match="must be JSON when it is a text"):
        Information.from_any(text, subject="demo", func_type="aot")


@pytest.mark.parametrize(("info", "message"), [
    ({"inputs": 3}, "inputs: must be a list of dictionaries, but got 3"),
    ({"inputs": [3]}, "inputs: must be a list of dictionaries"),
    ({"inputs": [{"index": "0"}]}, "inputs\\[0\\]: the index must be an int, but got '0'"),
    ({"inputs": [{"name": 1}]}, "inputs\\[0\\]: name must be a text, but got 1"),
    ({"outputs": [{}, {"paramType": "many"}]}, "outputs\\[1\\]: the param_type must be one of required, dynamic, optional"),
    ({"inputs": [{"index": 1}, {"index": 0}]}, "inputs must be listed in the order of their indices, but got \\[1, 0\\]"),
    ({"dtype_format": 3}, "dtype_format: must be a list of rows"),
    ({"inputs": [{}], "dtype_format": [[F, F]]}, "row 0 must have one cell per input and output, 1, but got 2"),
    ({"inputs": [{}], "dtype_format": [[["float32"]]]}, "row 0: a cell must be two or three texts"),
    ({"inputs": [{}], "dtype_format": [[F], [("float31", "")]]}, "row 1: dtype: must be a known name, .*'float31'"),
    ({"inputs": [{}], "dtype_format": [[(*F, "set")]]}, "third text of a cell must be 'tuple' or 'list'"),
    ({"inputs": [{}], "dtype_format": [[(*F, "list")], [F]]}, "rows disagree whether column 0 is one tensor or a list"),
    ({"attr": [{"type": "int"}]}, "attr\\[0\\]: an attribute must have a name"),
    ({"attr": [attribute(type="int"), attribute(type="int")]}, "attr\\[1\\] 'a': the name is that of another attribute"),
    ({"attr": [attribute(type="integer")]}, "value type must be one of int, str, .*, but got integer"),
    ({"attr": [attribute()]}, "value type must be one of"),
    ({"attr": [attribute(type="int", paramType="dynamic")]}, "param_type must be one of required, optional, but got 'dynamic'"),
    ({"attr": [attribute(type="int", value=1.5)]}, "'a': the value must be of type int, but got 1.5 \\(float\\)"),
    ({"attr": [attribute(type="listFloat", value="1,2")]}, "must be of type listFloat"),
    ({"attr": [attribute(type="all", value={"k": 2})]}, "must be of type all"),
    ({"attr": [attribute(type="tensor", value=[1])]}, "a tensor cannot be a constant"),
])  # fmt: skip
def test_information_that_contradicts_itself_is_refused(info, message):
    with pytest.raises(InformationError, match=f"demo: registration information.*{message}"):
        Information.from_any({"target": "CPU", **info}, subject="demo", func_type="aot")


# Targets


@pytest.mark.parametrize(("info", "func_type", "target"), [
    ({"target": "Ascend", "processor": "CUDA"}, "aot", "Ascend"),
    ({"target": "UnKnown", "processor": "AiCore"}, "aot", "Ascend"),
    ({"processor": "CUDA", "imply_type": "AKG"}, "akg", "GPU"),
    ({"processor": "CPU", "imply_type": "GPU"}, "akg", "CPU"),
    ({"processor": "other", "imply_type": "TBE"}, "aot", "Ascend"),
    ({"imply_type": "CPU"}, "tbe", "CPU"),
    ({"imply_type": "AKG"}, "tbe", "Ascend"),
    ({"target": None}, "pyfunc", "CPU"),
])  # fmt: skip
def test_the_target_is_the_first_that_something_tells(info, func_type, target):
    assert Information.from_any(info, subject="demo", func_type=func_type)[0].target == target


@pytest.mark.parametrize(
    ("info", "func_type"), [({}, "aot"), ({"imply_type": "AKG"}, "hybrid"), ({"target": "TPU"}, "pyfunc")]
)
def test_no_target_is_refused(info, func_type):
    message = r"target set in registration information must be one of \['Ascend', 'GPU', 'CPU'\], but got"
    with pytest.raises(ValueError, match=message):
        Information.from_any(info, subject="demo", func_type=func_type)


# Attributes


@pytest.mark.parametrize(("value_type", "schema", "default", "value"), [
    ("int", "int", "-3", -3),
    ("str", "str", "a,b", "a,b"),
    ("bool", "bool", "True", True),
    ("float", "float", "1e-5", 1e-5),
    ("double", "float", "2", 2.0),
    ("number", "Scalar", "2", 2),
    ("number", "Scalar", "2.5", 2.5),
    ("all", "Scalar", "false", False),
    ("all", "Scalar", "same", "same"),
    ("listInt", "int[]", "1, 2,3", (1, 2, 3)),
    ("listInt", "int[]", "", ()),
    ("listStr", "str[]", "a, b", ("a", "b")),
    ("listBool", "bool[]", "true,false", (True, False)),
    ("listFloat", "float[]", "1,2.5", (1.0, 2.5)),
    ("listListInt", "int[][]", "[[1, 2], []]", ((1, 2), ())),
])  # fmt: skip
def test_defaults_are_read_from_texts(value_type, schema, default, value):
    (parsed,) = information(attr=[attribute(type=value_type, defaultValue=default)]).call_attributes
    assert parsed.schema_type == schema
    assert parsed.default == value
    assert type(parsed.default) is type(value)
    assert parsed.value is MISSING


@pytest.mark.parametrize(("value_type", "default"), [
    ("int", "1.5"), ("int", "0x10"), ("int", "1_000"), ("bool", "yes"), ("float", "one"), ("number", "x"), ("tensor", "1"),
    ("listInt", "1;2"), ("listInt", "1,"), ("listBool", "true,1"), ("listFloat", "1,x"), ("listListInt", "1,2"), ("listListInt", "[[1.5]]"),
])  # fmt: skip
def test_a_default_of_another_type_is_refused(value_type, default):
    with pytest.raises(
        InformationError,
        match=f"the default value must be the text of a {value_type}.*{re.escape(repr(default))}",
    ):
        information(attr=[attribute(type=value_type, defaultValue=default)])


@given(st.sampled_from(sorted(VALUE_TYPES)), st.text())
def test_any_text_as_default_is_read_or_refused(value_type, text):
    try:
        parse_default(value_type, text, "demo")
    except InformationError as problem:
        assert value_type in str(problem)


@given(st.lists(st.floats(allow_nan=False)), st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_defaults_of_lists_round_trip(floats, ints):
    assert parse_default("listFloat", ",".join(map(repr, floats)), "demo") == tuple(floats)
    assert parse_default("listInt", ",".join(map(str, ints)), "demo") == tuple(ints)


def test_a_value_makes_a_constant_and_no_value_an_argument():
    parsed = information(attr=[
        attribute("scale", type="float"),
        attribute("pads", type="listFloat", value=[2, 3.0]),
        attribute("mode", value="same"),
        attribute("sizes", value=[1, 2]),
        attribute("none", type="int", value=None),
    ])  # fmt: skip
    assert [(a.name, a.value) for a in parsed.constants] == [
        ("pads", (2.0, 3.0)),
        ("mode", "same"),
        ("sizes", (1, 2)),
    ]
    assert [a.value_type for a in parsed.constants] == ["listFloat", "str", "listInt"]
    assert [a.name for a in parsed.call_attributes] == ["scale", "none"]


def test_the_value_all_of_tbe_builders_is_no_constant():
    assert information(attr=[attribute(type="float", value="all")]).constants == ()
    assert information(attr=[attribute(type="str", value="all")], func_type="tbe").constants == ()
    assert information(attr=[attribute(type="str", value="all")]).constants[0].value == "all"


def test_keys_as_the_documents_spell_them():
    info = {
        "inputs": [{"param_type": "optional"}],
        "attr": [{"name": "a", "value_type": "int", "default_value": "3"}],
        "target": "CPU",
    }
    (parsed,) = Information.from_any(info, subject="demo", func_type="aot")
    assert parsed.inputs[0].param_type == "optional"
    assert parsed.attributes[0].default == 3


# Which tensors are accepted


def test_a_row_accepts_its_dtypes_and_the_reason_names_input_and_dtypes():
    parsed = information((F, F), (I, F))
    assert parsed.refuse([F32]) is None
    assert parsed.refuse([I32], [F32]) is None
    assert parsed.refuse([F64]) == "input 0 'x0' must be float32 or int32, and is float64"
    assert parsed.refuse([F32], [F64]) == "output 0 must be float32, and is float64"


def test_rows_are_matched_whole():
    parsed = information((F, I, F), (I, F, F), inputs=("required", "required"))
    assert parsed.refuse([F32, I32]) is None
    assert parsed.refuse([F32, F32], [F32]) == (
        "no row of the operator information has (float32, float32, float32); "
        "the rows are (float32, int32, float32), (int32, float32, float32)"
    )


def test_of_many_rows_only_the_first_are_listed():
    parsed = information(
        *[(("int32", "NHWC" if i % 2 else ""), F, F) for i in range(20)], (F, I, F), inputs=("required",) * 2
    )
    assert parsed.refuse([F32, F32]).endswith("and 13 more")


def test_an_empty_dtype_is_any():
    parsed = information((ANY, F))
    assert parsed.refuse([F64], [F32]) is None
    assert parsed.refuse([F64], [F64]) is not None


@pytest.mark.parametrize("rows", [(), ((F,),)])
def test_without_rows_or_inputs_all_dtypes_are_accepted(rows):
    assert information(*rows, inputs=()).refuse([F64, I32]) is None


@pytest.mark.parametrize("name", ["", "DefaultFormat", "ND", "NCHW", "NCDHW"])
def test_dense_formats(name):
    assert information((("float32", name), F)).refuse([F32]) is None


@pytest.mark.parametrize("name", ["NHWC", "NC1HWC0", "ChannelLast", "FRACTAL_NZ", "HWCN"])
def test_other_formats_are_refused_by_name(name):
    parsed = information((("float32", name), F), (D, ("float64", name)))
    assert parsed.refuse([F32]).startswith(
        f"input 0 'x0' must have the format {name}, and polyop's tensors are dense"
    )
    assert parsed.refuse([F64]).startswith(f"output 0 must have the format {name}")
    assert parsed.output_dtypes([F32]) is None
    assert information((("float32", name), F), (F, F)).refuse([F32]) is None


def test_optional_inputs():
    parsed = information((F, I, F), inputs=("required", "optional"))
    assert parsed.refuse([F32, None]) is None
    assert parsed.refuse([F32, I32]) is None
    assert parsed.refuse([F32, F64]) == "input 1 'x1' must be int32, and is float64"
    assert parsed.refuse([None, I32]) == "input 0 'x0' is required, and the call has none"
    assert parsed.refuse([F32]) == "the operator information has 2 inputs, and the call has 1"


def test_a_list_of_tensors_shares_one_cell():
    parsed = information((F, I, F), inputs=("dynamic", "required"))
    assert parsed.refuse([[F32, F32, F32], I32]) is None
    assert parsed.refuse([[], I32]) is None
    assert parsed.refuse([[F32, F64], I32]) == "input 0 'x0' must be float32, and is float64"
    assert parsed.refuse([[F32], [I32]]) == "input 1 'x1' is one tensor, and the call has a list of 1"
    assert parsed.refuse([None, I32]) == "input 0 'x0' is dynamic, and the call has none"


def test_a_cell_of_a_tuple_makes_the_input_a_list():
    parsed = information(((*F, "tuple"), F))
    assert parsed.inputs[0].param_type == "dynamic"
    assert parsed.refuse([[F32, F32]]) is None


def test_a_list_of_outputs_may_be_passed_flat():
    parsed = information((F, I, F, D), outputs=("required", "dynamic", "required"))
    assert parsed.multi_output
    for outputs in ([I32, F32, F32, F64], [I32, F64], [I32, [F32, F32], F64]):
        assert parsed.refuse([F32], outputs) is None, outputs
    assert parsed.refuse([F32], [I32, F64, F64]) == "output 1 must be float32, and is float64"
    assert parsed.refuse([F32], [I32]) == "the operator information has 3 outputs, and the call has 1"
    assert (
        information((F, F)).refuse([F32], [F32, F32])
        == "the operator information has 1 outputs, and the call has 2"
    )


def test_tensors_passed_as_attributes_are_counted_and_not_compared():
    parsed = information((F, F), attr=[attribute(type="tensor")])
    assert parsed.refuse([F32, F64]) is None
    assert parsed.refuse([F32]) == "the operator information has 2 inputs, and the call has 1"


@pytest.mark.parametrize(("outputs", "expected"), [
    (("required",), False), (("dynamic",), True), (("required", "required"), True), ((), False),
])  # fmt: skip
def test_several_outputs(outputs, expected):
    assert information(outputs=outputs).multi_output is expected


def test_output_dtypes_come_from_the_row_of_the_inputs():
    parsed = information((F, I, F), (D, D, F), outputs=("required", "required"))
    assert parsed.output_dtypes([F32]) == (dtype("int32"), dtype("float32"))
    assert parsed.output_dtypes([F64]) == (dtype("float64"), dtype("float32"))
    assert parsed.output_dtypes([I32]) is None
    assert parsed.output_dtypes([F32, F32]) is None


@pytest.mark.parametrize("rows", [(), ((ANY, ANY),), ((F, I), (F, D)), ((F, F), (ANY, ANY))])
def test_open_or_contradicting_rows_have_no_output_dtype(rows):
    assert information(*rows).output_dtypes([F32]) is None


CELLS = st.tuples(
    st.sampled_from(["", "float32", "float64", "int32"]), st.sampled_from(["", "DefaultFormat", "NHWC"])
)


@given(st.data(), st.integers(1, 3), st.integers(1, 2))
def test_refuse_equals_a_search_through_the_rows(data, n_inputs, n_outputs):
    rows = data.draw(st.lists(st.tuples(*[CELLS] * (n_inputs + n_outputs)), max_size=5))
    specs = data.draw(
        st.lists(
            st.sampled_from([F32, F64, I32]), min_size=n_inputs + n_outputs, max_size=n_inputs + n_outputs
        )
    )
    parsed = information(*rows, inputs=("required",) * n_inputs, outputs=("required",) * n_outputs)
    accepted = not rows or any(
        all(
            cell[0] in ("", spec.dtype.name) and cell[1] != "NHWC"
            for cell, spec in zip(row, specs, strict=True)
        )
        for row in rows
    )
    reason = parsed.refuse(specs[:n_inputs], specs[n_inputs:])
    assert (reason is None) == accepted, reason
    output_dtypes = parsed.output_dtypes(specs[:n_inputs])
    if output_dtypes is not None:
        outputs = [Spec((1,), d) for d in output_dtypes]
        assert parsed.refuse(specs[:n_inputs], outputs) is None


# The input is not changed, and later changes to it have no effect

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
KEYS = st.sampled_from(
    ["op_name", "inputs", "outputs", "attr", "dtype_format", "target", "fusion_type", "imply_type", "more"]
)


@pytest.mark.slow
@given(st.dictionaries(KEYS, JSON))
def test_any_dictionary_is_parsed_or_refused_and_never_changed(info):
    before = copy.deepcopy(info)
    try:
        (parsed,) = Information.from_any(info, subject="demo", func_type="pyfunc")
    except InformationError as problem:
        assert "demo" in str(problem)
        parsed = None
    assert info == before
    if parsed is not None:
        assert Information.from_any(json.dumps(info), subject="demo", func_type="pyfunc") == (parsed,)
        assert pickle.loads(pickle.dumps(parsed)) == parsed
        assert hash(parsed) == hash(copy.deepcopy(parsed))


def test_later_changes_by_the_caller_have_no_effect():
    info = {"attr": [attribute(type="listInt", value=[1])], "more": {"a": [1]}, "target": "CPU"}
    (parsed,) = Information.from_any(info, subject="demo", func_type="aot")
    (unchanged,) = Information.from_any(json.dumps(info), subject="demo", func_type="aot")
    info["attr"][0]["value"].append(2)
    info["more"]["a"].append(2)
    assert parsed == unchanged
    assert parsed.constants[0].value == (1,)


def test_mappings_need_not_be_dictionaries():
    class Frozen(Mapping):
        def __getitem__(self, key):
            return PLAIN[key]

        def __iter__(self):
            return iter(PLAIN)

        def __len__(self):
            return len(PLAIN)

    assert Information.from_any(Frozen(), subject="demo", func_type="aot")[0].target == "GPU"


# Information and function


def test_information_that_fits_the_function():
    parsed = information(
        inputs=("required", "optional"), attr=[attribute("alpha", type="float"), attribute("beta", value=1)]
    )
    check_function(parsed, 2, 1, ["beta", "alpha"], "demo")
    check_function(parsed, None, None, None, "demo")
    check_function(information(inputs=(), outputs=()), 2, 3, [], "demo")
    check_function(information(outputs=("dynamic",)), 1, 4, [], "demo")


@pytest.mark.parametrize(("n_inputs", "n_outputs", "names", "message"), [
    (3, 1, None, "has 2 inputs, and the function must have as many, but got 3"),
    (2, 2, None, "has 1 outputs, and the function must have as many, but got 2"),
    (2, 1, ["a", "b"], r"has the attributes \['a'\], and the function must have the same, but got \['a', 'b'\]"),
    (2, 1, [], r"has the attributes \['a'\]"),
])  # fmt: skip
def test_information_that_does_not_fit_names_both_numbers_and_both_places(
    n_inputs, n_outputs, names, message
):
    parsed = information(inputs=("required",) * 2, attr=[attribute(type="int")])
    with pytest.raises(InformationError, match=f"demo: the registration information {message}") as excinfo:
        check_function(parsed, n_inputs, n_outputs, names, "demo", "ops.py:3")
    assert "ops.py:3 (the function), " in str(excinfo.value)
    assert f"{__file__}:{parsed.origin.line} (the information)" in str(excinfo.value)


@pytest.mark.parametrize(
    ("func_type", "names"), [("tbe", []), ("aicpu", []), ("akg", ["alpha"]), ("hybrid", ["alpha"])]
)
def test_kinds_of_kernels_that_need_information(func_type, names):
    with pytest.raises(
        ValueError, match=f"the registration information must be set for {func_type} kernels"
    ) as excinfo:
        check_required(func_type, (), names, "demo", "ops.py:3")
    assert "ops.py:3" in str(excinfo.value)
    assert "reg_info" in str(excinfo.value)
    check_required(func_type, [information()], names, "demo")


@pytest.mark.parametrize(
    ("func_type", "names"), [("aot", ["alpha"]), ("pyfunc", ["alpha"]), ("akg", []), ("hybrid", [])]
)
def test_kinds_of_kernels_that_need_no_information(func_type, names):
    check_required(func_type, (), names, "demo")
