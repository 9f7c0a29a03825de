# ruff: noqa: F821, B007 - programs in the language, whose words are no names here
"""Programs of a few lines, whose compiled text a person can read.

Compiled text names lines of this file: a new program goes to the end.
"""


def add(x, z):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] + z[i]
    return y


def softmax(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        top = x[i, 0]
        total = float32(0)
        for j in range(x.shape[1]):
            top = max(top, x[i, j])
        for j in range(x.shape[1]):
            y[i, j] = exp(x[i, j] - top)
            total += y[i, j]
        for j in range(x.shape[1]):
            y[i, j] = y[i, j] / total
    return y


def matmul(a, b):
    c = output_tensor((a.shape[0], b.shape[1]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            c[i, j] = 0
            for k in range(a.shape[1]):
                c[i, j] += a[i, k] * b[k, j]
    return c


def stencil(x):
    y = output_tensor((x.shape[0] - 2,), x.dtype)
    for i in range(x.shape[0] - 2):
        y[i] = x[i] - 2 * x[i + 1] + x[i + 2]
    return y


def gather(table, at):
    y = output_tensor(at.shape, table.dtype)
    for i in range(at.shape[0]):
        y[i] = table[at[i]]
    return y


def running_sum(x):
    y = output_tensor(x.shape, x.dtype)
    total = float32(0)
    for i in range(x.shape[0]):
        total += x[i]
        y[i] = total
    return y


def column_sum(x):
    y = output_tensor((x.shape[1],), x.dtype)
    for j in range(x.shape[1]):
        y[j] = 0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[j] += x[i, j]
    return y


def recurrence(x, decay):
    y = output_tensor(x.shape, x.dtype)
    state = float32(0)
    for t in range(x.shape[0]):
        state = tanh(decay[0] * state + x[t])
        y[t] = state
    return y


def normalised(x):
    y = output_tensor(x.shape, x.dtype)
    norm = allocate((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        squares = float32(0)
        for j in range(x.shape[1]):
            squares += x[i, j] * x[i, j]
        norm[i] = sqrt(squares)
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] / norm[i]
    return y


def scaled_in_place(x, factor):
    for i in range(x.shape[0]):
        x[i] = x[i] * factor[0]
    return x


def straight_through(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] + stop_gradient(floor(x[i]) - x[i])
    return y


def named_index(x):
    y = output_tensor((x.shape[0] - 3,), x.dtype)
    for i in range(x.shape[0] - 3):
        at = i + 3
        y[i] = x[at]
    return y


def around_nothing(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = 2 * x[i]
        if i > 3:
            pass
    for j in range(x.shape[0]):
        pass
    return y


def three_channels(x):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        total = float32(0)
        for channel in range(3):
            total += x[i, channel]
        y[i] = total
    return y


def by_sign(x):
    y = output_tensor(x.shape, x.dtype)
    z = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        if x[i] > 0:
            root = sqrt(x[i])
            y[i] = root / (root + 1)
            z[i] = root
        elif x[i] < -1:
            y[i] = 0.0
            z[i] = x[i] + 1
        else:
            y[i] = x[i]
            z[i] = 1.0
    return y, z


def fifth(x):
    y = output_tensor((1,), x.dtype)
    y[0] = x[4]
    return y


def partly_written(x):
    y = output_tensor(x.shape, x.dtype)
    z = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        z[i] = 2 * x[i]
    for i in range(1, x.shape[0]):
        y[i] = y[i - 1] + z[i]
    return y, z


def doubled_then_added(x):
    y = output_tensor((x.shape[0] - 1,), x.dtype)
    double = allocate(x.shape, x.dtype)
    for i in range(x.shape[0]):
        double[i] = 2 * x[i]
    for i in range(x.shape[0] - 1):
        y[i] = double[i] + double[i + 1]
    return y


def attention(q, k):
    y = output_tensor((q.shape[0], k.shape[1]), q.dtype)
    p = allocate((q.shape[0], k.shape[0]), q.dtype)
    for i in range(q.shape[0]):
        for j in range(k.shape[0]):
            for d in range(k.shape[1]):
                p[i, j] += q[i, d] * k[j, d]
        for j in range(k.shape[0]):
            for d in range(k.shape[1]):
                y[i, d] += p[i, j] * k[j, d]
    return y


def exponentials_of_a_row(x):
    y = output_tensor(x.shape, x.dtype)
    row = allocate((x.shape[1],), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            row[j] = exp(x[i, j])
        for j in range(x.shape[1]):
            y[i, j] = row[j] + row[x.shape[1] - 1 - j]
    return y


def window_weights(d, x, like):
    w = output_tensor(like.shape, x.dtype)
    for o in range(w.shape[0]):
        for c in range(w.shape[1]):
            for p in range(w.shape[2]):
                for n in range(d.shape[0]):
                    for i in range(x.shape[2] - like.shape[2] + 1):
                        w[o, c, p] += d[n, o, i] * x[n, c, i + p]
    return w


def column_by_column(x):
    y = output_tensor((x.shape[1],), x.dtype)
    for j in range(x.shape[1]):
        for i in range(x.shape[0]):
            y[j] += x[i, j]
    return y


def row_sum(x):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i] += x[i, j]
    return y


def sum_of_those_before(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(1, x.shape[1]):
            y[i, j] = y[i, j - 1] + x[i, j - 1]
    return y


def divided_by_rows(x, s):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] / s[i]
    return y


def logistic(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = 0.5 * (1.0 + tanh(0.5 * x[i]))
    return y


def with_borders(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        if i > 0 and i < x.shape[0] - 1:
            y[i] = x[i - 1] + x[i + 1]
        else:
            y[i] = x[i]
    return y


def blurred(x):
    y = output_tensor(x.shape, x.dtype)
    t = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            t[i, j] = 2 * x[i, j]
    for i in range(1, x.shape[0] - 1):
        for j in range(x.shape[1]):
            y[i, j] = t[i - 1, j] + t[i + 1, j]
    return y, t


def gather_and_add(table, at, bias):
    y = output_tensor(at.shape, table.dtype)
    for i in range(at.shape[0]):
        y[i] = table[at[i]] + bias[i]
    return y


def largest_square(x):
    y = output_tensor((1,), x.dtype)
    y[0] = 0.0
    for i in range(x.shape[0]):
        y[0] = max(y[0], x[i] * x[i])
    return y


def twice_the_sum(x):
    y = output_tensor((1,), x.dtype)
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i]
    y[0] = 2.0 * total
    return y


def online_log_sum(x):
    y = output_tensor((1,), x.dtype)
    top = x[0]
    total = float32(0)
    for i in range(x.shape[0]):
        new = max(top, x[i])
        total = total * exp(top - new) + exp(x[i] - new)
        top = new
    y[0] = top + log(total)
    return y


def held_back(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[max(i - 2, 0)]
    return y


def transposed(x):
    y = output_tensor((x.shape[1], x.shape[0]), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[j, i] = x[i, j]
    return y


def place_of_the_greatest(x):
    y = output_tensor((1,), "int64")
    best = 0
    for i in range(1, x.shape[0]):
        if x[i] > x[best]:
            best = i
    y[0] = best
    return y


def greatest_of_pairs(x):
    y = output_tensor((x.shape[0] - 1,), x.dtype)
    for i in range(x.shape[0] - 1):
        top = x[i]
        for k in range(2):
            top = max(top, x[i + k])
        y[i] = top
    return y


def online_softmax_so_far(x):
    y = output_tensor(x.shape, x.dtype)
    top = x[0]
    total = float32(0)
    for i in range(x.shape[0]):
        new = max(top, x[i])
        total = total * exp(top - new) + exp(x[i] - new)
        y[i] = exp(x[i] - new) / total
        top = new
    return y


def attention_row_by_row(q, k):
    y = output_tensor((q.shape[0], k.shape[1]), q.dtype)
    p = allocate((k.shape[0],), q.dtype)
    for i in range(q.shape[0]):
        for j in range(k.shape[0]):
            p[j] = 0
            for d in range(k.shape[1]):
                p[j] += q[i, d] * k[j, d]
        for j in range(k.shape[0]):
            for d in range(k.shape[1]):
                y[i, d] += p[j] * k[j, d]
    return y


def named_sum(x, c):
    y = output_tensor(x.shape, x.dtype)
    for i in range(1, x.shape[0] - 1):
        total = x[i - 1] + x[i + 1] - 2.0 * x[i]
        y[i] = c[i] * total
    return y
