# ruff: noqa: F821 - programs in the language, whose words are no names here
"""Programs: contractions whose ranges follow from one another, and those of a column."""


def of_triangles(a, b):
    c = output_tensor((a.shape[0], a.shape[0]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(i, a.shape[0]):
            total = 0
            for k in range(i, j + 1):
                total += a[i, k] * b[k, j]
            c[i, j] = total
    return c


def in_a_band(a, b):
    c = output_tensor((a.shape[0], a.shape[1]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            total = b[0, j]
            for k in range(max(0, j - 2), min(a.shape[1], j + 40)):
                total += a[i, k] * b[k, j]
            c[i, j] = total
    return c


def below_the_diagonal(a, b):
    c = output_tensor((a.shape[0], b.shape[1]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            for k in range(i + 1):
                c[i, j] += a[i, k] * b[k, j]
    return c


def between_rows(a, b):
    """Sums that are empty for some rows, and for some sizes, where their elements need not exist."""
    c = output_tensor((a.shape[0], b.shape[0], b.shape[2]), a.dtype)
    for s in range(b.shape[0]):
        for i in range(a.shape[0]):
            for j in range(max(0, i - 9), b.shape[1]):
                for k in range(j, min(b.shape[2], i + 50)):
                    c[i, s, k] += a[i, j] * b[s, j, k]
    return c


def one_after_another(x, w):
    """A filter as long as the row: what its edges would read does not exist."""
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            for k in range(j + 1):
                y[i, j] += x[i, k] * w[j - k]
    return y


def by_a_column(a, b):
    c = output_tensor((a.shape[0], b.shape[1]), a.dtype)
    for i in range(a.shape[0]):
        total = 0
        for k in range(a.shape[1]):
            total += a[i, k] * b[k, 0]
        c[i, 0] = total
    return c
