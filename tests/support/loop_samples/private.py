# ruff: noqa: F821 - programs in the language, whose words are no names here
"""Programs with a temporary row per iteration of an outer loop, under conditions on that loop.

The outer loop walks along memory, so its borders are separated into copies of it. In a copy the inner loop
runs on threads; each copy needs the row's memory.
"""


def filled_then_read_under_if(x):
    y = output_tensor(x.shape, x.dtype)
    t = allocate((x.shape[0],), x.dtype)
    for j in range(x.shape[1]):
        for i in range(x.shape[0]):
            t[i] = x[i, j] * 2
        for i in range(x.shape[0]):
            if j > 0:
                y[i, j] = t[x.shape[0] - 1 - i] + x[i, j - 1]
            else:
                y[i, j] = t[x.shape[0] - 1 - i]
    return y


def written_under_if(x):
    y = output_tensor(x.shape, x.dtype)
    t = allocate((x.shape[0],), x.dtype)
    for j in range(x.shape[1]):
        for i in range(x.shape[0]):
            t[i] = x[i, j]
            if j < 2:
                t[i] = t[i] * 3
        for i in range(x.shape[0]):
            y[i, j] = t[x.shape[0] - 1 - i]
    return y


def picked_by_a_tensor(x, h):
    y = output_tensor(x.shape, x.dtype)
    t = allocate((x.shape[0],), x.dtype)
    for j in range(x.shape[1]):
        for i in range(x.shape[0]):
            t[i] = x[i, j] + 1
        for i in range(x.shape[0]):
            y[i, j] = t[h[i]] if j < 2 else t[x.shape[0] - 1 - i]
    return y


def scan_in_the_row(x):
    y = output_tensor(x.shape, x.dtype)
    t = allocate((x.shape[0],), x.dtype)
    for j in range(x.shape[1]):
        t[0] = x[0, j]
        for i in range(1, x.shape[0]):
            t[i] = t[i - 1] + x[i, j]
        for i in range(x.shape[0]):
            y[i, j] = t[x.shape[0] - 1 - i] + (x[i, j - 1] if j > 0 else x[i, j])
    return y


def both_loops_split(x):
    y = output_tensor((x.shape[2], x.shape[0], x.shape[1]), x.dtype)
    t = allocate((x.shape[2],), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            for k in range(x.shape[2]):
                t[k] = x[i, j, k] * 2
                if i > 0 and j < x.shape[1] - 1:
                    t[k] = t[k] + x[i - 1, j + 1, k]
            for k in range(x.shape[2]):
                y[k, i, j] = t[x.shape[2] - 1 - k]
    return y


def one_row_of_two_axes(x):
    y = output_tensor(x.shape, x.dtype)
    t = allocate(x.shape, x.dtype)
    for j in range(x.shape[1]):
        for i in range(x.shape[0]):
            t[i, j] = x[i, j] * 2
        for i in range(x.shape[0]):
            if j > 0:
                y[i, j] = t[x.shape[0] - 1 - i, j] + x[i, j - 1]
            else:
                y[i, j] = t[x.shape[0] - 1 - i, j]
    return y
