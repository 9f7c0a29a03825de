# ruff: noqa: F821 - kernels, whose words are no names here
"""Loop kernels with a while that counts, that may not count, and whose values an analysis gets wrong easily."""


def upwards(x, p, a: int):
    y = output_tensor(x.shape, x.dtype)
    k = 0
    while k < x.shape[0]:
        y[k] = 2 * x[k]
        k += 1
    return y


def downwards(x, p, a: int):
    y = output_tensor(x.shape, x.dtype)
    k = x.shape[0] - 1
    while k >= 0:
        y[k] = x[k] + k
        k -= 1
    return y


def by_steps_and_behind(x, p, a: int):
    y = output_tensor((x.shape[0] + 2,), x.dtype)
    k = 1
    j = 0
    while x.shape[0] > k:
        y[j] = x[k]
        k = 3 + k
        j += 1
    y[x.shape[0]] = k
    y[x.shape[0] + 1] = j
    return y


def never_and_behind(x, p, a: int):
    y = output_tensor((2,), x.dtype)
    k = 7
    while k < x.shape[0] - 100:
        y[1] += 1
        k += 2
    y[0] = k
    m = x.shape[0]
    while m <= 0:
        y[1] += 1
        m += 1
    y[1] = m
    return y


def first_and_last(x, p, a: int):
    """The step comes first, and the test last."""
    y = output_tensor(x.shape, x.dtype)
    k = -1
    while k < x.shape[0] - 1:
        k += 1
        y[k] = x[k]
    m = 0
    while True:
        y[m] += m
        m += 1
        if m >= x.shape[0]:
            break
    return y


def unequal(x, p, a: int):
    y = output_tensor(x.shape, x.dtype)
    k = 0
    while k != x.shape[0]:
        y[k] = x[k] - 1
        k += 1
    return y


def nested(x, p, a: int):
    y = output_tensor((x.shape[0], x.shape[0]), x.dtype)
    i = 0
    while i < x.shape[0]:
        j = i
        while j < x.shape[0]:
            y[i, j] = x[i] * x[j]
            j += 1
        i += 1
    return y


def two_counters(x, p, a: int):
    y = output_tensor(x.shape, x.dtype)
    i = 0
    j = x.shape[0] - 1
    while i < j:
        y[i] = x[j]
        y[j] = x[i]
        i += 1
        j -= 1
    return y


def of_an_attribute(x, p, a: int):
    y = output_tensor((1,), x.dtype)
    k = 0
    while k < a:
        y[0] += k
        k += 1
    m = 0
    while m <= a:
        y[0] += m
        m += 3
    return y


def of_elements(x, p, a: int):
    y = output_tensor((2,), x.dtype)
    k = p[0]
    while k < p[1]:
        y[0] += k
        k += 1
    y[1] = k
    return y


def of_a_step_that_is_positive(x, p, a: int):
    y = output_tensor((3,), x.dtype)
    k = 0
    while k < x.shape[0]:
        y[0] += k
        k += x.shape[0] // 4 + 1
    y[1] = k
    step = min(max(a, 1), 64)
    m = x.shape[0]
    while m > 0:
        y[2] += m
        m -= step
    return y


def with_other_exits(x, p, a: int):
    """The counter is read behind a loop that a break may leave."""
    y = output_tensor((3,), x.dtype)
    k = 0
    while k < x.shape[0] and x[k] < 5:
        y[0] += x[k]
        k += 1
    y[1] = k
    k = 0
    while True:
        k += 1
        if k > x.shape[0]:
            break
        if x[k - 1] > 5:
            break
        y[0] += x[k - 1]
    y[2] = k
    return y


def in_front_of_continue(x, p, a: int):
    y = output_tensor(x.shape, x.dtype)
    k = -1
    while k + 1 < x.shape[0]:
        k += 1
        if x[k] > 2:
            continue
        y[k] = x[k]
    return y


COUNTED = (
    upwards,
    downwards,
    by_steps_and_behind,
    never_and_behind,
    first_and_last,
    unequal,
    nested,
    two_counters,
    of_an_attribute,
    of_elements,
    of_a_step_that_is_positive,
    with_other_exits,
    in_front_of_continue,
)


def bound_changes(x, p, a: int):
    y = output_tensor(x.shape, x.dtype)
    n = x.shape[0]
    k = 0
    while k < n:
        if x[k] > 3:
            n -= 1
        y[k] = n
        k += 1
    return y


def bound_is_written(x, p, a: int):
    y = output_tensor((2,), "int64")
    y[0] = x.shape[0]
    k = 0
    while k < y[0]:
        y[0] -= 1
        y[1] += k
        k += 1
    return y


def only_sometimes(x, p, a: int):
    y = output_tensor((1,), x.dtype)
    k = 0
    t = 0
    while k < x.shape[0] and t < 100 * x[0] + 100:
        if x[k] > 2 or t > k:
            k += 1
        else:
            t += 1
            y[0] += 1
    return y


def twice(x, p, a: int):
    y = output_tensor((1,), x.dtype)
    k = 0
    while k < x.shape[0]:
        k += 1
        y[0] += x[k % x.shape[0]]
        if x[0] > 1:
            k += 1
    return y


def of_a_float(x, p, a: int):
    y = output_tensor((1,), x.dtype)
    v = 0.0
    while v < 1:
        v += 0.1
        y[0] += 1
    return y


def step_may_be_zero(x, p, a: int):
    y = output_tensor((1,), x.dtype)
    k = 1
    while k < x.shape[0]:
        y[0] += 1
        if y[0] > 4:
            break
        k += min(max(a, 0), 9)
    return y


def may_pass_its_end(x, p, a: int):
    y = output_tensor((1,), x.dtype)
    k = 0
    while k != 2 * (x.shape[0] // 2):
        y[0] += k
        k += 2
    return y


def may_wrap(x, p, a: int):
    """A counter of 8 bits that runs to a size: it wraps around, and the break is what ends the loop."""
    y = output_tensor((1,), x.dtype)
    k = p[0]
    while k < x.shape[0] + 200:
        y[0] += 1
        if k == -100:
            break
        k += 1
    return y


def merged(x, p, a: int):
    """The counter goes on where the row before has left it."""
    y = output_tensor(p.shape, x.dtype)
    k = 0
    for i in range(p.shape[0]):
        while k < x.shape[0] and k < 2 * i + 1:
            y[i] += x[k]
            k += 1
    return y


def left_by_a_while(x, p, a: int):
    y = output_tensor((2,), x.dtype)
    i = 0
    j = 0
    while i < x.shape[0]:
        while j < 2 * i:
            y[0] += j
            j += 1
        i += 1
    y[1] = j
    return y


def reset_sometimes(x, p, a: int):
    y = output_tensor((6,), x.dtype)
    k = 0
    for i in range(6):
        if i % 3 == 0:
            k = 0
        while k < 2 * i:
            y[i] += k + 1
            k += 1
    return y


def running_end(x, p, a: int):
    y = output_tensor(x.shape, x.dtype)
    k = 0
    end = 0
    for i in range(x.shape[0]):
        end += i % 2 + 1
        while k < end:
            y[i] += k
            k += 1
    return y


def set_behind_the_last_test(x, p, a: int):
    y = output_tensor((1,), x.dtype)
    t = 1.0
    for i in range(3):
        k = 7 - 5 * i
        while True:
            y[0] += t
            if k >= 5:
                break
            k += 1
            t = 0.0
    return y


def behind_or(x, p, a: int):
    y = output_tensor(x.shape, x.dtype)
    k = 0
    while True:
        y[k] += 1
        k += 1
        if k >= x.shape[0] or x[k] > 5:
            break
    return y


def narrow_and_cancelled(x, p, a: int):
    y = output_tensor((1,), x.dtype)
    k = p[0]
    j = 0
    while int(k) + j - int(k) < 200:
        y[0] += int(k)
        k += 1
        j += 1
    return y


CARRIED = (
    merged,
    left_by_a_while,
    reset_sometimes,
    running_end,
    set_behind_the_last_test,
    behind_or,
    narrow_and_cancelled,
)
"""Loops that may count or not: their values are right."""
STAY = (
    bound_changes,
    bound_is_written,
    only_sometimes,
    twice,
    of_a_float,
    step_may_be_zero,
    may_pass_its_end,
    may_wrap,
)
