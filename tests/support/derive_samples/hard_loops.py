# ruff: noqa: F821 - kernels, whose words are no names here
"""Kernels whose loops, outputs and functions are hard to go through backwards."""

CASES = []


def case(tensors, **attributes):
    """Add a kernel to the table. Its tensors: dtype, sizes, and the bound that whole numbers are below."""

    def added(function):
        CASES.append((function, tensors, attributes))
        return function

    return added


@case("float64 6")
def maxima_so_far(x):
    y = output_tensor(x.shape, x.dtype)
    m = x[0]
    for i in range(x.shape[0]):
        m = max(m, x[i])
        y[i] = m
    return y


@case("float64 6")
def maxima_so_far_in_memory(x):
    y = output_tensor(x.shape, x.dtype)
    y[0] = x[0]
    for i in range(1, x.shape[0]):
        y[i] = max(y[i - 1], x[i])
    return y


@case("float64 3 4, float64 3 4")
def two_gated_states(x, u):
    y = output_tensor(x.shape, x.dtype)
    for b in range(x.shape[0]):
        h = 0.0
        c = 1.0
        for t in range(x.shape[1]):
            z = 1.0 / (1.0 + exp(-(x[b, t] + u[b, t] * h)))
            n = tanh(x[b, t] * c + z * h)
            h = (1.0 - z) * n + z * h
            c = c * z + n * h
            y[b, t] = h * c
    return y


@case("float64 6")
def maximum_with_itself(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * x[i]
    for i in range(x.shape[0]):
        y[0] = max(y[0], y[i])
    for i in range(1, x.shape[0]):
        y[i // 2 * 2] = min(y[i // 2 * 2], y[i])
    return y


@case("float64 6")
def nonlinear_stencil_in_time(x):
    u = output_tensor(x.shape, x.dtype)
    v = allocate(x.shape, x.dtype)
    for i in range(x.shape[0]):
        u[i] = x[i]
    for _t in range(4):
        for i in range(1, x.shape[0] - 1):
            v[i] = u[i] * (u[i + 1] - u[i - 1]) + u[i]
        for i in range(1, x.shape[0] - 1):
            u[i] = v[i] + 0.1 * v[i] * v[i - 1]
    return u


@case("float64 6")
def nonlinear_sweeps_in_place(x):
    u = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        u[i] = x[i]
    for _t in range(3):
        for i in range(1, x.shape[0] - 1):
            u[i] = u[i] * u[i - 1] + u[i + 1] * u[i + 1]
    return u


@case("float64 4 4")
def cholesky(A):
    L = output_tensor(A.shape, A.dtype)
    for i in range(A.shape[0]):
        for j in range(i + 1):
            s = A[i, j] if i != j else A[i, j] + 9.0
            for k in range(j):
                s -= L[i, k] * L[j, k]
            if i == j:
                L[i, j] = sqrt(s)
            else:
                L[i, j] = s / L[j, j]
    return L


@case("float64 7")
def steps_of_two_downwards(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0] - 1, 0, -2):
        y[i] = x[i] * x[i - 1]
        y[i - 1] += y[i] * x[i]
    return y


@case("float64 7")
def counted_from_the_end(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[-1 - i] = x[i] * x[-1]
    y[-1] = y[0] * y[-1]
    for i in range(1, 3):
        y[i - x.shape[0]] += y[-i] * x[-i]
    return y


@case("float64 5, float64 5")
def outputs_that_read_each_other(x, w):
    y = output_tensor(x.shape, x.dtype)
    z = output_tensor((2,), x.dtype)
    n = output_tensor(x.shape, "int32")
    for i in range(x.shape[0]):
        y[i] = x[i] * w[i]
        n[i] = int32(y[i] * 3.0)
        if n[i] > 0:
            z[0] += y[i] * y[i]
        y[i] = y[i] * y[i]
    z[1] = z[0] * z[0]
    for i in range(x.shape[0]):
        z[0] = z[0] * y[i]
    return y, z, n


@case("float64 5", a=3, b=1.5)
def powers(x, a, b):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = (
            x[i] ** a
            + abs(x[i]) ** b
            + x[i] ** 2
            + x[i] ** 3
            + (x[i] * x[i]) ** 0.5
            + 2.0 ** x[i]
            + (x[i] * x[i] + 0.1) ** x[i]
        )
    return y


@case("float64 5 4")
def temporaries_at_two_depths(x):
    y = output_tensor(x.shape, x.dtype)
    t = allocate((4,), x.dtype)
    s = allocate((4,), x.dtype)
    for i in range(x.shape[0]):
        for j in range(4):
            t[j] = x[i, j] * x[i, j]
        for j in range(4):
            for k in range(4):
                s[k] = t[k] * x[i, j]
            for k in range(4):
                y[i, j] += s[k] * t[j] * s[3 - k]
            t[j] = s[j] * 2.0
        for j in range(4):
            y[i, j] = y[i, j] * t[j]
    return y


@case("float64 5 4")
def scalars_across_loops(x):
    y = output_tensor((5,), x.dtype)
    c = 1.0
    for i in range(x.shape[0]):
        c = c * x[i, 0]
        d = c + 1.0
        for j in range(4):
            d = d * x[i, j] + c
            if d > 1.0:
                c = c + d * 0.1
        y[i] = d * c
    return y


@case("float64 6, int64 6 <6")
def last_write_through_an_index(x, idx):
    y = output_tensor(x.shape, x.dtype)
    for i in range(6):
        y[idx[i]] = x[i] * x[i]
    for i in range(6):
        y[i] = y[i] * y[i]
    return y


@case("float64 6, int64 6 <6")
def indices_of_indices(x, idx):
    y = output_tensor(x.shape, x.dtype)
    t = allocate(x.shape, x.dtype)
    for i in range(6):
        t[idx[i]] += x[i] * x[idx[idx[i]]]
    for i in range(6):
        y[i] = t[idx[i]] * t[i]
    for i in range(6):
        t[i] = t[idx[5 - i]] * y[i]
    for i in range(6):
        y[i] += t[i] * t[idx[i]]
    return y


@case("float64 6, float64 6")
def swapped_in_time(x, w):
    y = output_tensor(x.shape, x.dtype)
    a = allocate(x.shape, x.dtype)
    b = allocate(x.shape, x.dtype)
    for i in range(6):
        a[i] = x[i]
        b[i] = w[i]
    for _t in range(3):
        for i in range(6):
            s = a[i]
            a[i] = b[i] * s
            b[i] = s * s
    for i in range(6):
        y[i] = a[i] * b[i]
    return y


@case("float64 4 3, float64 3 3")
def rows_times_a_matrix_in_time(x, A):
    h = output_tensor(x.shape, x.dtype)
    t = allocate((3,), x.dtype)
    for b in range(4):
        for j in range(3):
            h[b, j] = x[b, j]
        for _s in range(5):
            for j in range(3):
                t[j] = 0.0
                for k in range(3):
                    t[j] += A[j, k] * h[b, k]
            for j in range(3):
                h[b, j] = tanh(t[j])
    return h


@case("float64 5")
def branches_that_would_be_nan(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(5):
        y[i] = sqrt(x[i]) if x[i] > 0 else 0.0
        y[i] += log(x[i]) if x[i] > 0 and log(x[i]) < 0 else x[i]
    return y


@case("float64 5")
def nested_branches_on_a_carried_scalar(x):
    y = output_tensor(x.shape, x.dtype)
    s = x[0]
    for i in range(5):
        if s > 0:
            if s * x[i] > 0.2:
                s = s * x[i]
                y[i] = s
            else:
                if x[i] < 0:
                    s = s + x[i] * x[i]
                y[i] = s * s
        else:
            s = -s * 2.0
    return y


@case("float64 5")
def overwritten_again_and_again(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(5):
        t = x[i]
        u = t * t
        t = u * x[i]
        u = t * u
        t = u * t
        y[i] = t * u
    return y


@case("float64 5, float64 5")
def in_place(x, w):
    for i in range(5):
        x[i] = x[i] * w[i]
    return x


@case("float64 5")
def output_overwritten_by_a_constant(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(5):
        y[i] = x[i] * x[i]
    for i in range(5):
        if x[i] > 0:
            y[i] = 1.0
    for i in range(1, 5):
        y[i] = y[i] * y[i - 1]
    return y


@case("float64 5")
def functions(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(5):
        y[i] = (
            atan2(x[i], x[4 - i] + 0.1)
            + erf(x[i])
            + expm1(x[i])
            + rsqrt(abs(x[i]))
            + atan(x[i])
            + x[i] % 0.7
            + x[i] // 0.3
            + sign(x[i]) * x[i]
            + trunc(x[i])
            + min(x[i], x[4 - i])
            + max(x[i], x[4 - i], 0.1)
        )
    return y


@case("float64 5")
def further_functions(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(5):
        small = x[i] / 8.0
        y[i] = (
            exp2(x[i])
            + log1p(abs(x[i]))
            + log2(abs(x[i]) + 0.5)
            + sinh(x[i])
            + cosh(x[4 - i])
            + sigmoid(x[i])
            + erfc(x[i])
            + lgamma(abs(x[i]) + 0.5)
            + digamma(abs(x[i]) + 0.5)
            + tan(small)
            + asin(small)
            - acos(small)
        )
    return y


@case("float64 5")
def through_whole_numbers(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(5):
        k = int64(x[i] * 2.0)
        y[i] = x[i] * k + float64(k) * x[4 - i]
    return y


@case("float64 6")
def position_of_the_maximum(x):
    y = output_tensor((3,), x.dtype)
    m = x[0]
    k = 0
    for i in range(1, 6):
        if x[i] > m:
            m = x[i]
            k = i
    y[0] = m * m
    y[1] = x[k] * x[k]
    y[2] = x[5 - k]
    return y


@case("float64 3 3")
def short_loops(x):
    y = output_tensor((3,), x.dtype)
    for i in range(3):
        t = 0.0
        for j in range(3):
            t = t * x[i, j] + x[j, i]
        for _k in range(2):
            t = t * t
        y[i] = t
    return y


@case("float64 4 3, float64 4 3, int64 4 <3")
def element_picked_under_a_condition(x, m, h):
    y = output_tensor(x.shape, x.dtype)
    for i in range(4):
        for j in range(3):
            y[i, j] = x[i, j] * m[i, j]
        y[i, h[i]] = y[i, 0] + (y[i, h[i]] if i < 2 else m[i, 0])
    return y


@case("float64 3 4, float64 3 4, int64 3 <3")
def column_of_an_iteration(x, m, h):
    y = output_tensor(x.shape, x.dtype)
    t = allocate((3,), x.dtype)
    for j in range(4):
        for i in range(3):
            t[i] = sin(x[i, j]) * m[i, j]
        for i in range(3):
            y[i, j] = t[h[i]] * t[i] if j < 2 else t[2 - i] * x[i, j - 1]
    return y


@case("float64 7")
def odd_even_sort(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i]
    for t in range(x.shape[0]):
        for i in range(t % 2, x.shape[0] - 1, 2):
            if y[i] > y[i + 1]:
                larger = y[i]
                y[i] = y[i + 1]
                y[i + 1] = larger * x[i]
    return y


@case("float64 1, float64 2")
def clamped_to_an_empty_range(x, g):
    y = output_tensor((g.shape[0],), x.dtype)
    for i in range(g.shape[0]):
        y[i] = 0.0
        for k in range(g.shape[0]):
            y[i] += x[min(max(i + k, 3), x.shape[0] - 1)] * g[k]
    return y
