"""A loop kernel to try ``polyop explain`` on: it shows what each pass changes.

The kernel is written as in NumPy: one step after the other, each with a temporary tensor.
"""

# ruff: noqa: F821 - the words of loop kernels

import numpy as np

import polyop


# [softmax]
@polyop.kernel
def softmax(x):
    y = output_tensor(x.shape, x.dtype)
    top = allocate((x.shape[0],), x.dtype)
    e = allocate(x.shape, x.dtype)
    total = allocate((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        top[i] = x[i, 0]
        for j in range(1, x.shape[1]):
            top[i] = max(top[i], x[i, j])
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            e[i, j] = exp(x[i, j] - top[i])
    for i in range(x.shape[0]):
        total[i] = 0.0
        for j in range(x.shape[1]):
            total[i] += e[i, j]
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = e[i, j] / total[i]
    return y


# [/softmax]

if __name__ == "__main__":
    x = np.random.default_rng(0).normal(size=(4, 5)).astype(np.float32)
    print(softmax(x).sum(1))
    np.testing.assert_allclose(softmax(x), softmax.python(x), rtol=1e-6)
