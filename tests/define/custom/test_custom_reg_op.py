import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyop.core.information.data_types import MEMBERS, DataType
from polyop.core.information.information import Information
from polyop.core.information.registration import of_decorated
from polyop.define.custom.reg_op import CustomRegOp, custom_info_register

SCALED = {
    "op_name": "scaled",
    "inputs": [{"index": 0, "name": "x", "paramType": "required"}, {"paramType": "dynamic", "shape": "all"}],
    "outputs": [{"index": 0, "name": "y", "paramType": "required"}],
    "attr": [
        {"name": "scale", "paramType": "optional", "type": "float", "defaultValue": "0.5"},
        {"name": "pads", "paramType": "required", "type": "listInt", "value": [1, 2]},
    ],
    "fusion_type": "ELEMWISE",
    "dtype_format": [(("float32", "DefaultFormat"), ("", ""), ("int32", "DefaultFormat", "list"))],
    "target": "GPU",
}


def scaled():
    info = CustomRegOp("scaled").input(0, "x", "required").input(param_type="dynamic", shape="all")
    info = (
        info.output(0, "y")
        .attr("scale", "optional", "float", "0.5")
        .attr("pads", "required", "listInt", value=[1, 2])
    )
    info = info.dtype_format(DataType.F32_Default, DataType.None_None, DataType.I32_Default_List)
    return info.fusion_type("ELEMWISE").target("GPU")


def test_every_method_writes_its_part():
    assert scaled().get_op_info() == SCALED


def test_the_start():
    assert CustomRegOp().target(None).get_op_info() == {
        "op_name": "Custom", "inputs": [], "outputs": [], "attr": [],
        "fusion_type": "", "dtype_format": [], "target": "UnKnown",
    }  # fmt: skip


def test_a_repeated_index_is_taken():
    info = CustomRegOp().input(0, "x").input(0, "y").output(0, "z").target("CPU").get_op_info()
    assert [i["index"] for i in info["inputs"]] == [0, 0]
    assert len(Information.from_any(info, subject="f", func_type="aot")[0].inputs) == 2


@pytest.mark.parametrize(("make", "error", "message"), [
    (lambda: CustomRegOp(3), ValueError, "op name value must be string, but got 3"),
    (lambda: CustomRegOp("  "), ValueError, "op name is empty"),
    (lambda: CustomRegOp().input("0"), TypeError, "index: value must be int, but got '0'"),
    (lambda: CustomRegOp().input(True), TypeError, "index: value must be int, but got True"),
    (lambda: CustomRegOp().input(0, 1), TypeError, "CustomRegOp.input: name: value must be str, but got 1"),
    (lambda: CustomRegOp().output(0, "y", 2), TypeError, "CustomRegOp.output: paramType: value must be str"),
    (lambda: CustomRegOp().output(0, "y", shape=3), TypeError, "shape: value must be str"),
    (lambda: CustomRegOp().attr(1), TypeError, "attr: name: value must be str"),
    (lambda: CustomRegOp().attr("a", "required", int), TypeError, "type: value must be str"),
    (lambda: CustomRegOp().attr("a", "required", "int", 4), TypeError, "defaultValue: value must be str, but got 4"),
    (lambda: CustomRegOp().fusion_type(None), TypeError, "value must be str"),
    (lambda: CustomRegOp().target(1), TypeError, "value must be str"),
    (lambda: CustomRegOp().dtype_format(DataType.F32_Default), ValueError,
     "The size of 'args' must be equal to the sum of input tensors and output tensors, but got 1 vs 0"),
    (lambda: CustomRegOp().input(0).dtype_format("float32"), ValueError, "tuple of two or three elements, but got 'float32'"),
    (lambda: CustomRegOp().input(0).dtype_format(("float32",)), ValueError, "tuple of two or three elements"),
    (lambda: CustomRegOp().input(0).dtype_format(("float32", 1)), ValueError, "tuple of two or three elements"),
    (lambda: custom_info_register(len), TypeError, "must be of type dict or str.*\n.*write @custom_info_register"),
    (lambda: custom_info_register(3), TypeError, "must be of type dict or str, but got 3"),
    (lambda: custom_info_register({})("lib.so:f"), TypeError,
     "must decorate a function, but got 'lib.so:f'.*\n.*goes to Custom's reg_info"),
])  # fmt: skip
def test_errors(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_what_is_returned_is_the_callers_own():
    values = [1, 2]
    builder = CustomRegOp().input(0, "x").attr("a", "required", "listInt", value=values)
    values.append(3)
    first = builder.get_op_info()
    assert first["attr"][0]["value"] == [1, 2]
    first["inputs"][0]["name"] = "changed"
    first["attr"][0]["value"].clear()
    first["dtype_format"].append("changed")
    assert builder.get_op_info()["inputs"][0]["name"] == "x"
    assert builder.get_op_info()["attr"][0]["value"] == [1, 2]
    assert builder.get_op_info()["dtype_format"] == []


@given(st.data())
def test_what_the_builder_writes_is_read_back_and_left_alone(data):
    param_types = st.sampled_from(["required", "optional", "dynamic"])
    inputs, outputs = (data.draw(st.lists(param_types, min_size=1, max_size=3)) for _ in range(2))
    builder = CustomRegOp()
    for i, kind in enumerate(inputs):
        builder.input(i, f"x{i}", kind)
    for i, kind in enumerate(outputs):
        builder.output(i, f"y{i}", kind)
    members = st.sampled_from(sorted(m for m in MEMBERS.values() if len(m) == 2))
    for _ in range(data.draw(st.integers(0, 3))):
        builder.dtype_format(*data.draw(st.tuples(*[members] * len(inputs + outputs))))
    info = builder.target(data.draw(st.sampled_from(["CPU", "GPU", "Ascend"]))).get_op_info()
    before = copy.deepcopy(info)
    (read,) = Information.from_any(info, subject="f", func_type="aot")
    assert info == before
    assert Information.from_any(json.dumps(info), subject="f", func_type="aot") == (read,)
    assert Information.from_any([[info], (json.dumps(info),)], subject="f", func_type="aot") == (read, read)
    assert [i.param_type for i in (*read.inputs, *read.outputs)] == inputs + outputs
    assert [[tuple(cell)[:2] for cell in row] for row in read.rows] == [
        list(row) for row in info["dtype_format"]
    ]


def test_the_decorator_attaches_a_copy_and_keeps_the_function():
    info = scaled().get_op_info()

    def double(x, *, times=2):
        """Twice."""
        return times * x

    decorated = custom_info_register(info, json.dumps(info))(double)
    info["target"] = "changed"
    assert decorated(3) == 6
    assert decorated(3, times=5) == 15
    assert (decorated.__name__, decorated.__doc__, decorated.__wrapped__) == ("double", "Twice.", double)
    assert not hasattr(double, "reg_info")
    attached = of_decorated(decorated)
    assert isinstance(attached, tuple)
    assert attached[0]["target"] == "GPU"
    assert len(Information.from_any(attached, subject="f", func_type="akg")) == 2
    assert of_decorated(double) is None
    assert of_decorated("lib.so:f") is None


def test_decorators_add_up():
    cpu, gpu = (CustomRegOp().input(0, "x").output(0, "y").target(t).get_op_info() for t in ("CPU", "GPU"))

    @custom_info_register(cpu)
    @custom_info_register(gpu)
    def double(x):
        return 2 * x

    assert [info["target"] for info in of_decorated(double)] == ["CPU", "GPU"]
