"""Bad input to operators in JAX: errors and their messages."""

import numpy as np
import pytest

import polyop
from polyop import Spec
from polyop.core.errors import ArgumentTypeError, HostError, InferError, NoKernelError

jax = pytest.importorskip("jax", reason="JAX is not installed")
import jax.numpy as jnp  # noqa: E402

X = np.array([[1, -2, 3], [4, 5, -6]], np.float32)
modes = pytest.mark.parametrize("mode", [lambda f: f, jax.jit], ids=["eager", "jit"])


@pytest.fixture
def define(request):
    count = iter(range(100))

    def make(kernel, infer="x", schema="(Tensor x) -> Tensor", **more):
        name = "".join(c if c.isalnum() else "_" for c in request.node.name)
        return polyop.operator(f"jax_bad::{name}_{next(count)}{schema}", kernel, infer=infer, **more)

    return make


@modes
def test_a_kernel_that_fails(kernels, define, mode):
    with pytest.raises(
        Exception, match=r"KernelError: jax_bad::\w+: the kernel returned 7; any value other than 0"
    ):
        mode(define(kernels("fails_with_7")))(jnp.asarray(X)).block_until_ready()
    op = define(kernels("fails_with_words"))
    for _ in range(2):
        with pytest.raises(
            Exception, match=r"the kernel returned 1 \(needs a square matrix\)(.|\n)*kernels.c"
        ):
            mode(op)(jnp.asarray(X)).block_until_ready()


@modes
def test_a_kernel_that_throws(sources, define, mode):
    op = define(f"{sources / 'faults.cc'}:Throws")
    with pytest.raises(Exception, match="KernelError: .*the kernel threw .*the matrix is singular"):
        mode(op)(jnp.asarray(X)).block_until_ready()


@modes
def test_a_python_kernel_that_fails(define, mode):
    op = define(lambda x: 1 / 0)
    with pytest.raises(Exception, match="ZeroDivisionError: division by zero"):
        mode(op)(jnp.asarray(X)).block_until_ready()
    op = define(lambda x: x[:1])
    with pytest.raises(
        Exception, match=r"KernelError: (.|\n)*must have shape \(2, 3\), as the operator infers it, but got"
    ):
        mode(op)(jnp.asarray(X)).block_until_ready()
    op = define(lambda x: x.astype("float64"))
    with pytest.raises(
        Exception, match="KernelError: (.|\n)*must be float32, as the operator infers it, but got float64"
    ):
        mode(op)(jnp.asarray(X)).block_until_ready()
    np.testing.assert_array_equal(mode(define(lambda x: x))(jnp.asarray(X)), X)  # the process still works


KEPT = {
    "itself": lambda x, kept: kept.append(x),
    "a view": lambda x, kept: kept.append(x[1:, ::-1].T),
    "its buffer": lambda x, kept: kept.append(memoryview(x)),
    "in a closure": lambda x, kept: kept.append(lambda: x),
}


@pytest.mark.slow
@modes
@pytest.mark.parametrize("kind", KEPT)
def test_a_python_kernel_that_keeps_its_input(define, mode, kind):
    kept = []

    def kernel(x):
        KEPT[kind](x, kept)
        return x + 1

    message = r"KernelError: jax_bad::\w+: keeps an input beyond the call(.|\n)*shape \(2, 3\)(.|\n)*x.copy"
    with pytest.raises(Exception, match=message):
        mode(define(kernel))(jnp.asarray(X)).block_until_ready()
    kept.clear()


@pytest.mark.slow
@modes
def test_a_python_kernel_that_keeps_an_argument_that_it_writes(define, mode):
    kept = []
    op = define(lambda x: kept.append(x), infer=None, schema="(Tensor(a!) x) -> ()")
    with pytest.raises(Exception, match="KernelError: .*keeps an argument that it writes beyond the call"):
        mode(op)(jnp.asarray(X)).block_until_ready()
    kept.clear()


@pytest.mark.slow(1)
@modes
def test_a_python_kernel_may_make_cycles_and_keep_copies(define, mode):
    kept = []

    def kernel(x):
        cycle = [x]
        cycle.append(cycle)
        kept.append(x.copy())
        return np.asarray(jnp.asarray(x) * 2)

    np.testing.assert_array_equal(mode(define(kernel))(jnp.asarray(X)), 2 * X)
    np.testing.assert_array_equal(kept[0], X)


@modes
def test_an_operator_without_outputs_runs_for_its_effect(define, mode):
    calls = []
    op = define(lambda x: calls.append(x.copy()), infer=lambda x: (), schema="(Tensor x) -> ()")
    assert mode(lambda x: (op(x), x)[1])(jnp.asarray(X)).shape == (2, 3)
    jax.effects_barrier()
    np.testing.assert_array_equal(calls[0], X)


@modes
def test_no_kernel_for_a_dtype(sources, define, mode):
    op = define(f"{sources / 'kernels.c'}:square", dtypes=["float32"])
    with pytest.raises(NoKernelError, match="float64"):
        op(np.zeros(2))
    with pytest.raises(Exception, match="(?s)jax_bad::.*float64"):
        mode(op)(jnp.zeros(2)).block_until_ready()


@modes
def test_random_keys_and_small_integers(square, mode):
    with pytest.raises(
        ArgumentTypeError,
        match=r"(?s)host_tests::square: argument x: .*must be one that kernels take: .*key<",
    ):
        mode(square)(jax.random.key(0))
    with pytest.raises(ArgumentTypeError, match="(?s)host_tests::square: argument x: .*but got .*int4"):
        mode(square)(jnp.zeros(4, jnp.int4))


@modes
def test_mixed_frameworks(kernels, define, mode):
    op = define(kernels("sum_and_difference"), schema="(Tensor x, Tensor y) -> (Tensor, Tensor)")
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    message = "y is a tensor of torch, and x one of jax\n.*\n.*convert one of them first"
    with pytest.raises(HostError, match=message):
        mode(lambda x: op(x, torch.from_numpy(X)))(jnp.asarray(X))
    with pytest.raises(HostError, match="y is a tensor of torch, and x one of numpy"):
        mode(lambda x: op(X, torch.from_numpy(X)))(jnp.asarray(X))
    with pytest.raises(ArgumentTypeError, match="argument y: must be a tensor of numpy or torch or jax"):
        mode(lambda x: op(X, 1.0))(jnp.asarray(X))


@modes
def test_an_operator_bound_to_another_device(sources, mode):
    op = polyop.Custom(f"{sources / 'kernels.c'}:square", lambda x: x, lambda x: x, "aot").set_device("GPU")
    with pytest.raises(HostError, match="is bound to cuda, where the arrays are on cpu"):
        mode(op)(jnp.asarray(X))


@modes
def test_an_infer_rule_that_fails(define, mode):
    with pytest.raises(InferError, match="infer: the function raised ZeroDivisionError: division by zero"):
        mode(define(lambda x: x, infer=lambda x: 1 / 0))(jnp.asarray(X))


def test_a_wrong_attribute(cube):
    with pytest.raises(ArgumentTypeError, match="cube: argument a: must be float, but got 'x'"):
        jax.jit(lambda x: cube(x, "x"))(jnp.ones(2))
    with pytest.raises(ArgumentTypeError, match="cube: argument a: must be float, but got"):
        jax.jit(cube)(jnp.ones(2), jnp.ones(()))


def test_a_gradient_rule_that_mixes_frameworks(define):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    op = define(lambda x: x, gradient=lambda x, out, dout: (other(torch.ones(3), dout),))
    other = define(lambda x, y: x * y, schema="(Tensor x, Tensor y) -> Tensor")
    with pytest.raises(HostError, match="y is a tensor of jax, and x one of torch"):
        jax.grad(lambda x: op(x).sum())(jnp.ones(3))


def test_a_jvp_rule_of_numpy_functions(define):
    op = define(lambda x: np.sin(x), jvp=lambda x, out, tangents: np.cos(x) * tangents[0])
    with pytest.raises(polyop.PolyopError, match="is being traced(.|\n)*array_namespace"):
        jax.jit(lambda x: jax.jvp(op, (x,), (x,))[1])(jnp.ones(3))


def test_vjp_with_the_wrong_number_of_gradients(cube):
    _, pull = cube.vjp(jnp.ones(3))
    with pytest.raises(
        polyop.PolyopError,
        match=r"cube: gradient of output 0: must have the output's shape \(3,\), but got \(2,\)",
    ):
        pull(jnp.ones(2))


def test_a_jax_that_is_too_old(monkeypatch, define):
    negate = define(lambda x: -x)
    monkeypatch.setattr(jax, "__version_info__", (0, 6, 2))
    with pytest.raises(HostError, match=r"JAX: must be 0.7 or later, but got \d"):
        negate(jnp.ones(2))
    np.testing.assert_array_equal(negate(np.ones(2)), [-1, -1])


def test_an_infer_rule_that_reads_a_variable_is_asked_again(define):
    size = [2]
    op = define(lambda x: np.zeros(size[0]), infer=lambda x: Spec((size[0],), "float64"))
    assert op(jnp.ones(1)).shape == (2,)
    size[0] = 3
    assert op(jnp.ones(1)).shape == (3,)
    compiled = jax.jit(op)
    assert compiled(jnp.ones(1)).shape == (3,)
    size[0] = 4
    with pytest.raises(Exception, match=r"the program must have outputs float64\[4\], but got float64\[3\]"):
        compiled(jnp.ones(1)).block_until_ready()


@modes
def test_the_debugging_flags_of_jax(define, cube, mode):
    op = define(lambda x: x / 0 * np.sign(x))
    x = jnp.asarray([1.0, 0.0, -1.0])
    with jax.debug_nans(True), np.errstate(all="ignore"):
        np.testing.assert_array_equal(mode(cube)(x), x**3)
        with pytest.raises(FloatingPointError, match=r"jax_bad::\w+: output 0 has a value that is nan"):
            mode(op)(x)
    message = r"jax_bad::\w+: output 0 has a value that is inf"
    with jax.debug_infs(True), np.errstate(all="ignore"), pytest.raises(FloatingPointError, match=message):
        mode(op)(x)
    with jax.disable_jit():
        np.testing.assert_array_equal(mode(jax.vmap(jax.grad(lambda x: cube(x))))(x), 3 * x**2)
        np.testing.assert_array_equal(mode(cube)(x), x**3)
    with jax.checking_leaks():
        np.testing.assert_array_equal(mode(jax.grad(lambda x: cube(x).sum()))(x), 3 * x**2)


def test_types_without_values(cube):
    result = jax.eval_shape(lambda x: cube(x, 2.0), jax.ShapeDtypeStruct((5,), "float64"))
    assert (result.shape, result.dtype) == ((5,), np.float64)
    assert "host_tests::cube" in str(jax.make_jaxpr(cube)(jnp.ones(2)))


def test_an_empty_batch(cube, define):
    assert jax.vmap(cube)(jnp.zeros((0, 3))).shape == (0, 3)
    op = define(lambda x: x + 1)
    with pytest.warns(polyop.FallbackWarning, match="vmap runs one call per sample"):
        assert jax.vmap(op)(jnp.zeros((0, 3))).shape == (0, 3)


@modes
def test_a_rule_by_array_namespace(define, mode):
    from array_api_compat import array_namespace

    def rule(x, out, dout):
        return (array_namespace(x).cos(x) * dout,)

    op = define(lambda x: np.sin(x), gradient=rule)
    x = jnp.arange(3.0)
    np.testing.assert_allclose(mode(jax.hessian(lambda x: op(x).sum()))(x), np.diag(-np.sin(x)), rtol=1e-12)


@modes
def test_an_operator_without_outputs_in_transforms(define, mode):
    calls = []
    op = define(lambda x: calls.append(x.tolist()), infer=lambda x: (), schema="(Tensor x) -> ()")

    def run(x):
        op(x)
        return (x * x).sum()

    x = jnp.arange(3.0)
    assert mode(jax.grad(run))(x).tolist() == [0, 2, 4]
    assert mode(jax.vmap(run))(x[:, None] + x).shape == (3,)
    jax.lax.fori_loop(0, 2, lambda i, c: (op(c), c + 1)[1], x).block_until_ready()
    jax.effects_barrier()
    rows = [[0.0, 1.0, 2.0], [1.0, 2.0, 3.0], [2.0, 3.0, 4.0]]
    assert calls == [rows[0], *rows, rows[0], rows[1]]


def test_an_operator_without_outputs_in_checkpoint(define):
    op = define(lambda x: None, infer=lambda x: (), schema="(Tensor x) -> ()")
    with pytest.raises(NotImplementedError, match="Effects not supported in partial-eval of `checkpoint`"):
        jax.grad(jax.checkpoint(lambda x: (op(x), (x * x).sum())[1]))(jnp.ones(3))


@pytest.mark.parametrize("call", [lambda op, x: op(x), lambda op, x: jax.eval_shape(op, x)])
def test_a_dtype_that_no_kernel_takes_is_refused_while_the_program_is_made(call):
    op = polyop.operator(
        f"jax_bad_input::narrow_{id(call)}(Tensor x) -> Tensor", np.sin, infer="x", dtypes=["float32"]
    )
    with pytest.raises(NoKernelError, match=r"pyfunc sin: takes float32, not float16"):
        call(op, jnp.ones(2, "float16"))


def test_a_python_kernel_that_raises_in_a_program_names_the_operator_and_the_line():
    def broken(x):
        return {}["k"]

    op = polyop.operator("jax_bad_input::broken(Tensor x) -> Tensor", broken, infer="x")
    message = r"(?s)jax_bad_input::broken: the kernel raised KeyError: 'k'.*test_bad_input.py:\d+"
    with pytest.raises(jax.errors.JaxRuntimeError, match=message):
        jax.jit(op)(jnp.ones(2)).block_until_ready()
