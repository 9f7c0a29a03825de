# ruff: noqa: F821 - a kernel, whose words are no names here
"""Tensors that are not dense: the native core copies them, or a loop kernel reads their rows where they lie."""

import sys

import numpy as np
import pytest

import polyop
from polyop.call.explain import explain
from polyop.core.dtypes import dtype
from polyop.core.errors import ArgumentValueError
from polyop.core.spec import Spec
from polyop.kernels.loop.rows import CALLS_WITH_COPIES

SMALL, LARGE = 6, 300  # threads share the copy of 300 * 300 doubles
LAYOUTS = {
    "transposed": lambda x: x.T,
    "every other": lambda x: x[::2, ::3],
    "reversed": lambda x: x[::-1, ::-1],
    "reversed rows": lambda x: x[::-1],
    "one column": lambda x: x[:, 2],
    "expanded": lambda x: np.broadcast_to(x[:, :1], x.shape),
    "overlapping": lambda x: np.lib.stride_tricks.sliding_window_view(x, 3, axis=1),
    "channels last": lambda x: x.reshape(2, -1, 3).transpose(0, 2, 1),
    "channels first": lambda x: x.reshape(2, 3, -1).transpose(0, 2, 1),
    "one long row": lambda x: x.reshape(-1)[::2],
    "columns": lambda x: x[:, 1:-1],
    "three dimensions": lambda x: x.reshape(2, -1, x.shape[1])[:, ::2].transpose(2, 0, 1),
    "no elements": lambda x: x[:, :0].T,
}
ITEMS = ["int8", "float16", "float32", "float64", "complex128"]


@polyop.kernel
def weigh(x, y):
    z = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            z[i, j] = x[i, j] * x[i, j] * y[i, j]
    return z


@pytest.fixture(scope="session")
def copied(kernels):
    return polyop.operator("strided_tests::copied(Tensor x) -> Tensor", kernels("copy"), infer="x")


def values(size, name):
    return (np.arange(size * size).reshape(size, size) % 101).astype(name)


@pytest.mark.slow(26)
@pytest.mark.parametrize("name", ITEMS)
@pytest.mark.parametrize("size", [SMALL, LARGE])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_numpy(copied, layout, size, name):
    x = LAYOUTS[layout](values(size, name))
    for _ in range(2):
        out = copied(x)
        assert out.flags.c_contiguous
        np.testing.assert_array_equal(out, x)


@pytest.mark.parametrize("name", ITEMS)
@pytest.mark.parametrize("size", [SMALL, LARGE])
@pytest.mark.parametrize("layout", [name for name in LAYOUTS if not name.startswith("reversed")])
def test_torch(copied, layout, size, name):
    torch = pytest.importorskip("torch")
    base = torch.from_numpy(values(size, name))  # has no negative strides
    strides = LAYOUTS[layout](values(size, name)).strides
    shape = LAYOUTS[layout](values(size, name)).shape
    offset = 2 if layout == "one column" else 0
    x = base.as_strided(shape, [s // base.element_size() for s in strides], offset)
    for f in (copied, copied.torch):
        out = f(x)
        assert out.is_contiguous()
        assert torch.equal(out, x)


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_gradients_of_strided_tensors(size):
    torch = pytest.importorskip("torch")
    leaf = torch.from_numpy(values(size, "float64") / 100).requires_grad_()
    other = torch.from_numpy(values(size, "float64") / 50).requires_grad_()
    for make in (lambda t: t.T, lambda t: t[::2, ::2], lambda t: t[:1].expand(4, -1)):
        for _ in range(3):
            x, y = make(leaf), make(other)
            ours = torch.autograd.grad(weigh(x, y).sum(), (leaf, other))  # the gradient of a sum is expanded
            theirs = torch.autograd.grad((x * x * y).sum(), (leaf, other))
            for a, b in zip(ours, theirs, strict=True):
                assert torch.allclose(a, b)


def test_a_strided_tensor_that_is_saved_is_the_callers():
    torch = pytest.importorskip("torch")
    base, y = torch.ones(8, 4, dtype=torch.float64), torch.ones(4, 4, requires_grad=True, dtype=torch.float64)
    for _ in range(3):
        z = weigh(base[::2], y)
        base.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            z.sum().backward()


def test_negative_and_conjugate_views_are_not_read_as_they_lie(copied):
    torch = pytest.importorskip("torch")
    x = torch.arange(12, dtype=torch.float32).reshape(3, 4)
    for view in (torch._neg_view(x).T, torch.complex(x, x).conj().T, torch.complex(x, x).conj().imag[:, ::2]):
        assert torch.equal(copied(view), view.resolve_neg().resolve_conj().contiguous())


def test_what_is_written_is_written_to_the_callers_strided_tensor(scale_):
    x = np.ones((4, 6), np.float32)
    scale_(x[::2, ::-1], 3.0)
    np.testing.assert_array_equal(x, np.where(np.arange(4) % 2 == 0, 3.0, 1.0)[:, None] * np.ones(6))
    torch = pytest.importorskip("torch")
    t = torch.ones(4, 6)
    scale_(t[::2, ::2], 3.0)
    assert t.sum().item() == 24 + 2 * 6


@polyop.kernel
def two(x, y):
    for i in range(x.shape[0]):
        x[i] += 1
        y[i] += 10
    return x, y


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_two_views_that_are_written_do_not_share_memory(kind):
    def new():
        return np.zeros(8) if kind == "numpy" else pytest.importorskip("torch").zeros(8, dtype=float)

    x = new()
    two(x[::2], x[1::2])
    assert x.tolist() == [1, 10] * 4
    x = new()
    with pytest.raises(
        ArgumentValueError, match="argument x: is written in place: it must not share memory with y"
    ):
        two(x[::2], x[::2])
    with pytest.raises(ArgumentValueError, match="must not share memory with y"):
        two(x[:8:2], x[:4])
    assert x.tolist() == [0] * 8


def test_more_than_the_memory_there_is(kernels):
    first = polyop.operator(
        "strided_tests::first(Tensor x) -> Tensor", kernels("copy"), infer=lambda x: Spec((1,), x.dtype)
    )
    with pytest.raises(MemoryError):
        first(np.broadcast_to(np.float64(1), (1 << 29, 1 << 28)))


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_strided_tensors_need_no_python(copied, size):
    torch = pytest.importorskip("torch")
    x = values(size, "float64")
    for value in (x.T, torch.from_numpy(x).T):
        copied(value)
        seen = []
        note = lambda frame, event, _: seen.append(frame.f_code.co_name) if event == "call" else None  # noqa: E731, B023
        sys.setprofile(note)
        try:
            copied(value)
        finally:
            sys.setprofile(None)
        assert seen == []


ROWS = {  # the last dimension is contiguous, and steps of the others divide each other
    "columns": lambda x: x[:, 7:250],
    "every other row": lambda x: x[::2],
    "a corner": lambda x: x[17:, 40:],
    "heads": lambda x: x.reshape(100, 3, 300).transpose(1, 0, 2),
    "a part of heads": lambda x: x.reshape(100, 3, 300)[:, 1:, 50:].transpose(1, 0, 2),
    "one in a batch": lambda x: x[:, None, 5:].transpose(1, 0, 2),
}
NO_ROWS = {
    "transposed": lambda x: x.T,
    "rows in reverse": lambda x: x[::-1],
    "every other column": lambda x: x[:, ::2],
    "all rows the same": lambda x: np.broadcast_to(x[0], x.shape),
}


def plane(x, y):
    z = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            z[i, j] = 2 * x[i, j] + y[i, j]
    return z


def block(x, y):
    z = output_tensor(x.shape, x.dtype)
    for h in range(x.shape[0]):
        for i in range(x.shape[1]):
            for j in range(x.shape[2]):
                z[h, i, j] = 2 * x[h, i, j] + y[h, i, j]
    return z


@pytest.mark.slow(1)
@pytest.mark.parametrize("layout", [*ROWS, *NO_ROWS])
def test_a_kernel_is_compiled_for_rows_after_some_calls(layout):
    x = {**ROWS, **NO_ROWS}[layout](values(LARGE, "float64"))
    name = f"strided_tests::{layout.replace(' ', '_')}"
    f = polyop.kernel(plane if x.ndim == 2 else block, name=name)
    for call in range(CALLS_WITH_COPIES + 3):
        np.testing.assert_array_equal(f(x, np.ascontiguousarray(x)), 3 * x)
        text = explain(f, (Spec(x.shape, dtype(x.dtype)),) * 2)
        assert ("where they lie" in text) == (
            layout in ROWS and call > CALLS_WITH_COPIES
        )  # the first call counts as none
    np.testing.assert_array_equal(f(x, x), 3 * x)


def test_rows_of_torch_and_their_gradient():
    torch = pytest.importorskip("torch")
    f = polyop.kernel(block, name="strided_tests::of_torch")
    base = torch.from_numpy(values(LARGE, "float64")).requires_grad_()
    heads = base.reshape(100, 3, 300)[:, :, 20:].transpose(0, 1)
    weights = torch.linspace(0, 1, heads.numel(), dtype=torch.float64).reshape(heads.shape)
    weights = (
        weights.transpose(0, 1).contiguous().transpose(0, 1)
    )  # the gradient of the output is in rows too
    for _ in range(CALLS_WITH_COPIES + 3):
        out = f(heads, heads)
        assert torch.equal(out, 3 * heads)
        (grad,) = torch.autograd.grad(out, base, weights)
        (expected,) = torch.autograd.grad(3 * heads, base, weights)
        assert torch.equal(grad, expected)
