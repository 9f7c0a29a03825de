# ruff: noqa: F821, SIM108, SIM103 - programs in the language, whose words are no names here
"""Loop kernels of every kind that the compiler treats in its own way, with what they are given.

Inputs are small whole numbers, so that sums in any order are the same to the last bit; a program
with functions of floats says how far results may differ.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

SMALL, RAGGED = (0, 1, 2, 3, 7, 8, 9), (17, 33, 65, 70, 130)


@dataclass(frozen=True, eq=False)
class Program:
    """A kernel and its tensors: "float32 n m, int64 n <m" has an index into an axis of size m.

    ``rough``: results may differ by this much, relatively; ``largest``: elements per tensor;
    ``positive``: inputs are from 0.5 up; ``attributes`` are given by name.
    """

    function: Callable[..., Any]
    tensors: str
    attributes: Mapping[str, Any] = field(default_factory=dict)
    rough: float = 0.0
    largest: int = 2200
    positive: bool = False
    least: int = 0

    @property
    def name(self) -> str:
        """The function's name and its first dtype."""
        return f"{self.function.__name__}-{self.tensors.split()[0]}"

    @property
    def rows(self) -> list[tuple[str, list[str], str]]:
        """Dtype, sizes and the size that an index is below, of each tensor."""
        found = []
        for text in self.tensors.split(","):
            dtype, *axes = text.split()
            below = next((axis[1:] for axis in axes if axis.startswith("<")), "")
            found.append((dtype, [axis for axis in axes if not axis.startswith("<")], below))
        return found

    def sizes(self) -> list[dict[str, int]]:
        """All sizes to try: equal ones, different ones, ragged ones that are not too much work."""
        symbols = list(dict.fromkeys(axis for _, axes, below in self.rows for axis in (*axes, below) if axis))
        found = [dict.fromkeys(symbols, size) for size in SMALL]
        if len(symbols) > 1:
            found += [{s: (5, 1, 9, 3)[(k + shift) % 4] for k, s in enumerate(symbols)} for shift in range(4)]
        for turn, size in enumerate(RAGGED):
            one = {s: (size, 6, 19)[(k + turn) % 3 if len(symbols) > 1 else 0] for k, s in enumerate(symbols)}
            if all(np.prod([one[a] for a in axes], dtype=int) <= self.largest for _, axes, _ in self.rows):
                found.append(one)
        return [one for one in found if min(one.values(), default=1) >= self.least]

    def arrays(self, sizes: Mapping[str, int], seed: int = 0) -> list[np.ndarray]:
        """Return inputs of these sizes."""
        random = np.random.default_rng([seed, *sizes.values()])
        found = []
        for dtype, axes, below in self.rows:
            kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
            shape = tuple(int(a) if a.isdigit() else sizes[a] for a in axes)
            if below:
                found.append(random.integers(0, max(1, sizes[below]), shape).astype(kind))
            elif self.positive:
                found.append((random.integers(1, 9, shape) / 2).astype(kind))
            else:
                low = 0 if dtype.startswith("u") or dtype == "bool" else -3
                found.append(random.integers(low, 2 if dtype == "bool" else 4, shape).astype(kind))
        return found


# --- contractions


def matmul(a, b):
    c = output_tensor((a.shape[0], b.shape[1]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            total = float32(0)
            for k in range(a.shape[1]):
                total += a[i, k] * b[k, j]
            c[i, j] = total
    return c


def matmul_ijk(a, b):
    c = output_tensor((a.shape[0], b.shape[1]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            for k in range(a.shape[1]):
                c[i, j] += a[i, k] * b[k, j]
    return c


def matmul_ikj(a, b):
    c = output_tensor((a.shape[0], b.shape[1]), a.dtype)
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            for j in range(b.shape[1]):
                c[i, j] += a[i, k] * b[k, j]
    return c


def matmul_jik(a, b):
    c = output_tensor((a.shape[0], b.shape[1]), a.dtype)
    for j in range(b.shape[1]):
        for i in range(a.shape[0]):
            for k in range(a.shape[1]):
                c[i, j] += a[i, k] * b[k, j]
    return c


def matmul_jki(a, b):
    c = output_tensor((a.shape[0], b.shape[1]), a.dtype)
    for j in range(b.shape[1]):
        for k in range(a.shape[1]):
            for i in range(a.shape[0]):
                c[i, j] += a[i, k] * b[k, j]
    return c


def matmul_kij(a, b):
    c = output_tensor((a.shape[0], b.shape[1]), a.dtype)
    for k in range(a.shape[1]):
        for i in range(a.shape[0]):
            for j in range(b.shape[1]):
                c[i, j] += a[i, k] * b[k, j]
    return c


def matmul_kji(a, b):
    c = output_tensor((a.shape[0], b.shape[1]), a.dtype)
    for k in range(a.shape[1]):
        for j in range(b.shape[1]):
            for i in range(a.shape[0]):
                c[i, j] += a[i, k] * b[k, j]
    return c


def gemm_in_place(a, b, c, alpha, beta):
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            c[i, j] *= beta
        for k in range(a.shape[1]):
            for j in range(b.shape[1]):
                c[i, j] += alpha * a[i, k] * b[k, j]
    return c


def matmul_transposed(a, b):
    c = output_tensor((a.shape[1], b.shape[0]), a.dtype)
    for i, j, k in grid((a.shape[1], b.shape[0], a.shape[0])):
        c[i, j] += a[k, i] * b[j, k]
    return c


def batched(a, b):
    c = output_tensor((a.shape[0], a.shape[1], b.shape[2]), a.dtype)
    for n, i, j, k in grid((a.shape[0], a.shape[1], b.shape[2], a.shape[2])):
        c[n, i, j] += a[n, i, k] * b[n, k, j]
    return c


def matmul_relu_bias(a, b, bias):
    c = output_tensor((a.shape[0], b.shape[1]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            total = bias[j]
            for k in range(a.shape[1]):
                total += a[i, k] * b[k, j]
            c[i, j] = max(total, 0.0)
    return c


def syrk(a, c, alpha, beta):
    for i in range(a.shape[0]):
        for j in range(i + 1):
            c[i, j] *= beta
            for k in range(a.shape[1]):
                c[i, j] += alpha * a[i, k] * a[j, k]
    return c


def syr2k(a, b, c):
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            for j in range(i + 1):
                c[i, j] += a[j, k] * b[i, k] + b[j, k] * a[i, k]
    return c


def trmm(a, b):
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            for k in range(i + 1, a.shape[0]):
                b[i, j] += a[k, i] * b[k, j]
    return b


def conv(x, w):
    y = output_tensor((x.shape[0] + 1 - w.shape[0], x.shape[1] + 1 - w.shape[1]), x.dtype)
    for i in range(x.shape[0] - w.shape[0] + 1):
        for j in range(x.shape[1] - w.shape[1] + 1):
            for p in range(w.shape[0]):
                for q in range(w.shape[1]):
                    y[i, j] += x[i + p, j + q] * w[p, q]
    return y


def atax(a, x):
    y = output_tensor((a.shape[1],), a.dtype)
    tmp = allocate((a.shape[0],), a.dtype)
    for i in range(a.shape[0]):
        tmp[i] = 0.0
        for j in range(a.shape[1]):
            tmp[i] += a[i, j] * x[j]
        for j in range(a.shape[1]):
            y[j] += a[i, j] * tmp[i]
    return y


# --- rows and reductions


def softmax(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        top = x[i, 0]
        for j in range(x.shape[1]):
            top = max(top, x[i, j])
        total = 0.0
        for j in range(x.shape[1]):
            y[i, j] = exp(x[i, j] - top)
            total += y[i, j]
        for j in range(x.shape[1]):
            y[i, j] = y[i, j] / total
    return y


def layernorm(x, gamma, beta):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        mean = 0.0
        for j in range(x.shape[1]):
            mean += x[i, j]
        mean = mean / x.shape[1]
        spread = 0.0
        for j in range(x.shape[1]):
            spread += (x[i, j] - mean) * (x[i, j] - mean)
        scale = rsqrt(spread / x.shape[1] + 1e-5)
        for j in range(x.shape[1]):
            y[i, j] = (x[i, j] - mean) * scale * gamma[j] + beta[j]
    return y


def rms_norm(x):
    y = output_tensor(x.shape, x.dtype)
    squares = allocate((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            squares[i] += x[i, j] * x[i, j]
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] / sqrt(squares[i] + 1.0)
    return y


def row_reductions(x):
    total = output_tensor((x.shape[0],), x.dtype)
    product = output_tensor((x.shape[0],), x.dtype)
    top = output_tensor((x.shape[0],), x.dtype)
    low = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        total[i] = 0
        product[i] = 1
        top[i] = x[i, 0]
        low[i] = x[i, 0]
        for j in range(x.shape[1]):
            total[i] += x[i, j]
            top[i] = max(top[i], x[i, j])
            low[i] = min(low[i], x[i, j])
        for j in range(min(x.shape[1], 3)):
            product[i] *= x[i, j]
    return total, product, top, low


def column_reductions(x):
    total = output_tensor((x.shape[1],), x.dtype)
    top = output_tensor((x.shape[1],), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            total[j] += x[i, j]
            top[j] = max(top[j], x[i, j])
    return total, top


def whole_sum(x):
    y = output_tensor((1,), x.dtype)
    for i in range(x.shape[0]):
        y[0] += x[i]
    return y


def argmax(x):
    where = output_tensor((x.shape[0],), "int64")
    for i in range(x.shape[0]):
        best = x[i, 0]
        at = 0
        for j in range(1, x.shape[1]):
            if x[i, j] > best:
                best = x[i, j]
                at = j
        where[i] = at
    return where


def count_true(mask):
    y = output_tensor((2,), "int64")
    for i in range(mask.shape[0]):
        if mask[i]:
            y[1] += 1
        else:
            y[0] += 1
    return y


def any_all(mask):
    some = output_tensor((mask.shape[0],), "bool")
    every = output_tensor((mask.shape[0],), "bool")
    for i in range(mask.shape[0]):
        found = bool_(0)
        kept = bool_(1)
        for j in range(mask.shape[1]):
            found = found or mask[i, j]
            kept = kept and mask[i, j]
        some[i] = found
        every[i] = kept
    return some, every


def histogram(x, counts):
    for i in range(x.shape[0]):
        counts[x[i]] += 1
    return counts


# --- elements


def square(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * x[i]
    return y


def leaky_relu(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        if x[i] > 0:
            y[i] = x[i]
        else:
            y[i] = x[i] * 2
    return y


def nested_ifs(x, m):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if m[j]:
                if x[i, j] > 1:
                    y[i, j] = x[i, j] - 1
                elif x[i, j] < -1:
                    y[i, j] = x[i, j] + 1
            elif i == j:
                y[i, j] = 7
    return y


def guarded(x):
    y = output_tensor(x.shape, x.dtype)
    n = x.shape[0]
    for i in range(n):
        left = x[i - 1] if i > 0 else x[i]
        right = x[i + 1] if i + 1 < n else x[i]
        y[i] = left + right * 2
        if i > 1 and x[i - 2] > 0:
            y[i] += x[i - 2]
    return y


def shifted_under_if(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if i + j < x.shape[1]:
                y[i, i + j] = x[i, j]
    return y


def diagonal(x):
    y = output_tensor((x.shape[1],), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if i == j:
                y[j] = x[i, j] + 1
    return y


def one_iteration(x):
    y = output_tensor((2,), x.dtype)
    last = x[0]
    for i in range(x.shape[0]):
        if i == 2:
            last += x[i]
        if i == 1:
            y[1] = x[i]
    y[0] = last
    return y


def reverse(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0] - 1, -1, -1):
        y[x.shape[0] - 1 - i] = x[i]
    return y


def every_other(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(0, x.shape[0], 2):
        y[i] = x[i]
    for i in range(1, x.shape[0], 2):
        y[i] = -x[i]
    return y


def from_the_end(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[-1, j] + x[i, -1]
    return y


def transposed(x):
    y = output_tensor((x.shape[1], x.shape[0]), x.dtype)
    for at in grid(x.shape):
        y[at[1], at[0]] = x[at]
    return y


def divisions(x, z):
    y = output_tensor(x.shape, x.dtype)
    r = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        if z[i] != 0:
            y[i] = x[i] // z[i]
            r[i] = x[i] % z[i]
    return y, r


def casts(x, z):
    y = output_tensor(x.shape, "int16")
    w = output_tensor(x.shape, "float32")
    for i in range(x.shape[0]):
        y[i] = int16(int8(z[i] * 100)) + int16(x[i])
        w[i] = float32(z[i]) / 2 + float32(bfloat16(x[i])) + int32(float64(x[i]) * 1.5)
    return y, w


def functions(x):
    y = output_tensor((x.shape[0], 11), x.dtype)
    for i in range(x.shape[0]):
        y[i, 0] = exp(x[i])
        y[i, 1] = expm1(x[i])
        y[i, 2] = log(x[i])
        y[i, 3] = sqrt(x[i]) + rsqrt(x[i])
        y[i, 4] = tanh(x[i] - 1)
        y[i, 5] = erf(x[i] - 1)
        y[i, 6] = sin(x[i]) + cos(x[i])
        y[i, 7] = atan(x[i]) + atan2(x[i], x[i] - 3)
        y[i, 8] = floor(x[i]) + ceil(x[i]) + trunc(-x[i]) + round(x[i] * 1.3)
        y[i, 9] = sign(1 - x[i]) + abs(1 - x[i])
        y[i, 10] = pow(x[i], x[i] / 2)
    return y


def whole_powers(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = pow(x[i], 3) + ceil_div(x[i], 2) + abs(x[i])
    return y


def special(x):
    y = output_tensor(x.shape, "int32")
    for i in range(x.shape[0]):
        z = 1 / x[i]
        y[i] = int32(isnan(z - z)) * 4 + int32(isinf(z)) * 2 + int32(isfinite(z))
    return y


def attributes(x, n, by, flag):
    y = output_tensor((n + 1, x.shape[0]), x.dtype)
    for t in range(n):
        for i in range(x.shape[0]):
            y[t, i] = x[i] * by + t if flag else x[i]
    return y


def never_runs(x, n):
    y = output_tensor(x.shape, x.dtype)
    z = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = 1
        for k in range(n):
            y[i] += x[i]
            z[i] += x[i]
    return y, z


def indirect(x, at):
    y = output_tensor((at.shape[0], x.shape[1]), x.dtype)
    for i in range(at.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[at[i], j]
    return y


def scatter_add(x, at):
    y = output_tensor(x.shape, x.dtype)
    for i in range(at.shape[0]):
        for j in range(x.shape[1]):
            y[at[i], j] += x[i, j]
    return y


def names(t, l, on, q0):
    e = output_tensor(t.shape, t.dtype)
    p = allocate(t.shape, t.dtype)
    lo = 2
    for parts in range(t.shape[0]):
        p[parts] = t[parts] + l[parts] * lo
        run = 0
        for hi in range(on.shape[0]):
            if on[hi] > q0[parts]:
                run += hi
        e[parts] = p[parts] + run
    return e


# --- neighbours, time, order


def stencil(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(1, x.shape[0] - 1):
        for j in range(1, x.shape[1] - 1):
            y[i, j] = 2 * x[i, j] + x[i - 1, j] - x[i + 1, j] + x[i, j - 1] * x[i, j + 1]
    return y


def two_stencils(x):
    y = output_tensor(x.shape, x.dtype)
    half = allocate(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(1, x.shape[1]):
            half[i, j] = x[i, j] - x[i, j - 1]
    for i in range(1, x.shape[0]):
        for j in range(1, x.shape[1]):
            y[i, j] = half[i, j] - half[i - 1, j]
    return y


def jacobi(a, b, steps):
    for t in range(steps):
        for i in range(1, a.shape[0] - 1):
            for j in range(1, a.shape[1] - 1):
                b[i, j] = 0.5 * (a[i, j - 1] + a[i, j + 1]) + a[i - 1, j]
        for i in range(1, a.shape[0] - 1):
            for j in range(1, a.shape[1] - 1):
                a[i, j] = 0.5 * (b[i, j - 1] + b[i, j + 1]) - b[i + 1, j]
    return a, b


def seidel(a):
    for i in range(1, a.shape[0] - 1):
        for j in range(1, a.shape[1] - 1):
            a[i, j] = a[i, j - 1] + a[i - 1, j] - a[i, j + 1]
    return a


def scan(x, decay):
    h = output_tensor(x.shape, x.dtype)
    for b in range(x.shape[1]):
        state = 0.0
        for t in range(x.shape[0]):
            state = decay[b] * state * 0.5 + x[t, b]
            h[t, b] = state
    return h


def prefix_sum(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] if i == 0 else y[i - 1] + x[i]
    return y


def in_place_prefix(x):
    for i in range(1, x.shape[0]):
        x[i] += x[i - 1]
    return x


def thomas(a, d):
    for i in range(a.shape[0]):
        for k in range(1, a.shape[1]):
            d[i, k] = d[i, k] - a[i, k] * d[i, k - 1]
        for k in range(a.shape[1] - 2, -1, -1):
            d[i, k] = d[i, k] - a[i, k] * d[i, k + 1]
    return d


def row_temporary(x):
    y = output_tensor(x.shape, x.dtype)
    row = allocate((x.shape[1],), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            row[j] = x[i, j] * 2
        for j in range(x.shape[1]):
            y[i, j] = row[x.shape[1] - 1 - j] + row[j]
    return y


def tile_temporary(x):
    y = output_tensor(x.shape, x.dtype)
    tile = allocate((2, 2), x.dtype)
    for i in range(x.shape[0] // 2):
        for j in range(x.shape[1] // 2):
            for p in range(2):
                for q in range(2):
                    tile[p, q] = x[2 * i + p, 2 * j + q]
            for p in range(2):
                for q in range(2):
                    y[2 * i + q, 2 * j + p] = tile[p, q] - tile[q, p]
    return y


def triangular_sum(x):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        for j in range(i, x.shape[0]):
            y[i] += x[i, j]
    return y


MATMULS = (matmul_ijk, matmul_ikj, matmul_jik, matmul_jki, matmul_kij, matmul_kji)
TWO = {"alpha": 2.0, "beta": 3.0}
NUMBERS = ("bool", "int8", "int64", "uint8", "uint32", "float16", "bfloat16", "float32", "float64")

PROGRAMS = (
    Program(matmul, "float32 n k, float32 k m", largest=700),
    *(Program(f, "float32 n k, float32 k m", largest=700) for f in MATMULS),
    Program(matmul_ijk, "float64 n k, float64 k m", largest=700),
    Program(matmul_ijk, "int32 n k, int32 k m", largest=700),
    Program(matmul_ikj, "bfloat16 n k, bfloat16 k m", rough=0.05, largest=700),
    Program(gemm_in_place, "float32 n k, float32 k m, float32 n m", TWO, largest=700),
    Program(matmul_transposed, "float32 k n, float32 m k", largest=700),
    Program(batched, "float32 b n k, float32 b k m", largest=300),
    Program(matmul_relu_bias, "float32 n k, float32 k m, float32 m", largest=700),
    Program(syrk, "float64 n k, float64 n n", TWO, largest=1200),
    Program(syr2k, "float32 n k, float32 n k, float32 n n", largest=1200),
    Program(trmm, "float64 n n, float64 n m", largest=300),
    Program(conv, "float32 n m, float32 3 2", least=3),
    Program(atax, "float32 n m, float32 m"),
    Program(softmax, "float32 n m", rough=1e-5, least=1),
    Program(softmax, "float64 n m", rough=1e-12, least=1),
    Program(layernorm, "float32 n m, float32 m, float32 m", rough=1e-4, least=1),
    Program(rms_norm, "float32 n m", rough=1e-5),
    Program(rms_norm, "float16 n m", rough=0.01),
    Program(row_reductions, "float32 n m", least=1),
    Program(row_reductions, "int8 n m", least=1),
    Program(row_reductions, "uint64 n m", least=1),
    Program(column_reductions, "float32 n m"),
    Program(column_reductions, "int16 n m"),
    *(Program(whole_sum, f"{dtype} n") for dtype in NUMBERS),
    Program(argmax, "float32 n m", least=1),
    Program(argmax, "int64 n m", least=1),
    Program(count_true, "bool n"),
    Program(any_all, "bool n m"),
    Program(histogram, "int64 n <m, int32 m"),
    *(Program(square, f"{dtype} n") for dtype in NUMBERS),
    Program(leaky_relu, "float32 n"),
    Program(leaky_relu, "int8 n"),
    Program(nested_ifs, "float32 n m, bool m"),
    Program(nested_ifs, "int64 n m, bool m"),
    Program(guarded, "float32 n"),
    Program(guarded, "uint8 n"),
    Program(shifted_under_if, "float32 n m"),
    Program(diagonal, "float64 n n"),
    Program(one_iteration, "float32 n", least=1),
    Program(reverse, "float32 n"),
    Program(every_other, "int32 n"),
    Program(from_the_end, "float32 n m"),
    Program(transposed, "bfloat16 n m"),
    Program(transposed, "float32 n m"),
    Program(divisions, "int32 n, int32 n"),
    Program(divisions, "float32 n, float32 n"),
    Program(casts, "float32 n, int32 n"),
    Program(functions, "float32 n", rough=2e-6, positive=True),
    Program(functions, "float64 n", rough=1e-14, positive=True),
    Program(whole_powers, "int32 n"),
    Program(special, "float32 n"),
    Program(attributes, "float32 n", {"n": 3, "by": 2.0, "flag": True}),
    Program(never_runs, "float32 n", {"n": 0}),
    Program(never_runs, "float32 n", {"n": 2}),
    Program(indirect, "float32 n m, int32 k <n", least=1),
    Program(scatter_add, "float32 n m, int64 n <n"),
    Program(names, "float32 n, float32 n, float32 m, float32 n"),
    Program(stencil, "float32 n m"),
    Program(two_stencils, "float32 n m"),
    Program(jacobi, "float64 n m, float64 n m", {"steps": 3}, rough=1e-12, largest=700),
    Program(seidel, "int64 n m"),
    Program(scan, "float64 n m, float64 m", rough=1e-12),
    Program(prefix_sum, "float32 n"),
    Program(in_place_prefix, "int32 n"),
    Program(thomas, "int64 n m, int64 n m"),
    Program(row_temporary, "float32 n m"),
    Program(tile_temporary, "float32 n m"),
    Program(triangular_sum, "float32 n n"),
)
