"""Programs of func_type "aot": shapes and dtypes, attributes, registration information, kernels."""

import json
import os

import numpy as np

from .rows import SQUARE, X, Y, program

RULES = "out_shape and out_dtype"
ATTRIBUTES = "attributes"
INFORMATION = "reg_info"
KERNELS = "kernels"
PAIR = (X, Y)


def add(x, y):
    return x + y


def sum_difference(x, y):
    return x + y, x - y


def scaled(x):
    return x * np.float32(0.5)


# out_shape and out_dtype


@program(RULES, PAIR, add)
def a_shape_and_a_dtype(w):
    return w.Custom(w.source("Add"), (3,), w.float32, "aot")


@program(RULES, PAIR, add)
def a_list_for_the_shape(w):
    return w.Custom(w.source("Add"), [3], w.float32, "aot")


@program(RULES, PAIR, add)
def functions_of_shapes_and_dtypes(w):
    return w.Custom(w.source("Add"), lambda x, y: x, lambda x, y: x, "aot")


@program(RULES, PAIR, lambda x, y: (x + y,))
def a_tuple_of_one(w):
    return w.Custom(w.source("Add"), ((3,),), (w.float32,), "aot")


@program(RULES, PAIR, lambda x, y: (x + y,))
def a_list_of_one(w):
    return w.Custom(w.source("Add"), [[3]], [w.float32], "aot")


@program(RULES, PAIR, sum_difference)
def two_in_tuples(w):
    return w.Custom(w.source("SumDifference"), ((3,), (3,)), (w.float32, w.float32), "aot")


@program(RULES, PAIR, sum_difference)
def two_in_lists(w):
    return w.Custom(w.source("SumDifference"), [[3], [3]], [w.float32, w.float32], "aot")


@program(RULES, PAIR, sum_difference)
def functions_that_return_two(w):
    return w.Custom(w.source("SumDifference"), lambda x, y: (x, y), lambda x, y: (x, y), "aot")


@program(RULES, PAIR, add)
def a_function_for_the_shape_and_a_dtype(w):
    return w.Custom(w.source("Add"), lambda x, y: [x[0]], w.float32, "aot")


@program(RULES, PAIR, add)
def a_shape_and_a_function_for_the_dtype(w):
    return w.Custom(w.source("Add"), (3,), lambda x, y: y, "aot")


@program(RULES, PAIR, add)
def a_function_with_a_closure(w):
    sizes = [3]

    def shape(x, y):
        return sizes

    return w.Custom(w.source("Add"), shape, lambda x, y: w.float32, "aot")


@program(RULES, PAIR, add, own="")
def none_asks_the_library(w):
    return w.Custom(w.source("Add"), None, None, "aot")


@program(RULES, PAIR, add, own="")
def none_for_the_shape_alone(w):
    return w.Custom(w.source("Add"), None, w.float32, "aot")


@program(RULES, PAIR, add, own="")
def none_for_the_dtype_alone(w):
    return w.Custom(w.source("Add"), lambda x, y: x, out_dtype=None, func_type="aot")


@program(RULES, PAIR, sum_difference)
def none_for_two_outputs(w):
    return w.Custom(
        w.source("SumDifference"), None, None, "aot", reg_info=w.information(outputs=2).get_op_info()
    )


@program(RULES, PAIR, error="returned a list of shapes, where the operator has one output", own=None)
def none_for_two_outputs_that_nothing_counts(w):
    return w.Custom(w.source("SumDifference"), None, None, "aot")


@program(RULES, PAIR, error="BareInferShape", own="")
def none_and_a_library_that_infers_nothing(w):
    return w.Custom(w.source("Bare"), None, None, "aot")


@program(RULES, PAIR, error=r"'out_shape' must be one of \[tuple, list, function\]", own="")
def a_text_for_the_shape(w):
    return w.Custom(w.source("Add"), "three", w.float32, "aot")


@program(RULES, PAIR, error="a dimension must be an integer", own="")
def a_shape_of_a_float(w):
    return w.Custom(w.source("Add"), lambda x, y: [x[0] / 1], w.float32, "aot")


@program(RULES, PAIR, error="the function raised IndexError", own="")
def a_function_that_raises(w):
    return w.Custom(w.source("Add"), lambda x, y: [x[4]], w.float32, "aot")


# attributes


@program(ATTRIBUTES, (X,), scaled)
def an_attribute_by_call(w):
    info = w.information(1).attr("scale", "required", "float").get_op_info()
    op = w.Custom(w.source("Scale"), lambda x, _: x, lambda x, _: x, "aot", reg_info=info)

    def net(x):
        return op(x, 0.5)

    return net


@program(ATTRIBUTES, (X,), scaled)
def an_attribute_by_call_and_rules_of_the_tensor(w):
    info = w.information(1).attr("scale", "required", "float").get_op_info()
    op = w.Custom(w.source("Scale"), (3,), w.float32, "aot", reg_info=info)

    def net(x):
        return op(x, 0.5)

    return net


@program(ATTRIBUTES, (X,), scaled)
def an_attribute_by_call_and_cpp_rules(w):
    info = w.information(1).attr("scale", "required", "float").get_op_info()
    op = w.Custom(w.source("Scale"), None, None, "aot", reg_info=info)

    def net(x):
        return op(x, 0.5)

    return net


@program(ATTRIBUTES, (X,), scaled, own="")
def an_attribute_by_name(w):
    info = w.information(1).attr("scale", "required", "float").get_op_info()
    op = w.Custom(w.source("Scale"), lambda x, _: x, lambda x, _: x, "aot", reg_info=info)

    def net(x):
        return op(x, scale=0.5)

    return net


@program(ATTRIBUTES, (X,), scaled)
def an_attribute_by_value(w):
    info = w.information(1).attr("scale", "required", "float", value=0.5).get_op_info()
    return w.Custom(w.source("Scale"), lambda x: x, lambda x: x, "aot", reg_info=info)


@program(ATTRIBUTES, (X,), scaled)
def an_attribute_by_add_prim_attr(w):
    op = w.Custom(w.source("Scale"), lambda x: x, lambda x: x, "aot")
    return op.add_prim_attr("scale", 0.5)


@program(ATTRIBUTES, (X,), scaled)
def an_attribute_by_add_prim_attr_in_a_statement(w):
    op = w.Custom(w.source("Scale"), None, None, "aot", reg_info=w.information(1).get_op_info())
    op.add_prim_attr("scale", 0.5)
    return op


EVERY = {"flag": True, "whole": 2, "real": 0.5, "word": "ten", "wholes": [3, 4], "reals": [0.25, 0.25]}


@program(ATTRIBUTES, (X,), lambda x: x + 29)
def attributes_of_every_type(w):
    op = w.Custom(w.source("Every"), lambda x: x, lambda x: x, "aot")
    for name, value in EVERY.items():
        op.add_prim_attr(name, value)
    return op.add_prim_attr("rows", [[3, 1], [5, 1]])


@program(ATTRIBUTES, (X,), lambda x: x + 21)
def attributes_of_every_type_by_value(w):
    kinds = {
        "flag": "bool",
        "whole": "int",
        "real": "float",
        "word": "str",
        "wholes": "listInt",
        "reals": "listFloat",
    }
    info = w.information(1)
    for name, value in EVERY.items():
        info.attr(name, "required", kinds[name], value=value)
    return w.Custom(w.source("Every"), lambda x: x, lambda x: x, "aot", reg_info=info.get_op_info())


@program(ATTRIBUTES, (X,), lambda x: x[:2])
def a_shape_from_an_attribute(w):
    op = w.Custom(w.source("Head"), None, None, "aot", reg_info=w.information(1).get_op_info())
    return op.add_prim_attr("k", 2)


@program(ATTRIBUTES, (X,), lambda x: x[:2], own="")
def a_shape_from_an_attribute_without_information(w):
    return w.Custom(w.source("Head"), None, w.float32, "aot").add_prim_attr("k", 2)


@program(ATTRIBUTES, (X,), error="there is no attribute called scale", own="")
def an_attribute_that_is_missing(w):
    return w.Custom(w.source("Scale"), lambda x: x, lambda x: x, "aot")


@program(ATTRIBUTES, PAIR, error="argument scale: must be float, but got Tensor", own="")
def an_attribute_that_is_a_tensor(w):
    info = w.information(1).attr("scale", "required", "float").get_op_info()
    return w.Custom(w.source("Scale"), lambda x, _: x, lambda x, _: x, "aot", reg_info=info)


# registration information


@program(INFORMATION, PAIR, add)
def information_as_a_dictionary(w):
    return w.Custom(w.source("Add"), (3,), w.float32, "aot", reg_info=w.information().get_op_info())


@program(INFORMATION, PAIR, add, own="")
def information_as_json(w):
    return w.Custom(
        w.source("Add"), (3,), w.float32, "aot", reg_info=json.dumps(w.information().get_op_info())
    )


@program(INFORMATION, PAIR, sum_difference, own="")
def information_as_json_for_cpp_rules(w):
    info = json.dumps(w.information(outputs=2).get_op_info())
    return w.Custom(w.source("SumDifference"), None, None, "aot", reg_info=info)


@program(INFORMATION, PAIR, add, own="")
def information_as_a_list(w):
    return w.Custom(w.source("Add"), (3,), w.float32, "aot", reg_info=[w.information().get_op_info()])


@program(INFORMATION, PAIR, add, own="")
def information_for_two_targets(w):
    infos = tuple(json.dumps(w.information(target=t).get_op_info()) for t in ("CPU", "GPU"))
    return w.Custom(w.source("Add"), (3,), w.float32, "aot", reg_info=infos)


@program(INFORMATION, PAIR, lambda x, y: (x + y,))
def information_and_a_tuple_of_one(w):
    info = w.information().get_op_info()
    return w.Custom(f"{w.library}:Add", ((3,),), (w.float32,), "aot", None, info)


@program(INFORMATION, PAIR, add)
def information_that_names_dtypes(w):
    f32 = w.ops.DataType.F32_Default
    info = w.ops.CustomRegOp("Single").input(0, "x").input(1, "y").output(0, "z").dtype_format(f32, f32, f32)
    return w.Custom(w.source("Add"), None, None, "aot", reg_info=info.target("CPU").get_op_info())


@program(INFORMATION, PAIR, error="input 0 'x' must be float16, and is float32", own="")
def information_that_refuses_the_dtype(w):
    f16 = w.ops.DataType.F16_Default
    info = w.ops.CustomRegOp("Half").input(0, "x").input(1, "y").output(0, "z").dtype_format(f16, f16, f16)
    return w.Custom(w.source("Add"), (3,), w.float32, "aot", reg_info=info.target("CPU").get_op_info())


# kernels


@program(KERNELS, PAIR, add)
def a_library(w):
    return w.Custom(f"{w.library}:Add", lambda x, y: x, lambda x, y: x, "aot")


@program(KERNELS, PAIR, add)
def a_library_from_the_environment(w):
    os.environ["MINDSPORE_CUSTOM_LIBRARY"] = w.library
    op = w.Custom("MINDSPORE_CUSTOM_LIBRARY:Add", lambda x, y: x, lambda x, y: x, "aot")
    return op.add_prim_attr("path_from_env", True)


@program(KERNELS, PAIR, add)
def bound_to_the_cpu(w):
    op = w.Custom(w.source("Add"), lambda x, y: x, lambda x, y: x, "aot")
    return op.add_prim_attr("primitive_target", "CPU")


@program(KERNELS, PAIR, add)
def bound_to_the_cpu_by_set_device(w):
    return w.Custom(w.source("Add"), lambda x, y: x, lambda x, y: x, "aot").set_device("CPU")


@program(KERNELS, (X, np.array([2, 0, 1, 2])), lambda x, index: x[index])
def inputs_of_two_dtypes(w):
    return w.Custom(w.source("Gather"), lambda x, index: index, lambda x, index: x, "aot")


@program(KERNELS, (np.array([True, False]),), np.logical_not)
def booleans(w):
    return w.Custom(w.source("Flip"), lambda x: x, w.bool_, "aot")


@program(KERNELS, (np.float32(3.0), np.float32(4.0)), lambda x, y: np.float32(7.0))
def tensors_without_dimensions(w):
    return w.Custom(w.source("Add"), lambda x, y: x, lambda x, y: x, "aot")


@program(KERNELS, (np.zeros((0, 3), np.float32), np.zeros((0, 3), np.float32)), add)
def tensors_without_items(w):
    return w.Custom(w.source("Add"), lambda x, y: x, lambda x, y: x, "aot")


@program(KERNELS, PAIR, lambda x, y: x + y + x, own="")
def a_list_of_tensors(w):
    info = w.ops.CustomRegOp().input(0, "xs", param_type="dynamic").output(0, "y").target("CPU")
    op = w.Custom(w.source("AddAll"), lambda xs: xs[0], lambda xs: xs[0], "aot", reg_info=info.get_op_info())

    def net(x, y):
        return op([x, y, x])

    return net


@program(KERNELS, PAIR, lambda x, y: x + y + x)
def a_tuple_of_tensors_without_information(w):
    op = w.Custom(w.source("AddAll"), lambda xs: xs[0], lambda xs: xs[0], "aot")

    def net(x, y):
        return op((x, y, x))

    return net


@program(KERNELS, (SQUARE, SQUARE), add, again=(SQUARE[:1], SQUARE[:1]))
def one_network_for_two_shapes(w):
    return w.Custom(w.source("Add"), lambda x, y: x, lambda x, y: x, "aot")


@program(KERNELS, PAIR, error="returned 7", own="")
def a_kernel_that_returns_a_code(w):
    return w.Custom(w.source("Returns"), lambda x, y: x, lambda x, y: x, "aot")


@program(KERNELS, PAIR, error="needs a square matrix", own="")
def a_kernel_that_throws(w):
    return w.Custom(w.source("Throws"), lambda x, y: x, lambda x, y: x, "aot")


@program(KERNELS, PAIR, error="Missing", own="")
def a_function_that_is_not_there(w):
    return w.Custom(w.source("Missing"), lambda x, y: x, lambda x, y: x, "aot")


@program(KERNELS, PAIR, error="'func' should be like 'file_name:func_name'", own="")
def a_file_without_a_function(w):
    return w.Custom(w.kernels, (3,), w.float32, "aot")
