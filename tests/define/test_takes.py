"""A function that cannot be called as polyop calls it is refused when the operator is defined."""

import functools
import itertools
import re

import numpy as np
import pytest

import polyop
from polyop.core.errors import ArgumentTypeError
from polyop.testing import check

COUNT = itertools.count()
MANY = "too many positional arguments"


def first(x):
    return x


def two(x, a):
    return x


def missing(x, a, more):
    return x


def with_default(x, a, more=1):
    return x


def any_number(*args):
    return args[0]


def keyword(x, a, *, scale):
    return x * scale


def with_context(ctx, inputs):
    pass


class Instance:
    def __call__(self, x):
        return x


@functools.wraps(first)
def wrapper(x, a):
    return first(x)


def define(**options):
    kernel = options.pop("kernel", any_number)
    options.setdefault("infer", "x")
    return polyop.operator(f"takes::o{next(COUNT)}(Tensor x, float a) -> Tensor", kernel, **options)


def impl(function):
    library = polyop.Library(f"takes_{next(COUNT)}")
    library.define("f(Tensor x, float a) -> Tensor")
    library.fake("f", "x")
    library.impl("f", function, device="cpu")
    return library.f


def fake(function):
    library = polyop.Library(f"takes_{next(COUNT)}")
    library.define("f(Tensor x, float a) -> Tensor")
    library.fake("f", function)
    library.impl("f", any_number, device="cpu")
    return library.f


def custom(function):
    return polyop.Custom(function, lambda x, a: x, lambda x, a: x, func_type="pyfunc")


def custom_rules(out_shape=two, out_dtype=any_number, bprop=None, kind=polyop.Custom):
    return kind(two, out_shape, out_dtype, func_type="pyfunc", bprop=bprop)


def in_scripts(bprop):
    from polyop.mindspore import ops

    return custom_rules(bprop=bprop, kind=ops.Custom)


def autograd(backward=any_number, setup_context=None, schema="f(Tensor x, float a) -> (Tensor, Tensor)"):
    library = polyop.Library(f"takes_{next(COUNT)}")
    library.register_autograd("f", backward, setup_context=setup_context)  # before its schema
    library.define(schema)
    library.fake("f", "x")
    return library.f


def vmap(function):
    library = polyop.Library(f"takes_{next(COUNT)}")
    library.define("f(Tensor x, float a) -> Tensor")
    library.fake("f", "x")
    library.register_vmap("f", function)
    return library.f


def define_with_keyword(reference):
    return polyop.operator(
        f"takes::o{next(COUNT)}(Tensor x, *, float a=1.0) -> Tensor",
        any_number,
        infer="x",
        reference=reference,
    )


def aten(batch):
    return polyop.aten("aten::silu", batch=batch)


REFUSED = [
    # how it is given, the function, what it is called with, what Python says, what was seen
    ("a kernel", lambda f: define(kernel=f), first, "the kernel is called with (x, a)", MANY, "first(x)"),
    ("one of several", lambda f: define(kernel=[f]), first, "the kernel is called with (x, a)", MANY, "first(x)"),
    ("too many", lambda f: define(kernel=f), missing, "the kernel is", "missing a required argument: 'more'",
     "missing(x, a, more)"),
    ("an instance", lambda f: define(kernel=f), Instance(), "the kernel is", MANY, "Instance(x)"),
    ("a keyword", lambda f: define(kernel=f), keyword, "the kernel is", "'scale'", "keyword(x, a, *, scale)"),
    ("a fixed value", lambda f: define(kernel=f, attributes={"b": 1}), with_default,
     "the kernel is called with (x, a, b=...)", "got an unexpected keyword argument 'b'", "with_default(x, a, more=1)"),
    ("infer", lambda f: define(infer=f), first, "infer is called with (x, a)", MANY, "first(x)"),
    ("gradient", lambda f: define(gradient=f), first, "gradient is called with (x, a, out, dout)", MANY, "first(x)"),
    ("jvp", lambda f: define(jvp=f), first, "jvp is called with (x, a, out, tangents)", MANY, "first(x)"),
    ("batch", lambda f: define(batch=f), first, "batch is called with (in_dims, inputs)", MANY, "first(x)"),
    ("impl of a Library", impl, first, "the kernel is called with (x, a)", MANY, "first(x)"),
    ("fake of a Library", fake, first, "infer is called with (x, a)", MANY, "first(x)"),
    ("a Custom", custom, first, "the kernel is called with (x0, x1)", MANY, "first(x)"),
    ("out_shape", lambda f: custom_rules(out_shape=f), keyword, "out_shape is called with (x0, x1)", "'scale'",
     "keyword(x, a, *, scale)"),
    ("out_dtype", lambda f: custom_rules(out_dtype=f), first, "out_dtype is called with (x0, x1)", MANY, "first(x)"),
    ("bprop", lambda f: custom_rules(bprop=f), missing, "bprop is called with (x0, x1, out, dout)", MANY,
     "missing(x, a, more)"),
    ("bprop of a script", in_scripts, missing, "bprop is called with (x0, x1, out, dout)", MANY, "missing(x, a, more)"),
    ("backward", autograd, first, "backward is called with (ctx, grad0, grad1)", MANY, "first(x)"),
    ("setup_context", lambda f: autograd(setup_context=f), with_context,
     "setup_context is called with (ctx, inputs, output)", MANY, "with_context(ctx, inputs)"),
    ("register_vmap", vmap, first, "the rule of register_vmap is called with (info, in_dims, x, a)", MANY, "first(x)"),
    ("reference", lambda f: define(reference=f), first, "reference is called with (x, a)", MANY, "first(x)"),
    ("reference by keyword", define_with_keyword, first, "reference is called with (x, a=...)",
     "got an unexpected keyword argument 'a'", "first(x)"),
    ("reference of check", lambda f: check(define(), np.ones(2), 1.0, reference=f), first,
     "reference is called with (x, a)", MANY, "first(x)"),
    ("batch of aten", aten, first, "batch is called with (in_dims, inputs)", MANY, "first(x)"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("give", "function", "called", "problem", "seen"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)  # fmt: skip
def test_refused(give, function, called, problem, seen):
    with pytest.raises(ArgumentTypeError) as caught:
        give(function)
    rule, where, hint = str(caught.value).splitlines()
    operator, _, rule = rule.partition(": ")
    assert re.fullmatch(r"takes(_\d+)?::\w+|custom::\w+|aten::silu", operator)
    assert rule.startswith(called) and problem in rule and rule.endswith(f"but got {seen}")
    assert re.fullmatch(rf"  defined at {re.escape(__file__)}:\d+", where)
    if hasattr(function, "__code__"):
        assert where.endswith(f":{function.__code__.co_firstlineno}")
    assert (
        hint.startswith(f"  the operator is {operator}(Tensor ")
        and "give the function the parameters (" in hint
    )


ACCEPTED = [any_number, with_default, wrapper, np.multiply, functools.partial(missing, more=1), max]


@pytest.mark.parametrize("kernel", ACCEPTED, ids=range(len(ACCEPTED)))
def test_accepted(kernel):
    assert "takes::o" in str(define(kernel=kernel))


def test_accepted_rules_are_called():
    op = define(kernel=with_default, infer=any_number, gradient=lambda *args: (args[-1], None))
    x = np.arange(3.0)
    assert op(x, 2.0).tolist() == [0, 1, 2]
    assert op.vjp(x, 2.0)[1](x)[0].tolist() == [0, 1, 2]


def test_accepted_references_and_rules_of_torch():
    op = define_with_keyword(lambda x, a: x)
    assert check(op, np.ones(2), hosts=["numpy"]).ok
    assert define(reference=np.multiply).operator.reference is np.multiply
    returns_list = autograd(
        first, schema="f(Tensor x, float a) -> Tensor[]"
    )  # a call shows how many gradients
    assert returns_list.operator.gradient is not None
    assert vmap(lambda info, in_dims, *inputs: inputs[0]).operator.batch is not None
    by_tensors = polyop.Custom(two, lambda *shapes: shapes[0], lambda x, a, more=1: x, func_type="pyfunc")
    assert by_tensors(np.ones(2), np.ones(2)).tolist() == [1, 1]


def test_reference_that_is_no_function():
    with pytest.raises(
        ArgumentTypeError, match="reference must be a function of the operator's arguments, but got 3"
    ):
        define(reference=3)


def test_a_function_of_shapes_may_take_tensors_and_lists():
    reg = polyop.CustomRegOp("summed").input(0, "x").output(0, "y")
    reg = reg.attr("axes", "required", "listInt").attr("s", "required", "float")
    reg = reg.dtype_format(polyop.DataType.F32_Default, polyop.DataType.F32_Default).target("CPU")

    op = polyop.Custom(
        lambda x, axes, s: x * np.float32(s + len(axes)),
        lambda x, axes: x,
        lambda x, axes, s: x,
        "pyfunc",
        reg_info=reg.get_op_info(),
    )
    assert op(np.ones((2, 1), np.float32), [1], 2.0).tolist() == [[3], [3]]
