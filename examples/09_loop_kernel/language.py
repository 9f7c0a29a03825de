"""The language of loop kernels in small pieces, each checked: docs/guides/loop-kernels.md shows them."""
# ruff: noqa: F821 - the words of the language

import os
from typing import NamedTuple

import ml_dtypes

# [first]
import numpy as np

import polyop


@polyop.kernel
def outer(a, b):
    c = output_tensor((a.shape[0], b.shape[0]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            c[i, j] = a[i] * b[j]
    return c


print(outer(np.arange(3.0), np.arange(4.0)))  # compiled now; PyTorch, JAX and MindSpore tensors likewise
# [/first]
np.testing.assert_array_equal(outer(np.arange(3.0), np.arange(4.0)), np.outer(np.arange(3), np.arange(4)))


# [attributes]
@polyop.kernel
def scale(x, alpha: float, n=2):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * alpha + n
    return y


print(scale.schema)  # main::scale(Tensor x, float alpha, int n=2) -> Tensor
x = np.ones(3, np.float32)
print(scale(x, 0.5), scale(x, 0.5, 1), scale(x, n=1, alpha=0.5))
# [/attributes]
assert scale(x, 0.5).tolist() == [2.5] * 3
assert scale(x, n=1, alpha=0.5).tolist() == [1.5] * 3


# [records]
class Window(NamedTuple):
    stride: int = 1
    padding: int = 0


@polyop.kernel
def windowed_sum(x, size: int, p: Window):
    y = output_tensor(((x.shape[0] + 2 * p.padding - size) // p.stride + 1,), x.dtype)
    for i in range(y.shape[0]):
        total = 0
        for k in range(size):
            j = i * p.stride + k - p.padding
            if j >= 0 and j < x.shape[0]:
                total += x[j]
        y[i] = total
    return y


print(windowed_sum.schema)  # ...(Tensor x, int size, int p_stride=1, int p_padding=0) -> Tensor
print(windowed_sum(np.ones(6), 3, Window(2, 1)), windowed_sum(np.ones(6), 3, p_stride=3))
# [/records]
assert windowed_sum(np.ones(6), 3, Window(2, 1)).tolist() == [2, 3, 3]
assert windowed_sum(np.ones(6), 3, p_stride=3).tolist() == [3, 3]


# [choices]
@polyop.kernel
def reduce_rows(x, w: "Tensor | None" = None, mode: str = "mean"):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i] += x[i, j] if w is None else x[i, j] * w[j]
        if mode == "mean":
            y[i] /= x.shape[1]
        elif mode == "norm":
            y[i] = sqrt(abs(y[i]))
    return y


print(reduce_rows.schema)  # main::reduce_rows(Tensor x, Tensor? w=None, str mode="mean") -> Tensor
rows = np.ones((2, 4))
print(reduce_rows(rows), reduce_rows(rows, np.arange(4.0)), reduce_rows(rows, mode="norm"))
# [/choices]
assert reduce_rows(rows, np.arange(4.0), "mean").tolist() == [1.5] * 2


# [float8]
@polyop.kernel
def to_float8(x):
    y = output_tensor(x.shape, "float8_e4m3fn")
    scale = output_tensor((x.shape[0],), "float32")
    for i in range(x.shape[0]):
        scale[i] = 0
        for j in range(x.shape[1]):
            scale[i] = max(scale[i], abs(x[i, j]) / 448)  # 448 is the largest float8_e4m3fn
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] / max(scale[i], 1e-30)
    return y, scale


@polyop.kernel
def scaled_product(a, b, scale_a, scale_b):
    c = output_tensor((a.shape[0], b.shape[0]), "float32")
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            total = float32(0)
            for k in range(a.shape[1]):
                total += a[i, k] * b[j, k]
            c[i, j] = total * scale_a[i] * scale_b[j]
    return c


rows = np.linspace(-3, 3, 24, dtype=np.float32).reshape(4, 6)
y, scale_y = to_float8(rows)
print(y.dtype, scaled_product(y, y, scale_y, scale_y)[0, 0], rows[0] @ rows[0])
# [/float8]
assert y.dtype == ml_dtypes.float8_e4m3fn
np.testing.assert_array_equal(y, to_float8.python(rows)[0])


# [narrow]
@polyop.kernel
def quantised_linear(x, w, zero, scale_x, scale_w):
    """Return x w^T of uint8 activations, whose rows have zero points, and int8 weights."""
    y = np.zeros((x.shape[0], w.shape[0]), np.float32)
    for i in range(x.shape[0]):
        for j in range(w.shape[0]):
            total = int32(0)
            for k in range(x.shape[1]):
                total += (int32(x[i, k]) - int32(zero[i])) * int32(w[j, k])
            y[i, j] = float32(total) * scale_x[i] * scale_w[j]
    return y


draw = np.random.default_rng(0)
x8 = draw.integers(0, 256, (3, 50), dtype=np.uint8)
w8 = draw.integers(-128, 128, (20, 50), dtype=np.int8)
zero, scale_x, scale_w = np.full(3, 128, np.uint8), np.float32([1, 2, 4]), np.full(20, 0.5, np.float32)
print(quantised_linear(x8, w8, zero, scale_x, scale_w)[0, 0])
# [/narrow]
whole = (x8.astype(np.int32) - 128) @ w8.T.astype(np.int32)
np.testing.assert_array_equal(
    quantised_linear(x8, w8, zero, scale_x, scale_w), whole * scale_x[:, None] * scale_w
)


# [complex]
@polyop.kernel
def fourier(x):
    y = output_tensor(x.shape, "complex128")
    n = x.shape[0]
    for k in range(n):
        total = 0j
        for j in range(n):
            total += x[j] * exp(-2j * np.pi * ((j * k) % n) / n)
        y[k] = total
    return y


print(fourier(np.arange(4.0)), np.fft.fft(np.arange(4.0)))
# [/complex]
np.testing.assert_allclose(fourier(np.arange(4.0)), np.fft.fft(np.arange(4.0)), atol=1e-12)
np.testing.assert_allclose(scaled_product(y, y, scale_y, scale_y), rows @ rows.T, 0.05, 0.3)


# [helpers]
def clamped(v, low, high):
    if v < low:
        return low
    return min(v, high)


def first_above(x, limit):
    for i in range(x.shape[0]):
        if x[i] > limit:
            return i
    return -1


@polyop.kernel
def clipped_after(x, limit: float):
    y = output_tensor(x.shape, x.dtype)
    start = first_above(x, limit)
    for i, v in enumerate(x):
        y[i] = clamped(v, 0, limit) if i >= start else v
    return y


print(clipped_after(np.array([0.5, -2.0, 3.0, -1.0]), 1.0))
# [/helpers]
assert clipped_after(np.array([0.5, -2.0, 3.0, -1.0]), 1.0).tolist() == [0.5, -2.0, 1.0, 0.0]


# [counted]
@polyop.kernel
def reversed_copy(x):
    y = output_tensor(x.shape, x.dtype)
    i = 0
    j = x.shape[0] - 1
    while i <= j:  # a parallel loop in lanes, as polyop explain says
        y[i] = x[j]
        y[j] = x[i]
        i += 1
        j -= 1
    return y


print(reversed_copy(np.arange(5.0)))
# [/counted]
assert reversed_copy(np.arange(5.0)).tolist() == [4, 3, 2, 1, 0]
assert reversed_copy(np.arange(0.0)).size == 0


# [rows]
@polyop.kernel
def layer_norm(x, w, b):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        d = x[i] - sum(x[i]) / x.shape[1]
        y[i] = d / sqrt(dot(d, d) / x.shape[1] + 1e-5) * w[:] + b[:]
    return y


@polyop.kernel
def smoothed(x):
    y = output_tensor(x.shape, x.dtype)
    y[:] = x
    y[1:-1] = 0.25 * x[:-2] + 0.5 * x[1:-1] + 0.25 * x[2:]
    return y


# [/rows]
table = np.array([[0.0, 4.0, 8.0], [1.0, 1.0, 4.0]])
centred = table - table.mean(1, keepdims=True)
expected = centred / np.sqrt(table.var(1, keepdims=True) + 1e-5) * 2 + 1
assert np.allclose(layer_norm(table, np.full(3, 2.0), np.ones(3)), expected)
assert smoothed(np.array([0.0, 4.0, 8.0, 0.0])).tolist() == [0, 4, 5, 0]


# [inplace]
@polyop.kernel
def add_rows(total, rows, index):
    for i in range(index.shape[0]):
        for j in range(rows.shape[1]):
            total[index[i], j] += rows[i, j]
    return total


print(add_rows.schema)  # main::add_rows(Tensor(a!) total, Tensor rows, Tensor index) -> Tensor(a!)
total = np.zeros((2, 3))
assert add_rows(total, np.ones((4, 3)), np.array([0, 1, 1, -1])) is total
print(total)
# [/inplace]
assert total.tolist() == [[1, 1, 1], [3, 3, 3]]


# [several]
@polyop.kernel
def smallest(x):
    value = output_tensor((x.shape[0],), x.dtype)
    position = output_tensor((x.shape[0],), "int64")
    for i in parallel(x.shape[0]):
        best = 0
        for j in range(1, x.shape[1]):
            if x[i, j] < x[i, best]:
                best = j
        value[i] = x[i, best]
        position[i] = best
    return value, position


value, position = smallest(np.array([[3.0, 1.0, 2.0], [0.0, 5.0, -4.0]]))
print(value, position)
# [/several]
assert value.tolist() == [1, -4]
assert position.tolist() == [1, 2]


# [temporary]
@polyop.kernel
def smooth(x, sweeps: int):
    y = output_tensor(x.shape, x.dtype)
    old = allocate(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i]
    for _sweep in range(sweeps):
        for i in range(x.shape[0]):
            old[i] = y[i]
        for i in range(1, x.shape[0] - 1):
            y[i] = (old[i - 1] + 2 * old[i] + old[i + 1]) / 4
    return y


print(smooth(np.array([0.0, 0.0, 1.0, 0.0, 0.0]), 2))
# [/temporary]
assert smooth(np.array([0.0, 0.0, 1.0, 0.0, 0.0]), 2).tolist() == [0, 0.25, 0.375, 0.25, 0]


# [schedule]
blocks = polyop.Schedule().tile("j#2", 64).interchange("j#2.outer", "i", "j#2.inner").parallel("j#2.outer")


@polyop.kernel(schedule=blocks)
def column_sums(x):
    y = output_tensor((x.shape[1],), x.dtype)
    for j in range(x.shape[1]):
        y[j] = 0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[j] += x[i, j]
    return y


print(column_sums(np.ones((3, 4))))
# [/schedule]
assert column_sums(np.ones((3, 4))).tolist() == [3, 3, 3, 3]


def running(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] + (y[i - 1] if i > 0 else 0)
    return y


# [refused_step]
in_parallel = polyop.kernel(schedule=polyop.Schedule().parallel("i"))
try:
    in_parallel(running)(np.ones(3))
except polyop.PolyopError as problem:
    print(problem)  # ... iterations of the loop i depend on each other: they share y ...
    message = str(problem)
# [/refused_step]
assert "iterations of the loop i depend on each other: they share y" in message


# [debug]
@polyop.kernel
def select(x, index):
    y = output_tensor(index.shape, x.dtype)
    for i in range(index.shape[0]):
        y[i] = x[index[i]]
    return y


os.environ["POLYOP_LOOPS_DEBUG"] = "1"  # or @kernel(compile_attrs={"debug": True}); before the first call
try:
    select(np.ones(3), np.array([0, 5]))
except polyop.PolyopError as problem:
    print(problem)  # ... index 5 is outside dimension 0 of x, which has size 3 ...
    message = str(problem)
# [/debug]
del os.environ["POLYOP_LOOPS_DEBUG"]
assert "index 5 is outside dimension 0 of x, which has size 3" in message
