import math

import pytest

from polyop.core.dtypes import dtype
from polyop.core.errors import InferError
from polyop.core.infer import FromSpecs, ShapeAndDtype, is_repeatable
from polyop.core.parse import parse
from polyop.core.spec import Spec

F32, I64 = dtype("float32"), dtype("int64")
X, Y = Spec((2, 3), F32), Spec((4,), I64)


def rule(out_shape, out_dtype, outputs=1):
    return ShapeAndDtype(out_shape, out_dtype, outputs, "demo::f")


def test_functions_get_one_shape_and_dtype_per_argument():
    shapes_passed = []

    def shape(*shapes):
        shapes_passed.extend(shapes)
        return shapes[0]

    assert rule(shape, lambda *t: t[1])((X, Y, 0.5)) == (Spec((2, 3), I64),)
    assert shapes_passed == [[2, 3], [4], []]


def test_functions_of_the_tensors_only_are_called_without_attributes():
    assert rule(lambda x, y: y, lambda x, y: x)((X, Y, 0.5)) == (Spec((4,), F32),)


def test_lists_of_tensors_arrive_as_lists():
    assert rule(lambda x: x[0], lambda x: x[1])(((X, Y),)) == (Spec((2, 3), I64),)


@pytest.mark.parametrize(("shape", "kind", "outputs", "expected"), [
    ((4, 5), F32, 1, [(4, 5)]),
    ([4, 5], "float32", 1, [(4, 5)]),
    (((4, 5),), (F32,), 1, [(4, 5)]),
    ([[4, 5], [1]], [F32, F32], 2, [(4, 5), (1,)]),
    ((), F32, 1, [()]),
    (lambda x: (x, [1]), lambda x: (x, x), 2, [(2, 3), (1,)]),
])  # fmt: skip
def test_constants_and_several_outputs(shape, kind, outputs, expected):
    specs = rule(shape, kind, outputs)((X,))
    assert [spec.shape for spec in specs] == expected
    assert {spec.dtype for spec in specs} == {F32}


@pytest.mark.parametrize(("shape", "kind", "message"), [
    (None, F32, "'out_shape' must be one of \\[tuple, list, function\\]"),
    (lambda x: 3, F32, "'out_shape' must be one of"),
    ((2,), None, "'out_dtype' must be one of \\[mindspore.dtype, tuple, list, function\\]"),
    (lambda x: [x[0] / 2], F32, "use // for a division"),
    (lambda x: [-1], F32, "at least 0, but got -1"),
    (lambda x: [True], F32, "at least 0, but got True"),
    (lambda x: (x, x), F32, "must give 1 shapes"),
    ((2,), (F32, F32), "must give 1 dtypes"),
    ((2,), "float31", "must be a known name, but got 'float31'"),
    (lambda x: x[7], F32, "raised IndexError"),
])  # fmt: skip
def test_wrong_shapes_and_dtypes_are_refused(shape, kind, message):
    with pytest.raises(InferError, match=message):
        rule(shape, kind)((X,))


def test_an_error_names_the_line_of_the_function():
    with pytest.raises(InferError, match=r"test_infer\.py:\d+") as excinfo:
        rule(lambda x: 1 // 0, F32)((X,))
    assert "ZeroDivisionError" in str(excinfo.value) and "[2, 3]" in str(excinfo.value)


def test_specs_rule_by_name_and_by_function():
    schema = parse("n::f(Tensor x, Tensor y, int k=1) -> (Tensor, Tensor)")
    assert FromSpecs("y", schema)((X, Y, 1)) == (Y, Y)
    both = FromSpecs(lambda x, y, k: (x, Spec((k,), "int64")), schema)((X, Y, 3))
    assert both == (X, Spec((3,), I64))
    with pytest.raises(InferError, match="must name a tensor argument"):
        FromSpecs("k", schema)
    with pytest.raises(InferError, match="must return 2 Spec"):
        FromSpecs(lambda x, y, k: x, schema)((X, Y, 1))


def test_only_functions_that_read_nothing_changing_are_repeatable():
    size = 3
    assert is_repeatable(lambda x: [x[0] + 1])
    assert is_repeatable(lambda x: [math.prod(x)])
    assert not is_repeatable(lambda x: [size])
    assert not is_repeatable(lambda x: [X])
    assert not is_repeatable(lambda x, k=[1]: k)
