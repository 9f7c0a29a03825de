"""What is proved of the slices of twelve operators, and of their gradients."""

# ruff: noqa: F821 - the words of loop kernels

import math
import pathlib
import tempfile

import polyop
from polyop.call.explain import explain
from polyop.cli.explain import parse_spec


# [operators]
def norm(x, weight, eps=1e-5):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        squares = 0.0
        for j in range(x.shape[1]):
            squares += x[i, j] * x[i, j]
        scale = 1.0 / sqrt(squares / x.shape[1] + eps)
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * scale * weight[j]
    return y


def matmul(x, w):
    y = output_tensor((x.shape[0], w.shape[1]), x.dtype)
    for i in range(x.shape[0]):
        for j in range(w.shape[1]):
            for k in range(x.shape[1]):
                y[i, j] += x[i, k] * w[k, j]
    return y


def softmax(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        largest = -math.inf
        total = 0.0
        for j in range(x.shape[1]):
            largest = max(largest, x[i, j])
        for j in range(x.shape[1]):
            y[i, j] = exp(x[i, j] - largest)
            total += y[i, j]
        for j in range(x.shape[1]):
            y[i, j] /= total
    return y


def column_sums(x):
    y = output_tensor((x.shape[1],), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[j] += x[i, j]
    return y


def cumulative_sum(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        total = 0.0
        for j in range(x.shape[1]):
            total += x[i, j]
            y[i, j] = total
    return y


def embedding(index, table):
    y = output_tensor((index.shape[0], table.shape[1]), table.dtype)
    for k in range(index.shape[0]):
        for d in range(table.shape[1]):
            y[k, d] = table[index[k], d]
    return y


def scatter_add(index, x, rows=8):
    y = output_tensor((rows, x.shape[1]), x.dtype)
    for k in range(index.shape[0]):
        for d in range(x.shape[1]):
            y[index[k], d] += x[k, d]
    return y


def stencil(x):
    y = output_tensor(x.shape, x.dtype)
    for n in range(1, x.shape[0] - 1):
        y[n] = x[n - 1] - 2.0 * x[n] + x[n + 1]
    return y


def window(x, w):
    y = output_tensor((x.shape[0] - w.shape[0] + 1, x.shape[1] - w.shape[1] + 1), x.dtype)
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            for a in range(w.shape[0]):
                for b in range(w.shape[1]):
                    y[i, j] += x[i + a, j + b] * w[a, b]
    return y


def scan(x, decay, start):
    y = output_tensor(x.shape, x.dtype)
    end = output_tensor(start.shape, x.dtype)
    for b in range(x.shape[1]):
        state = start[b]
        for t in range(x.shape[0]):
            state = state * decay[b] + x[t, b]
            y[t, b] = state
        end[b] = state
    return y, end


def scores(q, k, scale=1.0):
    y = output_tensor((q.shape[0], q.shape[1], k.shape[1]), q.dtype)
    for b in range(q.shape[0]):
        for m in range(q.shape[1]):
            for n in range(k.shape[1]):
                product = 0.0
                for d in range(q.shape[2]):
                    product += q[b, m, d] * k[b, n, d]
                y[b, m, n] = product * scale
    return y


# [/operators]

ROWS, MATRIX, ROW = "float32[4, 6]", "float32[6, 5]", "float32[6]"
OPERATORS = [
    (norm, (ROWS, ROW)),
    (matmul, (ROWS, MATRIX)),
    (softmax, (ROWS,)),
    (column_sums, (ROWS,)),
    (cumulative_sum, (ROWS,)),
    (embedding, ("int64[3]", MATRIX)),
    (scatter_add, ("int64[4]", ROWS)),
    (stencil, (ROW,)),
    (window, ("float32[9, 9]", "float32[3, 2]")),
    (scan, (ROWS, ROW, ROW)),
    (scores, ("float32[2, 3, 8]", "float32[2, 4, 8]")),
]
SCALE = """
#include <stdint.h>
int scale(int n, void** data, int* ndims, int64_t** shapes, const char** dtypes, void* stream, void* extra) {
  float *x = (float*)data[0], *y = (float*)data[1];
  int64_t size = 1;
  for (int k = 0; k < ndims[0]; ++k) size *= shapes[0][k];
  for (int64_t i = 0; i < size; ++i) y[i] = 2 * x[i];
  return 0;
}
"""


def lines(operator, specs):
    """Return what ``polyop explain`` says of dimensions."""
    text = explain(operator, tuple(map(parse_spec, specs))).splitlines()
    start = next(k for k, line in enumerate(text) if line.startswith(("  dimensions", "  slices")))
    return text[start : next(k for k, line in enumerate(text) if line.startswith("  batching"))]


for function, specs in OPERATORS:
    print(function.__name__, *lines(polyop.kernel(function), specs), sep="\n")
with tempfile.TemporaryDirectory() as folder:
    source = pathlib.Path(folder) / "scale.c"
    source.write_text(SCALE)
    kernel = polyop.source(source, function="scale")
    scale = polyop.operator("slices::scale(Tensor x) -> Tensor", kernel, dims="... -> ...", parallel="...")
    print("scale, a C kernel", *lines(scale, (ROWS,)), sep="\n")
