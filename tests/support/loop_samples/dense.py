# ruff: noqa: F821 - programs in the language, whose words are no names here
"""Programs: contractions, rows and reductions."""

import math


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


def linear(x, w):
    """All matrices of the batch are multiplied by one matrix."""
    y = output_tensor((x.shape[0], x.shape[1], w.shape[1]), x.dtype)
    for n, i, j, k in grid((x.shape[0], x.shape[1], w.shape[1], w.shape[0])):
        y[n, i, j] += x[n, i, k] * w[k, j]
    return y


def linear_with_bias(x, w, bias):
    """The gradient of each operand that the batch shares is a sum over the batch and the rows."""
    y = output_tensor((x.shape[0], x.shape[1], w.shape[0]), x.dtype)
    for n in range(x.shape[0]):
        for i in range(x.shape[1]):
            for j in range(w.shape[0]):
                total = bias[j]
                for k in range(w.shape[1]):
                    total += x[n, i, k] * w[j, k]
                y[n, i, j] = total
    return y


def shared_on_the_left(w, x):
    """One matrix is multiplied by all matrices of the batch."""
    y = output_tensor((x.shape[0], w.shape[0], x.shape[2]), x.dtype)
    for n, i, j, k in grid((x.shape[0], w.shape[0], x.shape[2], w.shape[1])):
        y[n, i, j] += w[i, k] * x[n, k, j]
    return y


def heads(x, w):
    """Each head has a matrix of its own, which the batch shares: the sum is around an axis that is not summed."""
    y = output_tensor((x.shape[0], x.shape[1], x.shape[2], w.shape[2]), x.dtype)
    for n, h, i, j, k in grid((x.shape[0], x.shape[1], x.shape[2], w.shape[2], w.shape[1])):
        y[n, h, i, j] += x[n, h, i, k] * w[h, k, j]
    return y


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


def past_the_last_row(x):
    y = output_tensor((x.shape[1], x.shape[1]), x.dtype)
    for i in range(x.shape[1] + 3):
        for j in range(i, x.shape[1]):
            for k in range(x.shape[0]):
                y[i, j] += x[k, i] * x[k, j]
    return y


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


def channels(x, w):
    y = output_tensor((x.shape[0] - w.shape[0] + 1, x.shape[1] - w.shape[1] + 1, w.shape[3]), x.dtype)
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            for o in range(w.shape[3]):
                s = 0.0
                for p in range(w.shape[0]):
                    for q in range(w.shape[1]):
                        for c in range(w.shape[2]):
                            s += x[i + p, j + q, c] * w[p, q, c, o]
                y[i, j, o] = s
    return y


def images(x, w, bias):
    """A convolution of a batch: the gradient of the filter is a sum of three loops around its two operands."""
    y = output_tensor((x.shape[0], x.shape[1] - 1, x.shape[2] - 1, w.shape[3]), x.dtype)
    for n, i, j, o in grid((x.shape[0], x.shape[1] - 1, x.shape[2] - 1, w.shape[3])):
        total = bias[o]
        for p, q, c in grid((2, 2, x.shape[3])):
            total += x[n, i + p, j + q, c] * w[p, q, c, o]
        y[n, i, j, o] = total
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


def attention(q, k, v):
    """Each iteration has a row of scores for itself, which goes through a softmax."""
    y = output_tensor((q.shape[0], v.shape[1]), q.dtype)
    p = allocate((k.shape[0],), q.dtype)
    for i in range(q.shape[0]):
        top = -math.inf
        for j in range(k.shape[0]):
            p[j] = 0.0
            for d in range(q.shape[1]):
                p[j] += q[i, d] * k[j, d]
            top = max(top, p[j])
        total = 0.0
        for j in range(k.shape[0]):
            p[j] = exp(p[j] - top)
            total += p[j]
        for j in range(k.shape[0]):
            for d in range(v.shape[1]):
                y[i, d] += p[j] / total * v[j, d]
    return y


def online_attention(q, k, v):
    """Keys and values are read once, as in flash attention: sums are rescaled when the maximum grows."""
    y = output_tensor((q.shape[0], v.shape[1]), q.dtype)
    for i in range(q.shape[0]):
        top = -math.inf
        total = 0.0
        for j in range(k.shape[0]):
            score = 0.0
            for d in range(q.shape[1]):
                score += q[i, d] * k[j, d]
            new = max(top, score)
            shrink = exp(top - new)
            weight = exp(score - new)
            total = total * shrink + weight
            for d in range(v.shape[1]):
                y[i, d] = y[i, d] * shrink + weight * v[j, d]
            top = new
        for d in range(v.shape[1]):
            y[i, d] = y[i, d] / total
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


def log_sum_exp(x):
    """The derivative is the author's, and does not go through the maximum."""
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        top = x[i, 0]
        for j in range(1, x.shape[1]):
            top = max(top, x[i, j])
        total = 0.0
        for j in range(x.shape[1]):
            total += exp(x[i, j] - stop_gradient(top))
        whole = top + log(total)
        y[i] = stop_gradient(whole)
        for j in range(x.shape[1]):
            share = exp(x[i, j] - whole)
            y[i] += with_gradient(0.0, x[i, j], share)
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


def one_total(x):
    """The element y[0] exists only if the last axis is not empty."""
    y = output_tensor((x.shape[2],), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            for k in range(x.shape[2]):
                y[0] += x[i, j, k]
    return y


def two_operators(x):
    """Two reductions, a sum and a maximum, of elements of one tensor."""
    y = output_tensor((2, x.shape[1], x.shape[1]), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            for k in range(x.shape[1]):
                y[0, j, k] += x[i, j]
            for k in range(x.shape[1]):
                y[1, j, k] = max(y[1, j, k], x[i, k])
    return y


def sums_beside_products(x):
    """Elements that the iterations of j share are summed; those of one iteration are multiplied."""
    n, m = x.shape
    y = output_tensor((n, n, m), x.dtype)
    for i in range(n):
        for k in range(n):
            for j in range(m):
                y[i, k, j] = x[i, j] - x[k, j]
    for j in range(1, m):
        for i in range(n):
            for k in range(m):
                y[i, min(k, n - 1), 0] += x[i, j]
            for k in range(n):
                y[i, k, j] *= x[k, j]
    return y


def largest_beside_sums(x):
    n, m = x.shape
    y = output_tensor((n, n, m), x.dtype)
    for j in range(1, m):
        for i in range(n):
            for k in range(m):
                y[i, min(k, n - 1), 0] = max(y[i, min(k, n - 1), 0], x[i, j])
            for k in range(n):
                y[i, k, j] += x[k, j]
    return y


def same_element_once(x):
    """y[i, i] is y[0, i] in one iteration."""
    y = output_tensor((x.shape[0], x.shape[0]), x.dtype)
    for i in range(x.shape[0]):
        for k in range(x.shape[1]):
            y[0, i] = min(y[0, i], x[i, k])
            for j in range(x.shape[1]):
                y[i, i] -= x[i, j] + (y[i, i] if i > 0 else 1)
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
