"""Eager calls of JAX arrays, from the second on: the native core calls the compiled program."""

import dataclasses
import itertools

import jax
import numpy as np
import pytest

import polyop
from entered import files_entered

NUMBERS = itertools.count()


@pytest.fixture
def scaled():
    """a * x, a new operator for each test; a Python kernel, so that a test can replace it."""
    return polyop.operator(
        f"jax_planned::scaled{next(NUMBERS)}(Tensor x, float a=2.0) -> Tensor",
        lambda x, a: a * x,
        infer="x",
        gradient=lambda x, a, out, dout: (a * dout, None),
        batch="elementwise",
    )


@pytest.fixture(scope="session")
def halves():
    return polyop.operator(
        "jax_planned::halves(Tensor x, Tensor? y=None) -> (Tensor, Tensor)",
        lambda x, y=None: (x / 2, x if y is None else y),
        infer=lambda x, y=None: (x, x),
    )


X = np.arange(4.0)


def test_a_warm_call_goes_from_the_core_to_the_program(cube):
    x = jax.numpy.asarray(X)
    for _ in range(20):  # a number that only goes into the kernel gets a program of its own when it is common
        np.testing.assert_array_equal(cube(x, 3.0), 3 * X**3)
    assert files_entered(lambda: cube(x, 3.0))[1] == {"hosts/jax/planned.py"}


def test_shapes_dtypes_and_attributes_may_change(scaled):
    for _ in range(3):
        for name in ("float32", "float64"):
            for shape in ((4,), (2, 2), (0,)):
                x = np.ones(shape, name)
                for arguments, keywords, a in (
                    ((), {}, 2),
                    ((3.0,), {}, 3),
                    ((4,), {}, 4),
                    ((), {"a": 5.0}, 5),
                ):
                    out = scaled(jax.numpy.asarray(x), *arguments, **keywords)
                    assert out.dtype == x.dtype
                    np.testing.assert_array_equal(out, a * x)


def test_more_attributes_than_plans(scaled):
    x = jax.numpy.asarray(X)
    for _ in range(2):
        for a in range(20):
            np.testing.assert_array_equal(scaled(x, float(a)), a * X)


def test_several_outputs_and_an_absent_tensor(halves):
    x, y = jax.numpy.asarray(X), jax.numpy.asarray(X + 1)
    for _ in range(3):
        for arguments in ((x,), (x, None), (x, y)):
            outputs = halves(*arguments)
            assert type(outputs) is tuple
            np.testing.assert_array_equal(outputs[0], X / 2)
            np.testing.assert_array_equal(outputs[1], X + 1 if arguments[-1] is y else X)


def test_transforms_go_past_the_plan(scaled):
    x = jax.numpy.asarray(X)
    for _ in range(3):
        scaled(x, 3.0)
        np.testing.assert_array_equal(jax.grad(lambda x: scaled(x, 3.0).sum())(x), np.full(4, 3.0))
        np.testing.assert_array_equal(jax.vmap(lambda x: scaled(x, 3.0))(x), 3 * X)
        np.testing.assert_array_equal(jax.jit(lambda x: scaled(x, 3.0) + 1)(x), 3 * X + 1)


def test_the_debugging_flags_are_still_seen(scaled):
    x = jax.numpy.asarray([1.0, np.nan])
    for _ in range(3):
        scaled(x)
    with jax.debug_nans(True), pytest.raises(FloatingPointError, match="jax_planned::scaled"):
        scaled(x)
    with jax.disable_jit():
        np.testing.assert_array_equal(scaled(jax.numpy.asarray(X)), 2 * X)


def test_a_new_definition_drops_the_plan(scaled):
    x = jax.numpy.asarray(X)
    for _ in range(3):
        np.testing.assert_array_equal(scaled(x), 2 * X)
    kernel = dataclasses.replace(scaled.operator.kernels[0], function=lambda x, a: a + x)
    scaled.update(dataclasses.replace(scaled.operator, kernels=(kernel,)))
    for _ in range(3):
        np.testing.assert_array_equal(scaled(x), X + 2)


def test_an_array_of_numpy_is_not_taken_for_one_of_jax(scaled):
    for _ in range(3):
        assert isinstance(scaled(jax.numpy.asarray(X)), jax.Array)
        assert type(scaled(X)) is np.ndarray


def test_a_wrong_argument_is_an_error_on_a_warm_operator(scaled):
    x = jax.numpy.asarray(X)
    scaled(x), scaled(x)
    for arguments in ((x, "text"), (x, x), (x, 1.0, 2.0), ()):
        with pytest.raises((polyop.PolyopError, TypeError)):
            scaled(*arguments)


@polyop.kernel(name="jax_planned::stepped")
def stepped(x, rate: float, times: int = 1):
    y = output_tensor(x.shape, x.dtype)  # noqa: F821
    for i in range(x.shape[0]):
        y[i] = x[i] * x[i] * rate * times
    return y


def test_numbers_that_keep_changing_compile_no_program_for_each_value(monkeypatch):
    jitted, jit = [], jax.jit
    monkeypatch.setattr(jax, "jit", lambda *args, **options: jitted.append(args) or jit(*args, **options))
    x = jax.numpy.asarray(X)
    gradient = jax.grad(lambda x, rate, times: stepped(x, rate, times).sum())
    for k in range(40):
        rate, times = 0.5 + k / 8, 1 + k % 3 * 70
        y = stepped(x, rate, times)
        assert isinstance(y, jax.Array) and y.dtype == x.dtype
        np.testing.assert_array_equal(y, stepped.python(X, rate, times))
        np.testing.assert_allclose(gradient(x, rate, times), 2 * X * rate * times)
    assert len(jitted) <= 4
    for _ in range(20):  # a value that stays gets its program
        np.testing.assert_array_equal(stepped(x, 9.5), stepped.python(X, 9.5))
    assert "hosts/jax/uncompiled.py" not in files_entered(lambda: stepped(x, 9.5))[1]
    np.testing.assert_array_equal(jit(lambda x: stepped(x, 0.75, 3) + 1)(x), stepped.python(X, 0.75, 3) + 1)
    every = jax.vmap(lambda x: stepped(x, 0.875))(jax.numpy.stack([x, x]))
    np.testing.assert_array_equal(every, [stepped.python(X, 0.875)] * 2)
