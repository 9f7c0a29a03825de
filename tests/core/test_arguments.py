import numpy as np
import pytest

from polyop.core.arguments import attributes, bind
from polyop.core.errors import ArgumentTypeError
from polyop.core.parse import parse

SCHEMA = parse("n::f(Tensor x, int k=2, *, float alpha=1.0, int[2] pads=0, str? mode=None) -> Tensor")


def test_defaults_are_filled_in():
    assert bind(SCHEMA, ("t",), {"alpha": 3}) == ("t", 2, 3, (0, 0), None)


@pytest.mark.parametrize(("args", "kwargs", "message"), [
    ((), {}, "needs argument 'x'"),
    ((1, 2, 3), {}, "takes 2 positional arguments .* but got 3"),
    ((1,), {"beta": 1}, "has no argument 'beta'"),
    ((1,), {"x": 1}, "'x' was given twice"),
])  # fmt: skip
def test_wrong_calls_name_the_argument_and_the_schema(args, kwargs, message):
    with pytest.raises(ArgumentTypeError, match=message) as excinfo:
        bind(SCHEMA, args, kwargs)
    assert "n::f" in str(excinfo.value)


def test_attributes_become_plain_python_values():
    values = attributes(SCHEMA, ("t", np.int32(4), 3, 5, "same"))
    assert values == {"k": 4, "alpha": 3.0, "pads": (5, 5), "mode": "same"}
    assert type(values["k"]) is int and type(values["alpha"]) is float


@pytest.mark.parametrize(("values", "message"), [
    (("t", 1.5, 1.0, 0, None), "argument k: must be int, but got 1.5 \\(float\\)"),
    (("t", 1, "1", 0, None), "argument alpha: must be float"),
    (("t", 1, 1.0, (1, 2, 3), None), "argument pads: must be int\\[2\\]"),
    (("t", 1, 1.0, 0, 7), "argument mode: must be str"),
])  # fmt: skip
def test_an_attribute_of_the_wrong_type_is_named(values, message):
    with pytest.raises(ArgumentTypeError, match=message):
        attributes(SCHEMA, values)
