"""Loop kernels, and what is proved of slices along each of their dimensions."""

# ruff: noqa: F821 - the words of the language

import math


def mean(x):
    y = output_tensor((1,), x.dtype)
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i]
    y[0] = total / x.shape[0]
    return y


def scaled_sum(x):
    y = output_tensor((1,), x.dtype)
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i]
    y[0] = 0.5 * -total
    return y


def square_of_sum(x):
    y = output_tensor((1,), x.dtype)
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i]
    y[0] = total * total
    return y


def count(x):
    y = output_tensor((1,), x.dtype)
    for i in range(x.shape[0]):  # noqa: B007
        y[0] += 1.0
    return y


def positions(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * i
    return y


def running_sum(x):
    y = output_tensor(x.shape, x.dtype)
    y[0] = x[0]
    for i in range(1, x.shape[0]):
        y[i] = y[i - 1] + x[i]
    return y


def last_positive(x):
    y = output_tensor(x.shape, x.dtype)
    last = 0.0
    for i in range(x.shape[0]):
        if x[i] > 0.0:
            last = x[i]
        y[i] = last
    return y


def product(x):
    y = output_tensor((1,), x.dtype)
    y[0] = 1.0
    for i in range(x.shape[0]):
        y[0] *= x[i]
    return y


def row_maxima(x):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        y[i] = -1.0
        for j in range(x.shape[1]):
            y[i] = max(y[i], x[i, j])
    return y


def flip(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[x.shape[0] - 1 - i]
    return y


def backwards(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[x.shape[0] - 1 - i] = 2.0 * x[x.shape[0] - 1 - i]
    return y


def bias(x, b):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        y[i] = b[i]
        for k in range(x.shape[1]):
            y[i] += x[i, k]
    return y


def differences(x):
    y = output_tensor(x.shape, x.dtype)
    y[0] = x[0]
    for i in range(1, x.shape[0]):
        y[i] = x[i] - x[i - 1]
    return y


def guarded(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = (x[i - 1] if i > 0 else 0.0) + (x[i + 1] if i + 1 < x.shape[0] else 0.0)
    return y


def every_second(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] if i % 2 == 0 else 0.0
    return y


def twice_smoothed(x):
    t = allocate(x.shape, x.dtype)
    y = output_tensor(x.shape, x.dtype)
    for i in range(1, x.shape[0] - 1):
        t[i] = x[i - 1] + x[i + 1]
    for i in range(1, x.shape[0] - 1):
        y[i] = t[i - 1] * t[i + 1]
    return y


def time_steps(x, steps):
    y = output_tensor(x.shape, x.dtype)
    t = allocate(x.shape, x.dtype)
    for i in range(x.shape[0]):
        t[i] = x[i]
    for _ in range(steps):
        for i in range(1, x.shape[0] - 1):
            y[i] = t[i - 1] + t[i + 1]
        for i in range(1, x.shape[0] - 1):
            t[i] = y[i]
    return y


def neighbours_summed(x):
    y = output_tensor((1,), x.dtype)
    for i in range(1, x.shape[0]):
        y[0] += x[i] * x[i - 1]
    return y


def square_matrix(x):
    y = output_tensor((x.shape[0], x.shape[0]), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[0]):
            y[i, j] = x[i] - x[j]
    return y


def triangle(x):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        for j in range(i + 1):
            y[i] += x[i, j]
    return y


def half(x):
    y = output_tensor((x.shape[0] // 2,), x.dtype)
    for i in range(x.shape[0] // 2):
        y[i] = x[2 * i]
    return y


def looked_up(index, table):
    y = output_tensor((index.shape[0],), table.dtype)
    for k in range(index.shape[0]):
        y[k] = table[index[k]]
    return y


def padded(x, width):
    y = output_tensor((x.shape[0] - width,), x.dtype)
    for i in range(x.shape[0] - width):
        for k in range(width + 1):
            y[i] += x[i + k]
    return y


def ragged(x, lengths):
    y = output_tensor(x.shape, x.dtype)
    for b in range(x.shape[0]):
        for t in range(lengths[b]):
            y[b, t] = x[b, t]
    return y


def quadratic(x, k):
    y = output_tensor(x.shape, x.dtype)
    for i in range(k * k):
        y[i] = x[i]
    return y


def first_weight(x, w):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * w[0 if i == 0 else 1]
    return y


def first_shorter(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(1 if i == 0 else 2):
            y[i] += x[i] * (j + 1)
    return y


def first_or_switch(x, w):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        if i == 0 or w[0] > 0.0:
            y[i] = x[i]
    return y


def others_unless_switch(x, w):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        if i > 0 and w[0] > 0.0:
            y[i] = -x[i]
        else:
            y[i] = x[i]
    return y


def by_length(x, w):
    y = output_tensor(x.shape, x.dtype)
    s = w[0 if x.shape[0] > 5 else 1]
    for i in range(x.shape[0]):
        y[i] = x[i] * s
    return y


def negative_maximum(x):
    y = output_tensor((1,), x.dtype)
    m = -math.inf
    for i in range(x.shape[0]):
        m = max(m, x[i])
    m *= -1.0
    y[0] = m
    return y


def clamped_sum(x):
    y = output_tensor((1,), x.dtype)
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i]
    s = max(s, 0.0)
    y[0] = s
    return y


def weight_of_sum(index, w):
    y = output_tensor((1,), w.dtype)
    m = 0
    for i in range(index.shape[0]):
        m += index[i]
    y[0] = w[m]
    return y


def short_maximum(index):
    y = output_tensor((1,), uint8)
    m = 0
    for i in range(index.shape[0]):
        m = max(m, index[i])
    y[0] = uint8(m)
    return y


def beyond_the_end(x):
    y = output_tensor((1,), x.dtype)
    for i in range(x.shape[0] + 1):
        if i > 0:
            y[0] += x[i - 1]
    return y


def moved_maximum(x, w):
    y = output_tensor((1,), x.dtype)
    m = -math.inf
    for i in range(x.shape[0]):
        m = max(m, x[i])
    m += w[0]
    y[0] = m
    return y


def all_but_two(x):
    y = output_tensor((x.shape[0] - 2,), x.dtype)
    for i in range(x.shape[0] - 2):
        y[i] = x[i] * x[i]
    return y


def all_but_two_positions(x):
    y = output_tensor((x.shape[0] - 2,), x.dtype)
    for i in range(x.shape[0] - 2):
        y[i] = x[i] * x[i] * i
    return y


def short_temporary(x):
    t = allocate((x.shape[0] - 2,), x.dtype)
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0] - 2):
        t[i] = x[i] * i
    for i in range(x.shape[0] - 2):
        y[i] = t[i] * t[i]
    return y


CASES = [  # function, ranks of its tensors, attributes, by dimension how the text of its slicing begins
    (mean, [1], {}, {"i": "placed sum: the size x.shape[0] is used as a value"}),
    (scaled_sum, [1], {}, {"i": "sum"}),
    (square_of_sum, [1], {}, {"i": "whole: total * total needs the whole sum total"}),
    (count, [1], {}, {"i": "sum"}),
    (positions, [1], {}, {"i": "placed parallel: the index i is used as a value"}),
    (running_sum, [1], {}, {"i": "whole: y[i - 1] needs all elements before it"}),
    (last_positive, [1], {}, {"i": "whole: last keeps a value from one i to the next"}),
    (product, [1], {}, {"i": "whole: y is a product"}),
    (row_maxima, [2], {}, {"i": "parallel", "j": "max"}),
    (flip, [1], {}, {"i": "whole: the loop i runs along it in both directions"}),
    (backwards, [1], {}, {"i": "parallel"}),
    (bias, [2, 1], {}, {"i": "parallel", "k": "whole: each part of it would count b[i] in y once more"}),
    (differences, [1], {}, {"i": "halo 1 0"}),
    (guarded, [1], {}, {"i": "halo 1 1"}),
    (every_second, [1], {}, {"i": "placed parallel: whether x[i] is read depends on where the slice is"}),
    (twice_smoothed, [1], {}, {"i": "halo 2 2"}),
    (time_steps, [1], {"steps": 2}, {"i": "whole: t[i_1 - 1] needs all elements before it"}),
    (
        neighbours_summed,
        [1],
        {},
        {"i": "placed sum: neighbours of a slice are read, and would be added twice"},
    ),
    (square_matrix, [1], {}, {"i": "whole: two axes of y run along it"}),
    (
        triangle,
        [2],
        {},
        {
            "i": "placed parallel: which iterations run it depends on where the slice is",
            "j": "placed sum: which iterations run it depends on where the slice is",
        },
    ),
    (half, [1], {}, {"x_0": "whole: the size of y depends on it along another axis"}),
    (
        looked_up,
        [1, 1],
        {},
        {"k": "parallel", "table_0": "whole: the index of table[index[k]] depends on data"},
    ),
    (padded, [1], {"width": 2}, {"i": "halo 0 width"}),
    (
        ragged,
        [2, 1],
        {},
        {"b": "parallel", "t": "placed parallel: where the loop t begins or ends is not affine"},
    ),
    (quadratic, [1], {"k": 1}, {"i": "placed parallel: where the loop i begins or ends is not affine"}),
    (
        first_weight,
        [1, 1],
        {},
        {"i": "placed parallel: a condition in it", "w_0": "whole: the index of w["},
    ),
    (first_shorter, [1], {}, {"i": "placed parallel: a condition in it depends on where the slice is"}),
    (first_or_switch, [1, 1], {}, {"i": "placed parallel: a condition in it", "w_0": "whole: "}),
    (others_unless_switch, [1, 1], {}, {"i": "placed parallel: which iterations run it", "w_0": "whole: "}),
    (by_length, [1, 1], {}, {"i": "placed parallel: ", "w_0": "whole: "}),
    (negative_maximum, [1], {}, {"i": "whole: the whole max m of line"}),
    (moved_maximum, [1, 1], {}, {"i": "max", "w_0": "whole: every slice would need w[0]"}),
    (clamped_sum, [1], {}, {"i": "whole: the whole sum s of line"}),
    (weight_of_sum, [1, 1], {}, {"i": "whole: w[m] needs the whole sum m", "w_0": "whole: "}),
    (short_maximum, [1], {}, {"i": "whole: "}),
    (all_but_two, [1], {}, {"i": "halo 0 2"}),
    (all_but_two_positions, [1], {}, {"i": "placed halo: the index i is used as a value"}),
    (short_temporary, [1], {}, {"i": "placed halo: the index i is used as a value"}),
    (beyond_the_end, [1], {}, {"i": "whole: iterations beyond its ends count too"}),
]
