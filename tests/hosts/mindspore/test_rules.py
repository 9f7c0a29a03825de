"""Gradient rules in graphs: those that MindSpore compiles, those that run on arrays, and the checks."""

import contextlib
import functools
import re
import warnings

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, ops

import polyop
from polyop.call.explain import explain
from polyop.core.errors import GradientError

X, Y = np.array([0.5, -1.25, 2.0], np.float32), np.array([3.0, 4.0, -5.0], np.float32)
_count = iter(range(1000))


def doubled(rule):
    @functools.wraps(rule)
    def inner(x, out, dout):
        return (2 * rule(x, out, dout)[0],)

    return inner


@doubled
def decorated(x, out, dout):
    return (dout * 3,)


@doubled
def decorated_too(x, out, dout):
    return (dout * 5,)


@doubled
@doubled
def decorated_twice(x, out, dout):
    return (dout * 3,)


def of_a_decorated(x, out, dout):
    return (decorated(x, out, dout)[0] * 1,)


def default(x, out, dout, scale=4.0):
    return (dout * scale,)


def keyword(x, out, dout, *, scale=4.0):
    return (dout * scale,)


def scaled(scale, x, out, dout):
    return (dout * scale,)


def cosine(x):
    return np.cos(x)


def of_a_helper(x, out, dout):
    return (cosine(x) * dout,)


class Rules:
    scale = 3.0

    def method(self, x, out, dout):
        return (ops.cos(x) * dout * self.scale,)

    def __call__(self, x, out, dout):
        return (dout * self.scale,)


def operator_with(rule):
    return polyop.operator(
        f"ms_rules::identity_{next(_count)}(Tensor x) -> Tensor", lambda x: x * 1, infer="x", gradient=rule
    )


def derivative(rule, mode):
    op = operator_with(rule)

    @mode
    def call(x):
        return op(x).sum()

    return ms.grad(call)(Tensor(X))


def close(tensor, expected):
    np.testing.assert_allclose(tensor.asnumpy(), np.broadcast_to(expected, tensor.shape), rtol=1e-5)


READ = {
    "wraps": (decorated, 6),
    "default": (default, 4),
    "keyword": (keyword, 4),
    "lambda with a default": (lambda x, out, dout, scale=4.0: (dout * scale,), 4),
    "lambda with a keyword": (lambda x, out, dout, *, scale=4.0: (dout * scale,), 4),
    "method": (Rules().method, 3 * np.cos(X)),
    "object": (Rules(), 3),
    "partial": (functools.partial(scaled, 7.0), 7),
    "partial by name": (functools.partial(default, scale=7.0), 7),
    "partial of a lambda": (functools.partial(lambda scale, x, out, dout: (dout * scale,), 7.0), 7),
}


@pytest.mark.parametrize(("rule", "expected"), READ.values(), ids=READ)
def test_rules_that_are_read(rule, expected, mode):
    close(derivative(rule, mode), expected)


def test_two_decorated_rules_in_one_graph():
    first, second = operator_with(decorated), operator_with(decorated_too)

    @ms.jit
    def call(x):
        return (first(x) + second(x)).sum()

    close(ms.grad(call)(Tensor(X)), 6 + 10)


ON_ARRAYS = {
    "wraps twice": (decorated_twice, 12, "it calls decorated_twice, whose text is not what runs"),
    "decorated helper": (of_a_decorated, 6, "it calls decorated, whose text is not what runs"),
    "helper": (of_a_helper, np.cos(X), "it uses numpy"),
    "partial": (
        functools.partial(lambda k, x, out, dout: (np.cos(x) * dout * k,), 2.0),
        2 * np.cos(X),
        "numpy",
    ),
    "any arguments": (lambda *arguments: (arguments[2] * 3,), 3, "its source text cannot be found"),
}


@pytest.mark.parametrize(("rule", "expected", "why"), ON_ARRAYS.values(), ids=ON_ARRAYS)
def test_rules_that_run_on_arrays(rule, expected, why):
    with pytest.warns(polyop.FallbackWarning, match=f"cannot read the gradient rule: .*{why}"):
        close(derivative(rule, ms.jit), expected)


@pytest.mark.parametrize("dtype", ["float64", "float16", "int32"])
def test_a_gradient_has_its_input_s_dtype(dtype, mode):
    result = derivative(lambda x, out, dout: ((dout * 2).astype(getattr(ms, dtype)),), mode)
    assert result.dtype == ms.float32
    close(result, 2)


LISTS = {
    "too long": (
        lambda xs, out, dout: ((dout, dout, dout),),
        "gradient of xs: must be a list of 2 gradients.*3",
    ),
    "no list": (lambda xs, out, dout: (dout,), "gradient of xs: must be a list of 2 gradients"),
    "shape": (lambda xs, out, dout: ((dout, dout.sum()),), r"of xs\[1\]: must have the input's shape \(3,\)"),
    "number": (lambda xs, out, dout: ((dout, 2.0),), r"of xs\[1\]: must be a mindspore.*, but got float"),
}


def listed(rule):
    return polyop.operator(
        f"ms_rules::listed_{next(_count)}(Tensor[] xs) -> Tensor",
        lambda xs: xs[0] + 2 * xs[1],
        infer=lambda xs: xs[0],
        gradient=rule,
    )


@pytest.mark.parametrize(("rule", "message"), LISTS.values(), ids=LISTS)
def test_wrong_gradients_of_a_list(rule, message, mode):
    op = listed(rule)

    @mode
    def call(x, y):
        return op([x, y]).sum()

    with pytest.raises(GradientError, match=re.compile(message, re.DOTALL)):
        ms.grad(call, (0, 1))(Tensor(X), Tensor(Y))


def test_a_gradient_must_be_a_tensor(mode):
    message = r"gradient of x: must be a mindspore\..*Tensor or None, but got "
    with pytest.raises(GradientError, match=message + "float"):
        derivative(lambda x, out, dout: (2.0,), mode)
    with pytest.raises(GradientError, match=message + "(tuple|something else)"):
        derivative(lambda x, out, dout: ((dout, dout),), mode)


def test_absent_gradients_of_a_list(mode):
    one, none = listed(lambda xs, out, dout: ((None, dout * 2),)), listed(lambda xs, out, dout: (None,))

    @mode
    def call(x, y):
        return one([x, y]).sum() + none([x, y]).sum()

    dx, dy = ms.grad(call, (0, 1))(Tensor(X), Tensor(Y))
    close(dx, 0)
    close(dy, 2)


def test_vjp_in_a_function_that_is_differentiated(module):
    square = polyop.operator(
        "ms_rules::square(Tensor x) -> Tensor",
        lambda x: x * x,
        infer="x",
        gradient=lambda x, out, dout: (2 * x * dout,),
    )
    for op in (square, module.square):
        close(ms.grad(lambda x, op=op: op.vjp(x)[0].sum())(Tensor(X)), 2 * X)
    close(ms.grad(lambda x: square.vjp(x)[1](ops.ones_like(x))[0].sum())(Tensor(X)), 2)
    close(ms.grad(lambda x: ms.grad(lambda y: square.vjp(y)[0].sum())(x).sum())(Tensor(X)), 2)
    with pytest.raises(RuntimeError, match="its Backward has no gradient: it runs square_grad"):
        ms.grad(lambda x: module.square.vjp(x)[1](ops.ones_like(x))[0].sum())(Tensor(X))


def by_namespace(x, out, dout):
    xp = polyop.array_namespace(x)
    return (xp.where(x > 0, dout, 3 * dout),)


def tries(x, out, dout):
    try:
        return (dout * 3,)
    except ValueError:
        return (dout,)


def names_a_value(x, out, dout):
    return ((three := 3) * dout * (three - 2),)


def matches(x, out, dout):
    match x.ndim:
        case 1:
            return (dout * 3,)
        case _:
            return (dout * 5,)


def imports(x, out, dout):
    import math

    return (dout * math.floor(3.5),)


def with_a_context(x, out, dout):
    with contextlib.nullcontext(3) as three:
        return (dout * three,)


def in_a_helper(x, out, dout):
    return (tries(x, out, dout)[0] * 2,)


def by_a_comprehension_of_sets(x, out, dout):
    return (dout * max({i + 1 for i in (1, 2)}),)


def deletes(x, out, dout):
    scale = 3
    three = scale
    del scale
    return (dout * three,)


UNREAD = {
    "array_namespace": (by_namespace, np.where(X > 0, 1, 3)),
    "try": (tries, 3),
    "walrus": (names_a_value, 3),
    "match": (matches, 3),
    "import": (imports, 3),
    "with": (with_a_context, 3),
    "in a helper": (in_a_helper, 6),
    "set": (by_a_comprehension_of_sets, 3),
    "del": (deletes, 3),
}


def gradient_in_a_graph(op):
    @ms.jit
    def call(x):
        return op(x).sum()

    return ms.grad(call)


@pytest.mark.parametrize(("rule", "expected"), UNREAD.values(), ids=UNREAD)
def test_what_mindspore_cannot_compile_runs_on_arrays(rule, expected):
    op = operator_with(rule)
    gradient = gradient_in_a_graph(op)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        close(gradient(Tensor(X)), expected)
        close(gradient(Tensor(X)), expected)
        close(gradient(Tensor(np.ones(5, np.float32))), expected if np.ndim(expected) == 0 else 1)
    texts = [str(one.message) for one in seen if one.category is polyop.FallbackWarning]
    assert len(texts) == 1
    assert f"{op.name}: MindSpore's compiler cannot read the gradient rule: it says" in texts[0]
    assert f" at {__file__}:" in texts[0]
    assert "fallback in graphs: the gradient rule runs on NumPy arrays" in explain(op)


def test_a_rule_is_tried_for_each_number_of_dimensions():
    def rule(x, out, dout):
        if x.ndim > 1:
            return tries(x, out, dout)
        return (ops.cos(x) * dout,)

    op = operator_with(rule)
    gradient = gradient_in_a_graph(op)
    derivative = ops.GradOperation()

    def total(x):
        return op(x).sum()

    def first(x):
        return derivative(total)(x).sum()

    @ms.jit
    def second(x):
        return derivative(first)(x)

    with warnings.catch_warnings():
        warnings.simplefilter("error", polyop.FallbackWarning)
        close(gradient(Tensor(X)), np.cos(X))
        close(second(Tensor(X)), -np.sin(X))
    with pytest.warns(polyop.FallbackWarning, match="Unsupported statement 'Try'"):
        close(gradient(Tensor(np.stack([X, Y]))), 3)


def test_a_rule_with_lists_attributes_and_an_absent_tensor():
    def rule(xs, y, factor, out, dout):
        try:
            first = dout[0] * factor
        except ValueError:
            first = None
        return ((first, dout[1] * 5), None, None)

    op = polyop.operator(
        f"ms_rules::several_{next(_count)}(Tensor[] xs, Tensor? y, float factor) -> (Tensor, Tensor)",
        lambda xs, y, factor: (xs[0] * factor, xs[1] * 5),
        infer=lambda xs, y, factor: (xs[0], xs[1]),
        gradient=rule,
    )

    @ms.jit
    def call(x, y):
        outputs = op([x, y], None, 2.0)
        return outputs[0].sum() + outputs[1].sum()

    with pytest.warns(polyop.FallbackWarning, match="Unsupported statement 'Try'"):
        dx, dy = ms.grad(call, (0, 1))(Tensor(X), Tensor(Y))
    close(dx, 2)
    close(dy, 5)


def test_a_branch_that_depends_on_data_is_compiled():
    def rule(x, out, dout):
        if x.sum() > 0:
            return (dout * 2,)
        return (dout * 3,)

    @ms.jit
    def branches_first(x):  # starts the compiler's threads, which a copy of the process does not have
        if x.sum() > 0:
            return x * 2
        return x * 3

    close(branches_first(Tensor(X)), 2 * X)
    op = operator_with(rule)
    gradient = gradient_in_a_graph(op)
    with warnings.catch_warnings():
        warnings.simplefilter("error", polyop.FallbackWarning)
        close(gradient(Tensor(X)), 2)
        close(gradient(Tensor(-X)), 3)


def test_explain_tries_the_rule_before_a_graph_does():
    def rule(x, out, dout):
        try:
            return (dout * 3,)
        except ValueError:
            return (dout,)

    unread, read = operator_with(rule), operator_with(default)
    assert "fallback in graphs: the gradient rule runs on NumPy arrays; MindSpore's compiler" in explain(
        unread
    )
    assert "Unsupported statement 'Try'" in explain(unread)
    assert "fallback in graphs" not in explain(read)
