"""JAX's transforms of operators, compared with those of the same function in jax.numpy."""

import itertools
import warnings

import numpy as np
import pytest

import polyop
from polyop import FallbackWarning
from polyop.core.errors import GradientError

jax = pytest.importorskip("jax", reason="JAX is not installed")
import jax.numpy as jnp  # noqa: E402
from jax import lax  # noqa: E402

X = np.array([0.5, -1.25, 2.0])
V = np.array([1.0, -3.0, 0.25])


def close(result, expected):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12), result, expected)
    types = jax.tree.map(lambda a: (a.shape, str(a.dtype)), (result, expected))
    assert types[0] == types[1]


def tripled(f, x):
    return lax.scan(lambda c, _: (f(c, 0.5), f(c)), x, None, length=3)


def with_jvp(f):
    around = jax.custom_jvp(lambda x: f(x, 0.5))
    around.defjvp(lambda primals, tangents: (around(*primals), f(*primals, 2.0) * tangents[0]))
    return around


def with_vjp(f):
    around = jax.custom_vjp(lambda x: f(x, 0.5))
    around.defvjp(lambda x: (around(x), f(x)), lambda residual, grad: (f(residual) * grad,))
    return around


TRANSFORMS = [
    # name, from a function (x, a=1.0) -> x to what is compared
    ("jit", lambda f: jax.jit(f)(X * 1)),
    ("grad", lambda f: jax.grad(lambda x: (f(x, 2.0) * V).sum())(X)),
    ("value_and_grad", lambda f: jax.value_and_grad(lambda x: (f(x) * V).sum())(X)),
    ("vjp", lambda f: jax.vjp(f, X)[1](V)),
    ("jvp", lambda f: jax.jvp(f, (X,), (V,))),
    ("linearize", lambda f: jax.linearize(f, X)[1](V)),
    ("linear_transpose", lambda f: jax.linear_transpose(jax.linearize(f, X)[1], X)(V)),
    ("hessian", lambda f: jax.hessian(lambda x: (f(x) * V).sum())(X)),
    ("jacfwd", lambda f: jax.jacfwd(f)(X)),
    ("jacrev", lambda f: jax.jacrev(f)(X)),
    ("forward over forward", lambda f: jax.jacfwd(jax.jacfwd(f))(X)),
    ("reverse over forward", lambda f: jax.jacrev(jax.jacfwd(f))(X)),
    ("reverse over reverse", lambda f: jax.jacrev(jax.jacrev(f))(X)),
    ("third", lambda f: jax.grad(lambda x: jax.grad(lambda x: jax.grad(lambda x: f(x).sum())(x).sum())(x).sum())(X)),
    ("vmap", lambda f: jax.vmap(f)(X[:, None] * V)),
    ("vmap of the last", lambda f: jax.vmap(f, in_axes=1, out_axes=1)(X[:, None] * V)),
    ("vmap of vmap", lambda f: jax.vmap(jax.vmap(f))(jnp.ones((2, 3, 4)))),
    ("vmap of grad", lambda f: jax.vmap(jax.grad(lambda x: f(x).sum()))(X[:, None] * V)),
    ("grad of vmap", lambda f: jax.grad(lambda x: jax.vmap(f)(x).sum())(X[:, None] * V)),
    ("vmap of jvp", lambda f: jax.vmap(lambda x, v: jax.jvp(f, (x,), (v,))[1])(X, V)),
    ("jit of vmap of jvp", lambda f: jax.jit(jax.vmap(lambda x, v: jax.jvp(f, (x,), (v,))))(X, V)),
    ("vmap of hessian", lambda f: jax.vmap(jax.hessian(lambda x: f(x).sum()))(X[:, None] * V)),
    ("checkpoint", lambda f: jax.grad(jax.checkpoint(lambda x: (f(f(x)) * V).sum()))(X)),
    ("scan", lambda f: tripled(f, X)),
    ("grad of scan", lambda f: jax.grad(lambda x: tripled(f, x)[0].sum())(X)),
    ("jvp of scan", lambda f: jax.jvp(lambda x: tripled(f, x)[0], (X,), (V,))),
    ("while_loop", lambda f: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, f(c[1], 0.5)), (0, X))),
    ("jvp of while_loop", lambda f: jax.jvp(lambda x: lax.while_loop(
        lambda c: c[0] < 3, lambda c: (c[0] + 1, f(c[1], 0.5)), (0, x))[1], (X,), (V,))),
    ("fori_loop", lambda f: lax.fori_loop(0, 3, lambda i, c: f(c, 0.5), X)),
    ("cond", lambda f: jax.grad(lambda x: lax.cond(x.sum() > 0, f, lambda x: -x, x).sum())(X)),
    ("vmap of cond", lambda f: jax.vmap(lambda x: lax.cond(x > 0, f, lambda x: -x, x))(X)),
    ("switch", lambda f: lax.switch(1, [lambda x: x, f], X)),
    ("map", lambda f: lax.map(f, X[:, None] * V)),
    ("jit of jit", lambda f: jax.jit(lambda x: jax.jit(f)(x) + f(x))(X)),
    ("associative_scan", lambda f: lax.associative_scan(lambda a, b: f(a) + b, X)),
    ("custom_jvp around", lambda f: jax.grad(lambda x: (with_jvp(f)(x) * V).sum())(X)),
    ("jvp of custom_jvp around", lambda f: jax.jvp(jax.vmap(with_jvp(f)), (jnp.asarray(X),), (jnp.asarray(V),))),
    ("custom_vjp around", lambda f: jax.grad(lambda x: (jax.vmap(with_vjp(f))(x) * V).sum())(X)),
    ("no copy of x64", lambda f: f(jnp.asarray(X), 2)),
]  # fmt: skip


@pytest.fixture(scope="session")
def cubes(cube, kernels):
    """a * x ** 3, one operator per form of ``batch=``."""

    def last(dims, inputs):
        return by_rule(jnp.moveaxis(inputs[0], dims[0], -1), inputs[1]), -1

    def define(name, **more):
        return polyop.operator(
            f"jax_transforms::{name}(Tensor x, float a=1.0) -> Tensor", kernels("cube"), infer="x",
            gradient=lambda x, a, out, dout: (3 * a * x**2 * dout, None), **more,
        )  # fmt: skip

    by_rule = define("by_rule", batch=last)
    return {"elementwise": cube, "a rule": by_rule, "a call per sample": define("cube_by_sample")}


KINDS = [("elementwise", False), ("elementwise", True), ("a rule", True), ("a call per sample", True)]


@pytest.mark.slow(5)
@pytest.mark.parametrize("transform", [row[1] for row in TRANSFORMS], ids=[row[0] for row in TRANSFORMS])
@pytest.mark.parametrize(("kind", "jit"), KINDS, ids=[f"{kind}{' in jit' * jit}" for kind, jit in KINDS])
@pytest.mark.filterwarnings("ignore::polyop.FallbackWarning")
def test_results_are_those_of_jax_numpy(cubes, transform, kind, jit):
    def run(f):
        return jax.jit(lambda: transform(f))() if jit else transform(f)

    operator = cubes[kind]
    close(run(lambda x, a=1.0: operator(jnp.asarray(x), a)), run(lambda x, a=1.0: a * jnp.asarray(x) ** 3))


@pytest.fixture(scope="session")
def product():
    """x * y, elementwise and broadcasting, as NumPy computes it."""
    return polyop.operator(
        "jax_transforms::product(Tensor x, Tensor y) -> Tensor",
        lambda x, y: x * y,
        infer=lambda x, y: polyop.Spec(np.broadcast_shapes(x.shape, y.shape), x.dtype),
        gradient=lambda x, y, out, dout: (reduced(dout * y, x), reduced(dout * x, y)),
        batch="elementwise",
    )


def reduced(grad, like):
    """Sum what was broadcast."""
    extra = grad.ndim - len(like.shape)
    grad = grad.sum(tuple(range(extra)))
    axes = tuple(i for i, size in enumerate(like.shape) if size == 1)
    return grad.sum(axes, keepdims=True) if axes else grad


@pytest.mark.slow(2)
@pytest.mark.parametrize("axes", [(0, None), (None, 0), (0, 0), (1, 0), (0, 1)], ids=str)
def test_elementwise_operands_broadcast_under_vmap(product, axes):
    x, y = np.arange(6.0).reshape(2, 3), np.arange(6.0).reshape(3, 2) + 1
    x = x if axes[0] != 1 else x.T
    y = (y.T if axes[1] == 0 else y) if axes[0] is not None or axes[1] != 0 else y
    x, y = jnp.asarray(x), jnp.asarray(y)
    if axes[0] is None:
        x = x[0, :1]
    elif axes[1] is None:
        y = y[0, :1]

    def both(f):
        value = jax.vmap(f, in_axes=axes)(x, y)
        return value, jax.grad(lambda x, y: (jax.vmap(f, in_axes=axes)(x, y) ** 2).sum(), (0, 1))(x, y)

    close(both(product), both(lambda x, y: x * y))


def test_elementwise_operands_of_other_ranks_under_vmap(product):
    x, y = jnp.arange(6.0).reshape(2, 3), jnp.arange(8.0).reshape(2, 4)
    run = lambda f: jax.vmap(lambda x, y: f(x[:, None], y))(x, y)  # noqa: E731
    close(run(product), run(lambda x, y: x * y))
    scalar = lambda f: jax.vmap(lambda x, y: f(x, y))(jnp.arange(2.0), y)  # noqa: E731
    close(scalar(product), scalar(lambda x, y: x * y))


def test_a_batch_rule_is_called(kernels):
    def rule(dims, inputs):
        return total(inputs[0] if dims[0] == 0 else jnp.moveaxis(inputs[0], dims[0], 0)), 0

    total = polyop.operator(
        "jax_transforms::last(Tensor x) -> Tensor", lambda x: x.sum(-1),
        infer=lambda x: polyop.Spec(x.shape[:-1], x.dtype), batch=rule,
        gradient=lambda x, out, dout: (dout[..., None] * array_of(x, 1),),
    )  # fmt: skip
    x = jnp.arange(24.0).reshape(2, 3, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        close(jax.vmap(total)(x), x.sum(-1))
        close(jax.vmap(total, in_axes=1)(x), x.sum(-1).T)
        close(jax.vmap(jax.grad(lambda x: total(x).sum()))(x), jnp.ones_like(x))


def array_of(like, value):
    return jnp.full(like.shape, value, like.dtype)


@pytest.mark.slow
def test_without_a_batch_rule_one_call_per_sample_and_one_warning(kernels):
    op = polyop.operator(
        "jax_transforms::by_sample(Tensor x, Tensor y) -> (Tensor, Tensor)", lambda x, y: (x * y.sum(), y - x),
        infer=lambda x, y: (x, x), gradient=lambda x, y, out, grads: (grads[0] * y.sum() - grads[1],
        (grads[0] * x).sum() * array_of(y, 1) + grads[1]),
    )  # fmt: skip
    x, y = jnp.arange(12.0).reshape(4, 3), jnp.arange(3.0)
    with pytest.warns(FallbackWarning, match="by_sample: vmap runs one call per sample; give batch="):
        result = jax.vmap(op, in_axes=(0, None))(x, y)
    plain = lambda x, y: (x * y.sum(), y - x)  # noqa: E731
    close(result, jax.vmap(plain, in_axes=(0, None))(x, y))
    with warnings.catch_warnings():
        warnings.simplefilter("error")

        def run(f):
            each = jax.grad(lambda x, y: (f(x, y)[0] * f(x, y)[1]).sum(), (0, 1))
            return jax.vmap(each, (1, None))(x.T, y)

        close(run(op), run(plain))


def test_a_jvp_rule_of_the_author(kernels):
    calls = []

    def rule(x, a, out, tangents):
        calls.append(tuple(t is None for t in tangents))
        return 3 * a * x**2 * tangents[0]

    op = polyop.operator("jax_transforms::with_jvp(Tensor x, float a=1.0) -> Tensor", kernels("cube"), infer="x",
                         jvp=rule, batch="elementwise")  # fmt: skip
    run = lambda f: (jax.jvp(f, (X,), (V,)), jax.jacfwd(f)(X), jax.jit(jax.jacfwd(jax.jacfwd(f)))(X))  # noqa: E731
    close(run(lambda x: op(jnp.asarray(x))), run(lambda x: jnp.asarray(x) ** 3))
    assert set(calls) == {(False, True)}
    with pytest.raises(GradientError, match="with_jvp: has no gradient rule"):
        jax.grad(lambda x: op(x).sum())(jnp.asarray(X))


def test_integers_beside_floats(kernels):
    gather = polyop.operator(
        "jax_transforms::gather(Tensor x, Tensor index) -> (Tensor, Tensor)",
        lambda x, index: (x[index], index + 1),
        infer=lambda x, index: (polyop.Spec(index.shape, x.dtype), index),
        gradient=lambda x, index, out, grads: (jnp.zeros(x.shape, x.dtype).at[index].add(grads[0]), None),
    )
    index = jnp.array([2, 0, 0])
    plain = lambda x, index: (x[index], index + 1)  # noqa: E731
    run = lambda f: (jax.grad(lambda x: (f(x, index)[0] * V).sum())(jnp.asarray(X)),  # noqa: E731
                     jax.jvp(lambda x: f(x, index)[0], (jnp.asarray(X),), (jnp.asarray(V),)),
                     jax.vjp(lambda x: f(x, index), jnp.asarray(X))[0])  # fmt: skip
    close(run(gather), run(plain))
    moved = jax.jvp(gather, (jnp.asarray(X), index), (jnp.asarray(V), np.zeros(3, jax.dtypes.float0)))[1]
    close(moved[0], jnp.asarray(V)[index])
    assert moved[1].dtype == jax.dtypes.float0
    only = polyop.operator("jax_transforms::ints(Tensor x) -> Tensor", lambda x: x * 2, infer="x")
    assert jax.grad(lambda x: (x * only(jnp.arange(3))).sum())(jnp.asarray(X)).tolist() == [0, 2, 4]


COMPLEX = [
    ("square", lambda x: x * x, lambda x, out, dout: (dout * (2 * x).conj(),)),
    ("abs2", lambda x: (x * x.conj()).real, lambda x, out, dout: (2 * dout * x,)),
    ("conj", lambda x: x.conj(), lambda x, out, dout: (dout.conj(),)),
    ("real", lambda x: x.real, lambda x, out, dout: (dout + 0j,)),
]


@pytest.mark.slow(1)
@pytest.mark.parametrize(("name", "formula", "gradient"), COMPLEX, ids=[row[0] for row in COMPLEX])
def test_complex_gradients(name, formula, gradient):
    op = polyop.operator(
        f"jax_transforms::complex_{name}(Tensor x) -> Tensor", lambda x: np.ascontiguousarray(formula(x)),
        infer=lambda x: polyop.Spec(x.shape, formula(np.zeros(1, x.dtype.numpy)).dtype), gradient=gradient,
        batch="elementwise",
    )  # fmt: skip
    x = jnp.array([1 + 2j, -0.5j, 3])
    weight = formula(x) * 0 + jnp.array([1.0, 2.0, -1.0])

    def run(f):
        real = lambda x: (f(x) * weight).real.sum() + (f(x) * weight).imag.sum()  # noqa: E731
        forward = jax.jvp(f, (x,), (x * 1j + 1,))
        return jax.grad(real)(x), forward, jax.jit(jax.grad(real))(x), jax.vjp(f, x)[1](weight)

    close(run(op), run(formula))
    _, pull = op.vjp(x)
    host, expected = op.vjp(np.asarray(x))[1](np.asarray(weight)), pull(weight)
    np.testing.assert_allclose(expected[0], host[0])


def test_op_vjp_is_as_on_numpy(kernels):
    op = polyop.operator(
        "jax_transforms::pair(Tensor[] xs, Tensor? y, float a) -> (Tensor, Tensor)",
        lambda xs, y, a: (a * xs[0] * xs[1], xs[1] + (0 if y is None else y)),
        infer=lambda xs, y, a: (xs[0], xs[0]),
        gradient=lambda xs, y, a, out, grads: (
            (a * grads[0] * xs[1], a * grads[0] * xs[0] + grads[1]), None if y is None else grads[1], None),
    )  # fmt: skip
    for y in (None, X):
        inputs = ([X, V], y, 2.0)
        there = jax.tree.map(lambda v: jnp.asarray(v) if isinstance(v, np.ndarray) else v, inputs)
        outputs, pull = op.vjp(*inputs)
        result, pull_there = op.vjp(*there)
        close(result, tuple(map(jnp.asarray, outputs)))
        expected, grads = pull((X, V)), pull_there((jnp.asarray(X), jnp.asarray(V)))
        assert len(grads) == 3 and grads[2] is None and (grads[1] is None) == (y is None)
        close(grads[0], tuple(map(jnp.asarray, expected[0])))
        one = op.vjp(*there)[1]((None, jnp.asarray(V)))  # None: zero
        close(one[0][1], jnp.asarray(V))
    run = lambda f: jax.grad(lambda xs, y: (f(xs, y, 2.0)[0] * f(xs, y, 2.0)[1]).sum(), (0, 1))(  # noqa: E731
        [jnp.asarray(X), jnp.asarray(V)], jnp.asarray(X))  # fmt: skip
    close(run(op), run(lambda xs, y, a: (a * xs[0] * xs[1], xs[1] + y)))


def test_rules_call_other_operators(square):
    x = jnp.asarray(X, jnp.float32)
    close(jax.grad(lambda x: square(x).sum())(x), 2 * x)
    close(jax.jit(jax.vjp(square, x)[1])(x)[0], 2 * x * x)
    with pytest.raises(GradientError, match="host_tests::square_grad: has no gradient rule"):
        jax.grad(lambda x: jax.grad(lambda x: square(x).sum())(x).sum())(x)
    with pytest.raises(GradientError, match="host_tests::square: forward mode needs jvp="):
        jax.jvp(square, (x,), (x,))


@pytest.mark.parametrize("transform", [
    lambda f, x: jax.grad(lambda x: f(x).sum())(x), lambda f, x: jax.jvp(f, (x,), (x,)), lambda f, x: jax.vjp(f, x)[1](x),
    lambda f, x: jax.jit(jax.grad(lambda x: f(x).sum()))(x), lambda f, x: jax.vmap(jax.grad(f))(x),
    lambda f, x: f.vjp(x),
], ids=["grad", "jvp", "vjp", "jit", "vmap", "op.vjp"])  # fmt: skip
@pytest.mark.filterwarnings("ignore::polyop.FallbackWarning")
def test_a_missing_gradient_is_an_error_with_a_hint(plain, transform):
    message = r"host_tests::plain: has no gradient rule\n  defined at .*\n  give gradient= \(or bprop=\): a function"
    with pytest.raises(GradientError, match=message):
        transform(plain, jnp.asarray(X, jnp.float32))


def test_an_unused_gradient_is_no_error(plain):
    x = jnp.asarray(X, jnp.float32)
    close(jax.grad(lambda y: (y * plain(x)).sum())(x), x * x)
    close(jax.grad(lambda x: (x * plain(lax.stop_gradient(x))).sum())(x), x * x)
    value, aux = jax.grad(lambda x: (x.sum(), plain(lax.stop_gradient(x))), has_aux=True)(x)
    close(aux, x * x)
    close(value, jnp.ones_like(x))


WRONG = [
    ("count", lambda x, out, dout: (dout, dout), "the gradient rule must return a tuple of 1.*but got 2"),
    (
        "no tuple",
        lambda x, out, dout: dout,
        r"must return a tuple of 1.*\n.*also for one input: return \(dx,\)",
    ),
    (
        "shape",
        lambda x, out, dout: (dout[:2],),
        r"gradient of x: must have the input's shape \(3,\), but got \(2,\)",
    ),
    ("type", lambda x, out, dout: ("x",), "gradient of x: must be a tensor or None, but got str"),
]
TRACED = [
    ("numpy", lambda x, out, dout: (np.sin(x) * dout,)),
    ("if", lambda x, out, dout: (dout if x[0] > 0 else -dout,)),
    ("float", lambda x, out, dout: (float(x[0]) * dout,)),
    ("asarray", lambda x, out, dout: (np.asarray(dout),)),
]


@pytest.mark.parametrize(("name", "rule", "message"), WRONG, ids=[row[0] for row in WRONG])
@pytest.mark.parametrize("jit", [False, True], ids=["", "jit"])
def test_a_wrong_rule(kernels, name, rule, message, jit):
    check_wrong(kernels, f"{name.replace(' ', '_')}_{jit}", rule, message, jax.jit if jit else lambda f: f)


def check_wrong(kernels, name, rule, message, mode):
    op = polyop.operator(
        f"jax_transforms::wrong_{name}(Tensor x) -> Tensor", kernels("cube"), infer="x", gradient=rule,
        attributes={"a": 1.0},
    )  # fmt: skip
    with pytest.raises(GradientError, match=f"(?s)jax_transforms::wrong_.*{message}"):
        mode(jax.grad(lambda x: op(x).sum()))(jnp.asarray(X))


@pytest.mark.parametrize(("name", "rule"), TRACED, ids=[row[0] for row in TRACED])
def test_a_rule_that_reads_values_where_there_are_none(kernels, name, rule):
    check_wrong(
        kernels, name, rule, "the gradient rule needs the values of a JAX array that is being traced", jax.jit
    )


def test_a_rule_of_numpy_functions_works_while_the_values_are_there():
    op = polyop.operator("jax_transforms::of_numpy(Tensor x) -> Tensor", lambda x: np.sin(x), infer="x",
                         gradient=lambda x, out, dout: (np.cos(x) * dout,))  # fmt: skip
    x = jnp.asarray(X)
    close(jax.grad(lambda x: op(x).sum())(x), jnp.cos(x))
    with pytest.raises(
        GradientError, match=r"of_numpy: .*is being traced.*\n.*\n.*array_namespace\(x\): no NumPy"
    ):
        jax.jit(jax.grad(lambda x: op(x).sum()))(x)
    with pytest.raises(GradientError, match="of_numpy: .*is being traced"):
        jax.hessian(lambda x: op(x).sum())(x)


def test_a_gradient_of_another_dtype_is_cast(kernels):
    op = polyop.operator(
        "jax_transforms::cast(Tensor x) -> Tensor", lambda x: x * 2, infer="x",
        gradient=lambda x, out, dout: (2 * jnp.asarray(dout, jnp.float64),),
    )  # fmt: skip
    assert jax.grad(lambda x: op(x).sum())(jnp.ones(2, jnp.float32)).dtype == np.float32


def test_only_residuals_that_the_rule_reads_are_kept(kernels):
    def residuals(rule, *inputs):
        name = f"jax_transforms::reads_{next(numbers)}"
        op = polyop.operator(f"{name}(Tensor x, Tensor y) -> Tensor", lambda x, y: np.exp(x) * y, infer="x",
                             gradient=rule)  # fmt: skip
        return len(jax.tree.leaves(jax.vjp(op, *inputs)[1]))

    numbers = itertools.count()
    x = jnp.ones(5)
    assert residuals(lambda x, y, out, dout: (dout, dout), x, x) == 0
    assert residuals(lambda x, y, out, dout: (dout * out, dout), x, x) == 1
    assert residuals(lambda x, y, out, dout: (dout * out, dout * x), x, x + 1) == 2
    assert residuals(lambda x, y, out, dout: (dout * y.shape[0], dout * x), x, x + 1) == 2


def test_residuals_of_lists_and_of_jvp_rules():
    def residuals(schema, inputs, **rules):
        name = f"jax_transforms::reads_more_{next(numbers)}"
        op = polyop.operator(f"{name}{schema}", lambda xs, y: sum(xs) * y, infer=lambda xs, y: y, **rules)
        value, pull = jax.vjp(op, *inputs)
        pull(value)
        return len(jax.tree.leaves(pull))

    numbers = itertools.count()
    lists, x = "(Tensor[] xs, Tensor y) -> Tensor", jnp.ones(3)
    inputs = ([x, x + 1], x + 2)
    assert residuals(lists, inputs, gradient=lambda xs, y, out, dout: (None, dout)) == 0
    assert residuals(lists, inputs, gradient=lambda xs, y, out, dout: ([dout * y] * 2, None)) == 1
    assert residuals(lists, inputs, gradient=lambda xs, y, out, dout: (None, dout * sum(xs))) == 2
    grad = lambda xs, y, out, dout: ([dout * y] * 2, None)  # noqa: E731
    assert residuals(lists, inputs, gradient=grad, jvp=lambda xs, y, out, tangents: tangents[1]) == 1
    assert residuals(lists, inputs, gradient=grad, jvp=lambda xs, y, out, tangents: tangents[1] * out) == 2


def test_an_error_of_the_rule_itself_in_forward_mode(kernels):
    op = polyop.operator("jax_transforms::two_gradients(Tensor x) -> Tensor", lambda x: x, infer="x",
                         gradient=lambda x, out, dout: (dout, dout))  # fmt: skip
    message = (
        "two_gradients: the gradient rule must return a tuple of 1, one gradient or None per input, but got 2"
    )
    for run in (lambda x: jax.jvp(op, (x,), (x,)), jax.jit(jax.jacfwd(op))):
        with pytest.raises(GradientError, match=message) as caught:
            run(jnp.asarray(X))
        assert "forward mode" not in str(caught.value)


def test_a_wrong_jvp_rule():
    two = polyop.operator("jax_transforms::two(Tensor x) -> (Tensor, Tensor)", lambda x: (x, x), infer=lambda x: (x, x),
                          jvp=lambda x, out, tangents: (tangents[0],))  # fmt: skip
    x = jnp.asarray(X)
    with pytest.raises(
        GradientError, match="two: jvp= must return 2 tangents, one or None per output, but got 1"
    ):
        jax.jvp(two, (x,), (x,))
    one = polyop.operator("jax_transforms::one(Tensor x) -> Tensor", lambda x: x, infer="x",
                          jvp=lambda x, out, tangents: tangents[0][:1])  # fmt: skip
    message = r"one: tangent of output 0: must have the output's shape \(3,\), but got \(1,\)"
    with pytest.raises(GradientError, match=message):
        jax.jvp(one, (x,), (x,))


def test_second_derivatives_beside_integers():
    gather = polyop.operator(
        "jax_transforms::gather_squared(Tensor x, Tensor index) -> Tensor", lambda x, index: x[index] ** 2,
        infer=lambda x, index: polyop.Spec(index.shape, x.dtype),
        gradient=lambda x, index, out, dout: (jnp.zeros(x.shape, x.dtype).at[index].add(2 * x[index] * dout), None),
    )  # fmt: skip
    x, index = jnp.asarray(X), jnp.array([2, 0, 0])
    run = lambda f: (jax.hessian(lambda x: f(x, index).sum())(x), jax.jacrev(jax.jacfwd(lambda x: f(x, index)))(x),  # noqa: E731
                     jax.jit(jax.hessian(lambda x, i: f(x, i).sum()))(x, index))  # fmt: skip
    close(run(gather), run(lambda x, index: x[index] ** 2))
