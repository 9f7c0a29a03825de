"""The operators of the files that releases left, as their programs know them: never edited."""

import polyop


@polyop.kernel
def smooth_rows(x, w, gain: float = 1.0):
    y = output_tensor((x.shape[0], x.shape[1]), x.dtype)  # noqa: F821 - a word of loop kernels
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = gain * x[i, j] * w[j] / (1 + abs(x[i, j]))
    return y
