"""Contractions: products of matrices, a convolution."""
# ruff: noqa: F821 - the language's words are not names of this module

from __future__ import annotations

from typing import Any

import numpy as np

from ..data import spread
from ..peers import part, prange
from ..polybench import PROGRAMS
from ..table import Bound, Row, whole

# A piece of the result: eight rows of b, of one width, stay in L1 while they are used sixteen times.
TALL, WIDE = 16, 512


@part
def product(a, b, c, block, begin):
    """Compute sixteen rows of ``c = a @ b``, starting at a column."""
    first, last = TALL * block, min(TALL * (block + 1), a.shape[0])
    deep = a.shape[1] // 8 * 8
    for low in range(begin, b.shape[1], WIDE):
        high = min(low + WIDE, b.shape[1])
        c[first:last, low:high] = 0
        for k in range(0, deep, 8):
            b0, b1, b2, b3 = b[k, low:high], b[k + 1, low:high], b[k + 2, low:high], b[k + 3, low:high]
            b4, b5, b6, b7 = b[k + 4, low:high], b[k + 5, low:high], b[k + 6, low:high], b[k + 7, low:high]
            for i in range(first, last):
                a0, a1, a2, a3 = a[i, k], a[i, k + 1], a[i, k + 2], a[i, k + 3]
                a4, a5, a6, a7 = a[i, k + 4], a[i, k + 5], a[i, k + 6], a[i, k + 7]
                row = c[i, low:high]
                for j in range(len(row)):
                    row[j] += (
                        (a0 * b0[j] + a1 * b1[j] + a2 * b2[j] + a3 * b3[j])
                        + (a4 * b4[j] + a5 * b5[j] + a6 * b6[j] + a7 * b7[j])
                    )  # fmt: skip
        for k in range(deep, a.shape[1]):
            for i in range(first, last):
                row, line = c[i, low:high], b[k, low:high]
                for j in range(len(row)):
                    row[j] += a[i, k] * line[j]


def matmul(a, b):
    c = output_tensor((a.shape[0], b.shape[1]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            s = 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * b[k, j]
            c[i, j] = s
    return c


def matmul_numpy(a, b):
    return a @ b


def matmul_numba(a, b, c):
    for block in prange(-(-a.shape[0] // TALL)):
        product(a, b, c, block, 0)


def matmul_torch(a, b):
    return a @ b


def matrices(dtype: Any, m: int, n: int, k: int) -> tuple[Any, ...]:
    return spread((m, k), dtype), spread((k, n), dtype, which=1)


def doitgen_numba(a, c4, out):
    rows, results = a.reshape((-1, a.shape[2])), out.reshape((-1, a.shape[2]))
    for block in prange(-(-rows.shape[0] // TALL)):
        product(rows, c4, results, block, 0)


def syrk_numba(a, c, alpha, beta):
    columns = a.T.copy()  # stride one along the result's rows
    for i in prange(a.shape[0]):
        for j in range(i + 1):
            c[i, j] *= beta
        for k in range(a.shape[1]):
            factor = alpha * a[i, k]
            for j in range(i + 1):
                c[i, j] += factor * columns[k, j]


def syrk_torch(a, c, alpha, beta):
    return c.copy_((beta * c + alpha * (a @ a.T)).tril() + c.triu(1))


def covariance_numba(data, cov):
    n, m = data.shape
    mean = np.zeros(m, data.dtype)
    for i in range(n):
        for j in range(m):
            mean[j] += data[i, j]
    centred = np.empty_like(data)
    columns = np.empty((m, n), data.dtype)
    for i in prange(n):
        for j in range(m):
            centred[i, j] = data[i, j] - mean[j] / n
    for j in prange(m):
        for i in range(n):
            columns[j, i] = centred[i, j] / (n - 1)
    blocks = -(-m // TALL)
    for turn in prange(blocks):
        # from the diagonal on: long rows and short ones by turns, for an even share
        block = turn // 2 if turn % 2 == 0 else blocks - 1 - turn // 2
        product(columns, centred, cov, block, TALL * block)
    for i in prange(m):
        for j in range(i):
            cov[i, j] = cov[j, i]


def covariance_torch(data):
    centred = data - data.mean(0)
    return centred.T @ centred / (len(data) - 1)


def conv2d_bias(x, weight, bias):
    """Convolve images with the channels last, without padding, and add a bias."""
    ho = x.shape[1] - weight.shape[0] + 1
    wo = x.shape[2] - weight.shape[1] + 1
    y = output_tensor((x.shape[0], ho, wo, weight.shape[3]), x.dtype)
    for n in range(x.shape[0]):
        for h in range(ho):
            for w in range(wo):
                for o in range(weight.shape[3]):
                    s = bias[o]
                    for p in range(weight.shape[0]):
                        for q in range(weight.shape[1]):
                            for c in range(weight.shape[2]):
                                s += x[n, h + p, w + q, c] * weight[p, q, c, o]
                    y[n, h, w, o] = s
    return y


def conv2d_bias_numpy(x, weight, bias):
    size = weight.shape[0]
    windows = np.lib.stride_tricks.sliding_window_view(x, (size, size), axis=(1, 2))
    return np.tensordot(windows, weight, axes=((4, 5, 3), (0, 1, 2))) + bias


@part
def add_line(out, line, weights):
    """Add the convolution of a line with a row of weights, four weights at a time while the line is in L1."""
    size, wide = len(weights), len(out)
    for q in range(0, size // 4 * 4, 4):
        f0, f1, f2, f3 = weights[q], weights[q + 1], weights[q + 2], weights[q + 3]
        x0, x1, x2, x3 = line[q : q + wide], line[q + 1 :], line[q + 2 :], line[q + 3 :]
        for w in range(wide):
            out[w] += f0 * x0[w] + f1 * x1[w] + f2 * x2[w] + f3 * x3[w]
    for q in range(size // 4 * 4, size):
        factor, shifted = weights[q], line[q:]
        for w in range(wide):
            out[w] += factor * shifted[w]


def conv2d_bias_numba(x, weight, bias, y):  # noqa: C901 - one deep nest
    size, _, ci, co = weight.shape
    images, height, stride = x.shape[0], x.shape[1], x.shape[2]
    ho, wo = height - size + 1, stride - size + 1
    # Whole planes as one long line each; the last columns of a row are computed and left.
    planes = np.empty((images, ci, height * stride), x.dtype)
    for n in prange(images):
        for c in range(ci):
            for h in range(height):
                for w in range(stride):
                    planes[n, c, h * stride + w] = x[n, h, w, c]
    for n in prange(images):
        out = np.zeros((co, ho * stride), x.dtype)
        for o in range(co):
            for c in range(ci):
                for p in range(size):
                    add_line(out[o, : (ho - 1) * stride + wo], planes[n, c, p * stride :], weight[p, :, c, o])
        for h in range(ho):
            for w in range(wo):
                for o in range(co):
                    y[n, h, w, o] = out[o, h * stride + w] + bias[o]


def conv2d_bias_torch(x, weight, bias):
    from torch.nn.functional import conv2d

    return conv2d(x.permute(0, 3, 1, 2), weight.permute(3, 2, 0, 1), bias).permute(0, 2, 3, 1)


def images(dtype: Any, n: int, side: int, ci: int, co: int, k: int) -> tuple[Any, ...]:
    return (
        spread((n, side, side, ci), dtype),
        spread((k, k, ci, co), dtype, -1.0, 1.0, which=1),
        spread((co,), dtype, which=2),
    )


def like(name: str, polybench: str, **more: Any) -> Row:
    """Return the row for a PolyBench kernel, with other sizes and with peers."""
    same = PROGRAMS[polybench]
    fields = ("kind", "kernel", "make", "numpy", "small", "updates")
    return Row(name=name, **{field: getattr(same, field) for field in fields}, **more)


ROWS = (
    *(
        Row(
            name=f"matmul_{dtype}",
            kind="contraction",
            kernel=matmul,
            make=matrices,
            numpy=matmul_numpy,
            numba=matmul_numba,
            torch=whole(matmul_torch),
            bounds=(Bound("flops", lambda size, m, n, k: 2 * m * n * k),),
            small={"m": 9, "n": 7, "k": 6},
            bench={"m": 1024, "n": 1024, "k": 1024},
            dtype=dtype,
        )
        for dtype in ("float32", "float64")
    ),
    Row(
        name="conv2d_bias",
        kind="contraction",
        kernel=conv2d_bias,
        make=images,
        numpy=conv2d_bias_numpy,
        numba=conv2d_bias_numba,
        torch=whole(conv2d_bias_torch),
        bounds=(
            Bound("flops", lambda size, n, side, ci, co, k: 2 * n * (side - k + 1) ** 2 * k * k * ci * co),
        ),
        small={"n": 2, "side": 6, "ci": 3, "co": 4, "k": 3},
        bench={"n": 8, "side": 64, "ci": 3, "co": 8, "k": 5},
        dtype="float32",
    ),
    like(
        "doitgen",
        "doitgen",
        numba=doitgen_numba,
        torch=whole(matmul_torch),
        bounds=(Bound("flops", lambda size, nr, nq, np: 2 * nr * nq * np * np),),
        bench={"nr": 110, "nq": 125, "np": 256},
    ),
    like(
        "syrk",
        "syrk",
        numba=syrk_numba,
        torch=whole(syrk_torch),
        bounds=(Bound("flops", lambda size, m, n: n * (n + 1) * m),),
        bench={"m": 150, "n": 200},
    ),
    like(
        "covariance",
        "covariance",
        numba=covariance_numba,
        torch=whole(covariance_torch),
        bounds=(Bound("flops", lambda size, m, n: m * (m + 1) * n),),
        bench={"m": 1400, "n": 1800},
    ),
)
