# ruff: noqa: F821 - kernels, whose words are no names here
"""Kernels with a sum in each row of a batch, which tests of its bits share."""


def softmax(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        top = x[i, 0]
        for j in range(x.shape[1]):
            top = max(top, x[i, j])
        total = 0.0
        for j in range(x.shape[1]):
            total += exp(x[i, j] - top)
        for j in range(x.shape[1]):
            y[i, j] = exp(x[i, j] - top) / total
    return y


def linear(x, m):
    y = output_tensor((x.shape[0], m.shape[1]), x.dtype)
    for i in range(x.shape[0]):
        for j in range(m.shape[1]):
            s = 0.0
            for k in range(m.shape[0]):
                s += x[i, k] * m[k, j]
            y[i, j] = s
    return y
