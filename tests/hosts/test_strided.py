# ruff: noqa: F821 - a kernel, whose words are no names here
"""Tensors that are not dense: small ones are copied by the native core, large ones by the framework."""

import sys

import numpy as np
import pytest

import polyop

SMALL, LARGE = 6, 300  # 300 * 300 doubles are more than the native core copies
LAYOUTS = {
    "transposed": lambda x: x.T,
    "every other": lambda x: x[::2, ::3],
    "reversed": lambda x: x[::-1, ::-1],
    "reversed rows": lambda x: x[::-1],
    "one column": lambda x: x[:, 2],
    "expanded": lambda x: np.broadcast_to(x[:, :1], x.shape),
    "overlapping": lambda x: np.lib.stride_tricks.sliding_window_view(x, 3, axis=1),
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


@pytest.fixture(scope="module")
def copied(kernels):
    return polyop.operator("strided_tests::copied(Tensor x) -> Tensor", kernels("copy"), infer="x")


def values(size, name):
    return (np.arange(size * size).reshape(size, size) % 101).astype(name)


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


def test_small_strided_tensors_need_no_python(copied):
    torch = pytest.importorskip("torch")
    x = values(SMALL, "float64")
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
