# ruff: noqa: F821, B007 - programs in the language, whose words are no names here
"""Programs: elements, neighbours, time and order."""


def square(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * x[i]
    return y


def leaky_relu(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        if x[i] > 0:
            y[i] = x[i]
        else:
            y[i] = x[i] * 2
    return y


def gelu(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = 0.5 * x[i] * (1.0 + tanh(0.7978845608 * (x[i] + 0.044715 * x[i] * x[i] * x[i])))
    return y


def nested_ifs(x, m):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if m[j]:
                if x[i, j] > 1:
                    y[i, j] = x[i, j] - 1
                elif x[i, j] < -1:
                    y[i, j] = x[i, j] + 1
            elif i == j:
                y[i, j] = 7
    return y


def drawn(x, key):
    y = output_tensor(x.shape, float32)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if random(key, j, -i) < 0.5:
                y[i, j] = random(key, i, j, 2, dtype=x.dtype) + random_normal(key, i) * x[i, j]
    return y


def guarded(x):
    y = output_tensor(x.shape, x.dtype)
    n = x.shape[0]
    for i in range(n):
        left = x[i - 1] if i > 0 else x[i]
        right = x[i + 1] if i + 1 < n else x[i]
        y[i] = left + right * 2
        if i > 1 and x[i - 2] > 0:
            y[i] += x[i - 2]
    return y


def shifted_under_if(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if i + j < x.shape[1]:
                y[i, i + j] = x[i, j]
    return y


def diagonal(x):
    y = output_tensor((x.shape[1],), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if i == j:
                y[j] = x[i, j] + 1
    return y


def one_iteration(x):
    y = output_tensor((2,), x.dtype)
    last = x[0]
    for i in range(x.shape[0]):
        if i == 2:
            last += x[i]
        if i == 1:
            y[1] = x[i]
    y[0] = last
    return y


def reverse(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0] - 1, -1, -1):
        y[x.shape[0] - 1 - i] = x[i]
    return y


def every_other(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(0, x.shape[0], 2):
        y[i] = x[i]
    for i in range(1, x.shape[0], 2):
        y[i] = -x[i]
    return y


def from_the_end(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[-1, j] + x[i, -1]
    return y


def transposed(x):
    y = output_tensor((x.shape[1], x.shape[0]), x.dtype)
    for at in grid(x.shape):
        y[at[1], at[0]] = x[at]
    return y


def divisions(x, z):
    y = output_tensor(x.shape, x.dtype)
    r = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        if z[i] != 0:
            y[i] = x[i] // z[i]
            r[i] = x[i] % z[i]
    return y, r


def casts(x, z):
    y = output_tensor(x.shape, "int16")
    w = output_tensor(x.shape, "float32")
    for i in range(x.shape[0]):
        y[i] = int16(int8(z[i] * 100)) + int16(x[i])
        w[i] = float32(z[i]) / 2 + float32(bfloat16(x[i])) + int32(float64(x[i]) * 1.5)
    return y, w


def float8(x, z):
    y = output_tensor(x.shape, x.dtype)
    w = output_tensor(z.shape, z.dtype)
    s = output_tensor(x.shape, "float32")
    for i in range(x.shape[0]):
        y[i] = x[i] * z[i] * 0.37
        w[i] = x[i] / 3 + z[i]
        s[i] = float8_e4m3fn(z[i] * 0.3) + float8_e5m2(x[i] * 0.7)
    return y, w, s


def functions(x):
    y = output_tensor((x.shape[0], 11), x.dtype)
    for i in range(x.shape[0]):
        y[i, 0] = exp(x[i])
        y[i, 1] = expm1(x[i])
        y[i, 2] = log(x[i])
        y[i, 3] = sqrt(x[i]) + rsqrt(x[i])
        y[i, 4] = tanh(x[i] - 1)
        y[i, 5] = erf(x[i] - 1)
        y[i, 6] = sin(x[i]) + cos(x[i])
        y[i, 7] = atan(x[i]) + atan2(x[i], x[i] - 3)
        y[i, 8] = floor(x[i]) + ceil(x[i]) + trunc(-x[i]) + round(x[i] * 1.3)
        y[i, 9] = sign(1 - x[i]) + abs(1 - x[i])
        y[i, 10] = pow(x[i], x[i] / 2)
    return y


def further_functions(x):
    y = output_tensor((x.shape[0], 10), x.dtype)
    for i in range(x.shape[0]):
        y[i, 0] = exp2(x[i])
        y[i, 1] = log1p(x[i])
        y[i, 2] = log2(x[i])
        y[i, 3] = sinh(x[i] - 1)
        y[i, 4] = cosh(x[i] - 1)
        y[i, 5] = sigmoid(x[i] - 1)
        y[i, 6] = erfc(x[i] - 1)
        y[i, 7] = tan(x[i] / 9)
        y[i, 8] = asin(x[i] / 9) - acos(x[i] / 9)
        y[i, 9] = log2(sigmoid(-x[i]))
    return y


def shifts(x, k):
    y = output_tensor((x.shape[0], 5), x.dtype)
    for i in range(x.shape[0]):
        y[i, 0] = x[i] << k[i]
        y[i, 1] = x[i] >> k[i]
        y[i, 2] = x[i] << 3
        y[i, 3] = x[i] >> 1
        y[i, 4] = x[i] >> 70
    return y


def whole_powers(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = pow(x[i], 3) + ceil_div(x[i], 2) + abs(x[i])
    return y


def special(x):
    y = output_tensor(x.shape, "int32")
    for i in range(x.shape[0]):
        z = 1 / x[i]
        y[i] = int32(isnan(z - z)) * 4 + int32(isinf(z)) * 2 + int32(isfinite(z))
    return y


def attributes(x, n, by, flag):
    y = output_tensor((n + 1, x.shape[0]), x.dtype)
    for t in range(n):
        for i in range(x.shape[0]):
            y[t, i] = x[i] * by + t if flag else x[i]
    return y


def never_runs(x, n):
    y = output_tensor(x.shape, x.dtype)
    z = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = 1
        for k in range(n):
            y[i] += x[i]
            z[i] += x[i]
    return y, z


def indirect(x, at):
    y = output_tensor((at.shape[0], x.shape[1]), x.dtype)
    for i in range(at.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[at[i], j]
    return y


def scatter_add(x, at):
    y = output_tensor(x.shape, x.dtype)
    for i in range(at.shape[0]):
        for j in range(x.shape[1]):
            y[at[i], j] += x[i, j]
    return y


def names(t, l, on, q0):
    e = output_tensor(t.shape, t.dtype)
    p = allocate(t.shape, t.dtype)
    lo = 2
    for parts in range(t.shape[0]):
        p[parts] = t[parts] + l[parts] * lo
        run = 0
        for hi in range(on.shape[0]):
            if on[hi] > q0[parts]:
                run += hi
        e[parts] = p[parts] + run
    return e


# --- neighbours, time, order


def stencil(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(1, x.shape[0] - 1):
        for j in range(1, x.shape[1] - 1):
            y[i, j] = 2 * x[i, j] + x[i - 1, j] - x[i + 1, j] + x[i, j - 1] * x[i, j + 1]
    return y


def two_stencils(x):
    y = output_tensor(x.shape, x.dtype)
    half = allocate(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(1, x.shape[1]):
            half[i, j] = x[i, j] - x[i, j - 1]
    for i in range(1, x.shape[0]):
        for j in range(1, x.shape[1]):
            y[i, j] = half[i, j] - half[i - 1, j]
    return y


def jacobi(a, b, steps):
    for t in range(steps):
        for i in range(1, a.shape[0] - 1):
            for j in range(1, a.shape[1] - 1):
                b[i, j] = 0.5 * (a[i, j - 1] + a[i, j + 1]) + a[i - 1, j]
        for i in range(1, a.shape[0] - 1):
            for j in range(1, a.shape[1] - 1):
                a[i, j] = 0.5 * (b[i, j - 1] + b[i, j + 1]) - b[i + 1, j]
    return a, b


def seidel(a):
    for i in range(1, a.shape[0] - 1):
        for j in range(1, a.shape[1] - 1):
            a[i, j] = a[i, j - 1] + a[i - 1, j] - a[i, j + 1]
    return a


def scan(x, decay):
    h = output_tensor(x.shape, x.dtype)
    for b in range(x.shape[1]):
        state = 0.0
        for t in range(x.shape[0]):
            state = decay[b] * state * 0.5 + x[t, b]
            h[t, b] = state
    return h


def prefix_sum(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] if i == 0 else y[i - 1] + x[i]
    return y


def in_place_prefix(x):
    for i in range(1, x.shape[0]):
        x[i] += x[i - 1]
    return x


def thomas(a, d):
    for i in range(a.shape[0]):
        for k in range(1, a.shape[1]):
            d[i, k] = d[i, k] - a[i, k] * d[i, k - 1]
        for k in range(a.shape[1] - 2, -1, -1):
            d[i, k] = d[i, k] - a[i, k] * d[i, k + 1]
    return d


def row_temporary(x):
    y = output_tensor(x.shape, x.dtype)
    row = allocate((x.shape[1],), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            row[j] = x[i, j] * 2
        for j in range(x.shape[1]):
            y[i, j] = row[x.shape[1] - 1 - j] + row[j]
    return y


def up_and_down(x):
    y = output_tensor(x.shape, x.dtype)
    up = allocate(x.shape, x.dtype)
    n = x.shape[1]
    for i in range(x.shape[0]):
        up[i, 0] = x[i, 0]
        for k in range(1, n):
            up[i, k] = up[i, k - 1] * 3 + x[i, k]
        last = up[i, n - 1]
        y[i, n - 1] = last
        for k in range(n - 2, -1, -1):
            last = up[i, k] - last
            if last > 0:
                y[i, k] = last
            else:
                y[i, k] = up[i, k] + last if up[i, k] > 2 else x[i, k]
    return y


def wander(x):
    y = output_tensor(x.shape, x.dtype)
    n = x.shape[1]
    at = allocate(x.shape, int64)
    for i in range(x.shape[0]):
        at[i, 0] = 0
        for k in range(1, n):
            at[i, k] = (at[i, k - 1] * 3 + int64(x[i, k])) % n
        for k in range(n):
            y[i, k] = x[i, at[i, n - 1 - k]] if k > at[i, k] else x[i, k] + at[i, k]
    return y


def there_and_back(x, z):
    """Rows from their first column to their last and back, with neighbouring columns and rows."""
    y = output_tensor(x.shape, x.dtype)
    n = x.shape[1]
    for i in range(x.shape[0] - 1):
        state = z[i, 0]
        for k in range(1, n - 1):
            state = x[i, k + 1] - state + 2 * x[i, k - 1] + z[i + 1, k] - z[i, k] + z[i, k] * x[i, k]
            y[i, k] = state
        for k in range(n - 1, -1, -1):
            state = z[i, k] - state + x[i, k] * x[i + 1, k] + z[i + 1, n - 1 - k] + y[i, k]
            y[i, k] = state + z[i, 0]
    return y


def four_columns(x):
    """So little arithmetic that several vectors of rows are worked on at once."""
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        state = x[i, 0]
        for k in range(x.shape[1] - 3):
            state = x[i, k] + x[i, k + 1] - state + x[i, k + 2] + x[i, k + 3]
            y[i, k] = state
    return y


def columns_ahead(x, z):
    """The same of columns that are far apart."""
    y = output_tensor(z.shape, x.dtype)
    for i in range(z.shape[0]):
        state = z[i, 0]
        for k in range(z.shape[1] - 31):
            state = x[i, k] - state + x[i, k + 5] * x[i, k + 30] + x[i, k + 31] - z[i, k] * x[i, k + 2]
            y[i, k] = state
    return y


def one_after_another(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        up = sqrt(1 + sin(x[i]) ** 2)
        y[i] = atan2(up, log(x[i] + 2)) / 2 + cos(up)
    return y


def tile_temporary(x):
    y = output_tensor(x.shape, x.dtype)
    tile = allocate((2, 2), x.dtype)
    for i in range(x.shape[0] // 2):
        for j in range(x.shape[1] // 2):
            for p in range(2):
                for q in range(2):
                    tile[p, q] = x[2 * i + p, 2 * j + q]
            for p in range(2):
                for q in range(2):
                    y[2 * i + q, 2 * j + p] = tile[p, q] - tile[q, p]
    return y


def triangular_sum(x):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        for j in range(i, x.shape[0]):
            y[i] += x[i, j]
    return y


def fourth_power(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        t = x[i]
        for _ in range(2):
            t = t * t  # of the loop around: one scalar for both iterations
        y[i] = t
    return y


def clamped(x, w):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for k in range(w.shape[0]):
            y[i] += w[k] * x[min(max(i + k - w.shape[0] // 2, 0), x.shape[0] - 1)]
    return y


def clamped_at_one_end(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[max(i - 2, 0), j] * x[i, min(x.shape[1] - 1, j + 3)]
    return y


def clamped_image(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            for p in range(3):
                for q in range(3):
                    row = max(min(i + p - 1, x.shape[0] - 1), 0)
                    y[i, j] += x[row, min(max(j - q + 1, 0), x.shape[1] - 1)]
    return y


def clamped_by_data(x, index):
    y = output_tensor(x.shape, x.dtype)
    for i in range(index.shape[0]):
        y[min(max(index[i] - 1, 0), x.shape[0] - 1)] += x[min(i, x.shape[0] - 1)]
    return y
