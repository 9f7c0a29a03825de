"""Gradients in Paddle: of every order, of programs that it traces, and what has none."""

import gc
import pathlib
import runpy

import numpy as np
import pytest

import polyop
from polyop.core.errors import GradientError, UnsupportedError

paddle = pytest.importorskip("paddle", reason="not run: paddle is not installed")

square = polyop.operator(
    "paddle_gradients::square(Tensor x) -> Tensor",
    lambda x: x * x,
    infer="x",
    gradient=lambda x, out, dout: (2 * x * dout,),
)
exp = polyop.operator(  # its rule reads the output
    "paddle_gradients::exp(Tensor x) -> Tensor",
    np.exp,
    infer="x",
    gradient=lambda x, out, dout: (out * dout,),
)


@polyop.kernel
def exp_in_loops(x):
    y = output_tensor(x.shape, x.dtype)  # noqa: F821 - a word of the loop language
    for i in range(x.shape[0]):
        y[i] = np.exp(x[i])
    return y


plain = polyop.operator("paddle_gradients::plain(Tensor x) -> Tensor", lambda x: x * x, infer="x")
weighted = polyop.operator(
    "paddle_gradients::weighted(Tensor[] xs, Tensor? w, int power=1) -> Tensor",
    lambda xs, w, power: sum(xs) * (1 if w is None else w) * power,
    infer=lambda xs, w, power: xs[0],
    gradient=lambda xs, w, power, out, dout: (
        [dout * power * (1 if w is None else w) for _ in xs],
        None if w is None else sum(xs) * dout * power,
        None,
    ),
)
largest = polyop.operator(
    "paddle_gradients::largest(Tensor x) -> (Tensor, Tensor)",
    lambda x: (x.max(-1), x.argmax(-1)),
    infer=lambda x: (polyop.Spec(x.shape[:-1], x.dtype), polyop.Spec(x.shape[:-1], "int64")),
    gradient=lambda x, outs, grads: ((x == outs[0].unsqueeze(-1)).astype(x.dtype) * grads[0].unsqueeze(-1),),
)


def _scale(x, by):
    x *= by


scale_ = polyop.operator("paddle_gradients::scale_(Tensor(a!) x, Tensor by) -> ()", _scale)


def leaf(*values):
    return paddle.to_tensor(values, dtype="float64", stop_gradient=False)


@pytest.mark.parametrize(
    ("op", "derivatives"),
    [(square, ([1, 4], [2, 4], [2, 2])), (exp, [np.exp([1.0, 2.0])] * 4)],
    ids=["square", "exp"],
)
def test_gradients_of_gradients(op, derivatives):
    x = leaf(1.0, 2.0)
    value = op(x)
    for expected in derivatives[:-1]:
        np.testing.assert_allclose(value.numpy(), expected)
        (value,) = paddle.grad(value.sum(), x, create_graph=True)
    np.testing.assert_allclose(value.numpy(), derivatives[-1])


@pytest.mark.parametrize("traced", [False, True])
def test_lists_optional_tensors_and_attributes(traced):
    def program(a, b, w):
        return weighted([a, b], w, 3)

    call = paddle.jit.to_static(program, full_graph=True) if traced else program
    a, b, w = leaf(1.0, 2.0), leaf(3.0, 4.0), leaf(5.0, 6.0)
    call(a, b, w).sum().backward()
    assert (a.grad.tolist(), b.grad.tolist(), w.grad.tolist()) == ([15, 18], [15, 18], [12, 18])


@pytest.mark.parametrize("traced", [False, True])
def test_an_output_of_integers_has_no_gradient(traced):
    call = paddle.jit.to_static(lambda_free, full_graph=True) if traced else lambda_free
    x = leaf(1.0, 5.0, 2.0)
    value, place = call(x)
    assert (value.item(), place.item()) == (5, 1)
    assert place.stop_gradient and not value.stop_gradient
    value.sum().backward()
    assert x.grad.tolist() == [0, 1, 0]


def lambda_free(x):
    return largest(x)


def test_stop_gradient_and_no_grad():
    x, y = leaf(1.0), leaf(2.0)
    y.stop_gradient = True
    weighted([x, y], None).backward()
    assert x.grad.tolist() == [1] and y.grad is None
    assert square(y).stop_gradient
    with paddle.no_grad():
        assert square(x).stop_gradient


def test_vjp():
    x = leaf(1.0, 2.0)
    out, pull = square.vjp(x)
    assert out.tolist() == [1, 4]
    assert pull(paddle.ones_like(x))[0].tolist() == [2, 4]


def test_no_rule_is_an_error_when_the_gradient_is_asked_for():
    x = leaf(1.0)
    value = plain(x)
    with pytest.raises(OSError, match="paddle_gradients::plain: has no gradient rule"):
        value.backward()  # Paddle puts what a node raises into an error of its own


def test_an_input_that_was_written_since():
    x = leaf(1.0) * 1
    value = square(x)
    x.add_(paddle.ones_like(x))
    with pytest.raises(OSError, match="reads an input that was written in place after the call"):
        value.backward()


@pytest.mark.parametrize("op", [exp, exp_in_loops], ids=["rule", "kernel"])
def test_an_output_that_was_written_since_and_that_the_gradient_reads(op):
    value = op(leaf(1.0))
    value.add_(paddle.ones_like(value))
    with pytest.raises(OSError, match="reads an output that was written in place after the call"):
        value.backward()


def test_an_output_that_no_gradient_reads_may_be_written():
    x = leaf(1.0, 3.0)
    value = square(x)
    value.add_(paddle.ones_like(value))
    value.sum().backward()
    assert x.grad.tolist() == [2, 6]


def test_writing_in_place_has_no_gradient():
    x, by = paddle.ones([1]), leaf(2.0).astype("float32")
    with pytest.raises(GradientError, match="scale_: writes an argument in place, which has no gradient"):
        scale_(x, by)
    with paddle.no_grad():
        scale_(x, by)
    assert x.tolist() == [2]


def test_a_node_frees_its_tensors():
    x, alive = leaf(1.0), []

    class Counted(np.ndarray):
        pass

    def kernel(x):
        out = np.exp(x)
        alive.append(1)
        return out

    op = polyop.operator(
        "paddle_gradients::freed(Tensor x) -> Tensor",
        kernel,
        infer="x",
        gradient=lambda x, out, dout: (out * dout,),
    )
    before = memory()
    for _ in range(30):
        op(paddle.ones([1000, 1000], dtype="float64") * x)
    gc.collect()
    assert memory() - before < 100  # MiB: 30 outputs alone are 240
    assert len(alive) == 30


def memory():
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    raise AssertionError


def squared_twice(x):
    return square(square(x) * 1).sum()


@pytest.mark.slow(1)
@pytest.mark.parametrize("full_graph", [True, False])
def test_a_traced_program(full_graph):
    call = paddle.jit.to_static(squared_twice, full_graph=full_graph)
    x = leaf(1.0, 2.0)
    for _ in range(2):
        x.clear_gradient()
        value = call(x)
        value.backward()
        assert value.item() == 17
        assert x.grad.tolist() == [4, 32]


def scaled_cube(x, factor: float):
    y = output_tensor(x.shape, x.dtype)  # noqa: F821 - a word of the loop language
    for i in range(x.shape[0]):
        y[i] = factor * x[i] ** 3
    return y


@pytest.mark.parametrize("full_graph", [True, False])
def test_the_first_use_of_an_operator_is_in_a_traced_program(full_graph):
    cube = polyop.kernel(scaled_cube, name=f"paddle_first::cube_{full_graph}")
    negative = polyop.aten("neg")

    def program(x):
        return cube(negative(x), 2.0) + 1

    x = leaf(1.0, 2.0)
    value = paddle.jit.to_static(program, full_graph=full_graph)(x)
    value.sum().backward()
    assert value.tolist() == [-1, -15]
    assert x.grad.tolist() == [-6, -24]


def test_a_traced_program_of_unknown_sizes():
    spec = [paddle.static.InputSpec([None, 3], "float64")]
    call = paddle.jit.to_static(lambda_free, full_graph=True, input_spec=spec)
    for rows in (1, 4):
        value, place = call(paddle.arange(3 * rows, dtype="float64").reshape([rows, 3]))
        assert value.shape == place.shape == [rows]
        assert place.tolist() == [2] * rows


def test_a_traced_program_cannot_write():
    def program(x, by):
        scale_(x, by)
        return x

    with pytest.raises(
        UnsupportedError, match="writes an argument in place, which a program that Paddle traces"
    ):
        paddle.jit.to_static(program, full_graph=True)(paddle.ones([2]), paddle.ones([2]))


def plain_sum(x):
    return plain(x).sum()


def test_an_error_in_a_traced_program_is_on_stderr(capfd):
    value = paddle.jit.to_static(plain_sum, full_graph=True)(leaf(1.0, 2.0))
    with pytest.raises(SystemError):  # it says nothing of the reason
        value.backward()
    assert "paddle_gradients::plain: has no gradient rule" in capfd.readouterr().err


def test_the_code_of_the_page_runs():
    runpy.run_path(str(pathlib.Path(__file__).with_name("page.py")))
