"""Products of matrices, and attention."""
# ruff: noqa: F821 - the language's words are not names of this module

from __future__ import annotations


def matmul(a, b):
    c = output_tensor((a.shape[0], b.shape[1]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            total = 0.0
            for k in range(a.shape[1]):
                total += a[i, k] * b[k, j]
            c[i, j] = total
    return c


def matmul_of_batches(a, b):
    c = output_tensor((a.shape[0], a.shape[1], b.shape[2]), a.dtype)
    for n in range(a.shape[0]):
        for i in range(a.shape[1]):
            for j in range(b.shape[2]):
                for k in range(a.shape[2]):
                    c[n, i, j] += a[n, i, k] * b[n, k, j]
    return c


def matrix_times_vector(a, b):
    c = output_tensor((a.shape[0], 1), a.dtype)
    for i in range(a.shape[0]):
        total = 0.0
        for k in range(a.shape[1]):
            total += a[i, k] * b[k, 0]
        c[i, 0] = total
    return c


def scaled(a, factor: float):
    c = output_tensor(a.shape, a.dtype)
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[i, j] = a[i, j] * factor
    return c


def matmul_3d(a, b):
    c = output_tensor((a.shape[0], a.shape[1], b.shape[1]), a.dtype)
    for n in range(a.shape[0]):
        for i in range(a.shape[1]):
            for j in range(b.shape[1]):
                total = 0.0
                for k in range(a.shape[2]):
                    total += a[n, i, k] * b[k, j]
                c[n, i, j] = total
    return c


def matmul_4d(a, b):
    c = output_tensor((a.shape[0], a.shape[1], a.shape[2], b.shape[1]), a.dtype)
    for n in range(a.shape[0]):
        for i in range(a.shape[1]):
            for j in range(a.shape[2]):
                for k in range(b.shape[1]):
                    total = 0.0
                    for m in range(a.shape[3]):
                        total += a[n, i, j, m] * b[m, k]
                    c[n, i, j, k] = total
    return c


def diagonal_times_matrix(a, b):
    c = output_tensor(b.shape, b.dtype)
    for i in range(b.shape[0]):
        for j in range(b.shape[1]):
            c[i, j] = a[i] * b[i, j]
    return c


def upper_times_upper(a, b):
    n = a.shape[0]
    c = output_tensor((n, n), a.dtype)
    for i in range(n):
        for j in range(i, n):
            total = 0.0
            for k in range(i, j + 1):
                total += a[i, k] * b[k, j]
            c[i, j] = total
    return c


def lower_times_lower(a, b):
    n = a.shape[0]
    c = output_tensor((n, n), a.dtype)
    for i in range(n):
        for j in range(i + 1):
            total = 0.0
            for k in range(j, i + 1):
                total += a[i, k] * b[k, j]
            c[i, j] = total
    return c


def matmul_a_transposed(a, b):
    c = output_tensor((a.shape[1], b.shape[1]), a.dtype)
    for i in range(a.shape[1]):
        for j in range(b.shape[1]):
            total = 0.0
            for k in range(a.shape[0]):
                total += a[k, i] * b[k, j]
            c[i, j] = total
    return c


def matmul_b_transposed(a, b):
    c = output_tensor((a.shape[0], b.shape[0]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            total = 0.0
            for k in range(a.shape[1]):
                total += a[i, k] * b[j, k]
            c[i, j] = total
    return c


def matmul_both_transposed(a, b):
    c = output_tensor((a.shape[1], b.shape[0]), a.dtype)
    for i in range(a.shape[1]):
        for j in range(b.shape[0]):
            total = 0.0
            for k in range(a.shape[0]):
                total += a[k, i] * b[j, k]
            c[i, j] = total
    return c


def attention(q, k, v):
    """softmax(q k^T / sqrt(d)) v, with a row of scores for each query."""
    y = output_tensor(q.shape, q.dtype)
    keys, d = k.shape[2], q.shape[3]
    for b in range(q.shape[0]):
        for h in range(q.shape[1]):
            for i in range(q.shape[2]):
                score = allocate((keys,), q.dtype)
                for j in range(keys):
                    score[j] = 0
                    for e in range(d):
                        score[j] += q[b, h, i, e] * k[b, h, j, e]
                    score[j] /= sqrt(d)
                top = score[0]
                for j in range(keys):
                    top = max(top, score[j])
                total = 0.0
                for j in range(keys):
                    score[j] = exp(score[j] - top)
                    total += score[j]
                for e in range(d):
                    for j in range(keys):
                        y[b, h, i, e] += score[j] / total * v[b, h, j, e]
    return y
