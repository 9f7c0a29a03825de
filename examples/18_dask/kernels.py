"""The operators, in a module of their own: each worker process imports it."""

# ruff: noqa: F821 - the words of loop kernels

import polyop


# [kernels]
@polyop.kernel
def blur(image):
    """Mean of an element and its four neighbours; the border stays as it is."""
    out = output_tensor(image.shape, image.dtype)
    for i in range(image.shape[0]):
        for j in range(image.shape[1]):
            if i == 0 or j == 0 or i == image.shape[0] - 1 or j == image.shape[1] - 1:
                out[i, j] = image[i, j]
            else:
                beside = image[i - 1, j] + image[i + 1, j] + image[i, j - 1] + image[i, j + 1]
                out[i, j] = 0.2 * (image[i, j] + beside)
    return out


@polyop.kernel
def column_means(table):
    means = output_tensor((table.shape[1],), table.dtype)
    for j in range(table.shape[1]):
        means[j] = 0.0
        for i in range(table.shape[0]):
            means[j] += table[i, j] / table.shape[0]
    return means


# [/kernels]
