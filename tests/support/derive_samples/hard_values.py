# ruff: noqa: F821 - kernels, whose words are no names here
"""Kernels in which it is hard to tell what a value was: overwritten, carried, kept under conditions."""

CASES = []


def case(tensors, **attributes):
    """Add a kernel to the table. Its tensors: dtype, sizes, and the bound that whole numbers are below."""

    def added(function):
        CASES.append((function, tensors, attributes))
        return function

    return added


@case("float64 6")
def maximum_then_another_value(x):
    y = output_tensor((2,), x.dtype)
    m = x[0]
    for j in range(1, x.shape[0]):
        m = max(m, x[j] * x[j])
    y[0] = m * m
    m = sin(x[1])
    y[1] = m * m
    return y


@case("float64 6")
def maximum_in_memory_then_another_value(x):
    y = output_tensor((2,), x.dtype)
    m = allocate((1,), x.dtype)
    m[0] = x[0]
    for j in range(1, x.shape[0]):
        m[0] = max(m[0], x[j] * x[j])
    y[0] = m[0] * m[0]
    m[0] = sin(x[1])
    y[1] = m[0] * m[0]
    return y


@case("float64 6")
def clipped_by_a_number(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        m = x[i] * 2.0
        m = max(m, 0.0)
        y[i] = m * m
    return y


@case("float64 6")
def output_clipped(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * x[i] * x[i]
    for i in range(x.shape[0]):
        y[i] = max(y[i], 0.1)
    return y


@case("float64 6")
def output_clipped_in_a_loop(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * x[i] * x[i]
        for j in range(3):
            y[i] = min(y[i], 0.1 * j)
    return y


@case("float64 6, float64 6")
def clipped_by_what_is_constant(x, c):
    y = output_tensor(x.shape, x.dtype)
    t = allocate(x.shape, x.dtype)
    for i in range(x.shape[0]):
        t[i] = floor(c[i])
    for i in range(x.shape[0]):
        y[i] = x[i] * 3.0
        y[i] = max(y[i], t[i])
    return y


@case("float64 6")
def added_to_by_itself(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i]
    for i in range(1, x.shape[0]):
        y[i] += y[i] * y[i - 1]
    return y


@case("float64 6")
def added_to_by_itself_and_the_one_before(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i]
    for i in range(1, x.shape[0]):
        y[i] += y[i - 1] * y[i]
    return y


@case("float64 6, float64 6, int64 6 <6")
def added_to_through_an_index(x, w, idx):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i]
    for i in range(x.shape[0]):
        y[i] += y[idx[i]] * w[i]
    return y


@case("float64 6, float64 6, int64 6 <6")
def set_from_itself_and_through_an_index(x, w, idx):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i]
    for i in range(x.shape[0]):
        y[i] = y[idx[i]] * w[i] + y[i] * y[i]
    return y


@case("float64 6, float64 6, int64 6 <6")
def multiplied_through_an_index(x, w, idx):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i]
    for i in range(x.shape[0]):
        y[idx[i]] *= y[i] * w[i]
    return y


@case("float64 6, float64 6, int64 6 <6")
def adds_into_what_it_reads(x, w, idx):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i]
    for i in range(x.shape[0]):
        y[idx[i]] += y[i] * w[i] + y[i]
    return y


@case("float64 6")
def kept_only_where_it_exists(x):
    y = output_tensor(x.shape, x.dtype)
    t = allocate(x.shape, x.dtype)
    for i in range(x.shape[0]):
        t[i] = x[i]
    for i in range(x.shape[0]):
        y[i] = t[i + 1] * t[i + 1] if i < x.shape[0] - 1 else x[i]
    for i in range(x.shape[0]):
        t[i] = x[i] * 2.0
    for i in range(x.shape[0]):
        y[i] += t[i + 1] * t[i + 1] if i + 1 < x.shape[0] and t[i + 1] > 0 else x[i]
    return y


@case("float64 6, int64 6 <4")
def whole_number_carried(x, idx):
    y = output_tensor(x.shape, x.dtype)
    k = 0
    for i in range(x.shape[0]):
        k = (k + idx[i]) % x.shape[0]
        y[k] += x[k] * x[i]
    return y


@case("float64 6, int64 6 <4")
def whole_number_carried_in_memory(x, idx):
    y = output_tensor(x.shape, x.dtype)
    k = allocate((1,), "int64")
    for i in range(x.shape[0]):
        k[0] = (k[0] + idx[i]) % x.shape[0]
        if k[0] > 1:
            y[k[0]] = x[k[0]] * x[i] + y[i]
    return y


@case("float64 6, int64 6 <4")
def bounds_from_a_tensor(x, idx):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        s = 1.0
        for j in range(idx[i]):
            s = s + x[j] * x[i]
        y[i] = s * s
    return y


@case("float64 5")
def condition_overwritten_inside(x):
    y = output_tensor(x.shape, x.dtype)
    t = allocate(x.shape, x.dtype)
    for i in range(x.shape[0]):
        t[i] = x[i]
    for _k in range(3):
        for i in range(x.shape[0]):
            if t[i] > 0:
                t[i] = -t[i] * t[i]
                y[i] += t[i] * x[i]
            else:
                t[i] = t[i] * x[i]
    for i in range(x.shape[0]):
        y[i] = y[i] * t[i]
    return y


@case("float64 5")
def condition_of_a_carried_scalar(x):
    y = output_tensor(x.shape, x.dtype)
    s = 0.0
    for i in range(x.shape[0]):
        if s < x[i]:
            s = x[i] * x[i]
            if s < 1.0:
                s = s * s * x[i]
        else:
            s = s * 0.5
        y[i] = s * x[i]
    return y


@case("float64 5, float64 5")
def product_with_zeros(x, w):
    y = output_tensor((1,), x.dtype)
    y[0] = 1.0
    for i in range(x.shape[0]):
        y[0] *= max(x[i], 0.0) + w[i] * 0.0
    return y


@case("float64 5")
def triangular_products(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        p = 1.0
        for j in range(i + 1):
            p *= x[j]
        y[i] = p
    return y


@case("float64 5 4")
def maximum_scaled_in_place(x):
    y = output_tensor((5,), x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i, 0]
        for j in range(4):
            y[i] = max(y[i], x[i, j])
        y[i] = y[i] * x[i, 1]
    return y


@case("float64 5 4")
def maximum_of_maxima(x):
    y = output_tensor((1,), x.dtype)
    y[0] = -100.0
    for i in range(x.shape[0]):
        m = x[i, 0]
        for j in range(4):
            m = max(m, x[i, j] * x[i, j])
        y[0] = max(y[0], m * x[i, 0])
    return y


@case("float64 5 4")
def minimum_of_running_maxima(x):
    y = output_tensor((2,), x.dtype)
    m = x[0, 0]
    n = x[0, 0]
    for i in range(x.shape[0]):
        for j in range(4):
            m = max(m, x[i, j])
            n = min(n, x[i, j] * m)
    y[0] = m * n
    y[1] = n
    return y


@case("float64 5 4")
def maxima_so_far_of_rows(x):
    y = output_tensor((5,), x.dtype)
    m = x[0, 0]
    for i in range(x.shape[0]):
        for j in range(4):
            m = max(m, x[i, j])
        y[i] = m * x[i, 0]
    return y


@case("float64 7")
def maxima_so_far(x):
    y = output_tensor(x.shape, x.dtype)
    m = x[0]
    for i in range(x.shape[0]):
        m = max(m, x[i])
        y[i] = m
    return y


@case("float64 3")
def squared_in_a_short_loop(x):
    y = output_tensor((3,), x.dtype)
    for i in range(3):
        t = x[i]
        for _j in range(2):
            t = t * t
        y[i] = t
    return y


@case("float64 3 3")
def polynomial_in_a_short_loop(x):
    y = output_tensor((3,), x.dtype)
    for i in range(3):
        t = 0.0
        for j in range(3):
            t = t * x[i, j] + x[j, i]
        y[i] = t
    return y


@case("float64 5 4")
def two_scalars_and_a_short_loop(x):
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


@case("float64 5 4")
def two_scalars_carried(x):
    y = output_tensor((5,), x.dtype)
    c = 1.0
    for i in range(x.shape[0]):
        d = x[i, 0]
        for j in range(x.shape[1]):
            d = d * x[i, j] + c
            c = c + d * 0.1
        y[i] = d
    return y


@case("float64 5 4")
def scalar_changed_under_a_condition(x):
    y = output_tensor((5,), x.dtype)
    c = 1.0
    for i in range(x.shape[0]):
        d = x[i, 0]
        for j in range(x.shape[1]):
            d = d * x[i, j]
            if d > 1.0:
                c = c + d
        y[i] = d * c
    return y


@case("float64 5")
def added_a_function(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(5):
        y[i] = x[i]
    for i in range(5):
        y[i] += exp(x[i])
    return y


@case("float64 5, float64 5")
def multiplied_by_a_function(x, w):
    y = output_tensor(x.shape, x.dtype)
    for i in range(5):
        y[i] = x[i]
    for i in range(5):
        y[i] *= exp(w[i])
    return y


@case("float64 5")
def clipped_by_a_function(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(5):
        y[i] = x[i]
    for i in range(5):
        y[i] = max(y[i], tanh(x[i]) * 1.5)
    return y


@case("float64 6")
def condition_changed_before_its_first_use(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(6):
        y[i] = x[i]
    for i in range(6):
        if y[i // 2] < 0.1:
            for j in range(6):
                if j > 2:
                    y[j] = y[j] * x[i]
                else:
                    y[j] = y[j] + x[i] * y[j]
    return y


@case("float64 6")
def condition_of_two_halves(x):
    y = output_tensor(x.shape, x.dtype)
    t = allocate(x.shape, x.dtype)
    for i in range(3):
        t[i] = x[i] * x[i]
    for i in range(3, 6):
        t[i] = x[i] * 0.5
    for i in range(6):
        if t[i] < 0.2:
            if i >= 3:
                y[i] = x[i] * x[i]
            else:
                y[i] = x[i] * 3.0
    return y
