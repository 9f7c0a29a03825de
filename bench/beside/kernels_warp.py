"""The problems in NVIDIA Warp, differentiated by ``wp.Tape``.

``..._other`` is written as https://nvidia.github.io/warp/v1.19/user_guide/differentiability.html advises:
arrays in place of values of dynamic loops, static loops, and no array written after it was read.

Warp compiles a module at a time; ``module="unique"`` makes each kernel one, so that the time of a first call
is that of the kernel's.
"""
# ruff: noqa: UP018 - ``float(0.0)`` is a variable in Warp, 0.0 a constant
# Annotations are objects here: Warp reads them.

import warp as wp

wp.init()

EPSILON, SOFTENING, TOLERANCE = wp.constant(1e-5), wp.constant(0.01), wp.constant(1e-3)


def array(x):
    dtype = wp.vec3 if x.ndim == 2 and x.shape[1] == 3 else wp.float32
    return wp.array(x, dtype=dtype, requires_grad=True)


def calls(launch, inputs, y, weight):
    weight = wp.array(weight, dtype=y.dtype)

    def forward():
        launch()
        return y

    def gradient():
        with wp.Tape() as tape:
            launch()
        tape.zero()
        tape.backward(grads={y: weight})
        return [x.grad for x in inputs]

    return forward, gradient


@wp.kernel(module="unique")
def rms_norm_kernel(x: wp.array2d[float], gain: wp.array[float], y: wp.array2d[float]):
    i = wp.tid()
    total = float(0.0)
    for j in range(x.shape[1]):
        total += x[i, j] * x[i, j]
    scale = 1.0 / wp.sqrt(total / float(x.shape[1]) + EPSILON)
    for j in range(x.shape[1]):
        y[i, j] = x[i, j] * scale * gain[j]


def rms_norm(x, gain, weight):
    x, gain = array(x), array(gain)
    y = wp.zeros_like(x)
    return calls(lambda: wp.launch(rms_norm_kernel, len(x), [x, gain], [y]), (x, gain), y, weight)


@wp.kernel(module="unique")
def squares_kernel(x: wp.array2d[float], total: wp.array[float]):
    i = wp.tid()
    square = float(0.0)
    for j in range(x.shape[1]):
        square += x[i, j] * x[i, j]
    total[i] = square


@wp.kernel(module="unique")
def scale_kernel(x: wp.array2d[float], gain: wp.array[float], total: wp.array[float], y: wp.array2d[float]):
    i = wp.tid()
    scale = 1.0 / wp.sqrt(total[i] / float(x.shape[1]) + EPSILON)
    for j in range(x.shape[1]):
        y[i, j] = x[i, j] * scale * gain[j]


def rms_norm_other(x, gain, weight):
    x, gain = array(x), array(gain)
    total, y = wp.zeros(len(x), dtype=float, requires_grad=True), wp.zeros_like(x)

    def launch():
        wp.launch(squares_kernel, len(x), [x], [total])
        wp.launch(scale_kernel, len(x), [x, gain, total], [y])

    return calls(launch, (x, gain), y, weight)


@wp.kernel(module="unique")
def scan_kernel(a: wp.array2d[float], x: wp.array2d[float], y: wp.array2d[float]):
    j = wp.tid()
    for t in range(x.shape[0]):
        y[t, j] = x[t, j]
    for t in range(1, x.shape[0]):
        y[t, j] = wp.tanh(a[t, j] * y[t - 1, j] + y[t, j])


def scan(a, x, weight):
    a, x = array(a), array(x)
    y = wp.zeros_like(x)
    return calls(lambda: wp.launch(scan_kernel, x.shape[1], [a, x], [y]), (a, x), y, weight)


@wp.kernel(module="unique")
def scan_other_kernel(a: wp.array2d[float], x: wp.array2d[float], y: wp.array2d[float]):
    j = wp.tid()
    y[0, j] = x[0, j]
    for t in range(1, x.shape[0]):
        y[t, j] = wp.tanh(a[t, j] * y[t - 1, j] + x[t, j])


def scan_other(a, x, weight):
    a, x = array(a), array(x)
    y = wp.zeros_like(x)
    return calls(lambda: wp.launch(scan_other_kernel, x.shape[1], [a, x], [y]), (a, x), y, weight)


@wp.kernel(module="unique")
def max_pool_kernel(x: wp.array2d[float], y: wp.array2d[float]):
    i, j = wp.tid()
    best = x[2 * i, 2 * j]
    for p in range(3):
        for q in range(3):
            best = wp.max(best, x[2 * i + p, 2 * j + q])
    y[i, j] = best


def max_pool(x, weight):
    x = array(x)
    y = wp.zeros(weight.shape, dtype=float, requires_grad=True)
    return calls(lambda: wp.launch(max_pool_kernel, y.shape, [x], [y]), (x,), y, weight)


@wp.kernel(module="unique")
def n_body_kernel(p: wp.array[wp.vec3], m: wp.array[float], f: wp.array[wp.vec3]):
    i = wp.tid()
    force = wp.vec3()
    for j in range(p.shape[0]):
        d = p[j] - p[i]
        s = 1.0 / wp.sqrt(wp.dot(d, d) + SOFTENING)
        force += m[j] * s * s * s * d
    f[i] = force


def n_body(p, m, weight):
    p, m = array(p), array(m)
    f = wp.zeros_like(p)
    return calls(lambda: wp.launch(n_body_kernel, len(p), [p, m], [f]), (p, m), f, weight)


@wp.kernel(module="unique")
def overwritten_kernel(x: wp.array[float], w: wp.array[float], buffer: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    buffer[i] = x[i] * w[i]
    square = buffer[i] * buffer[i]
    buffer[i] = wp.exp(-buffer[i])
    y[i] = square + buffer[i] * x[i]


def overwritten(x, w, weight):
    x, w = array(x), array(w)
    buffer, y = wp.zeros_like(x), wp.zeros_like(x)
    return calls(lambda: wp.launch(overwritten_kernel, len(x), [x, w], [buffer, y]), (x, w), y, weight)


@wp.kernel(module="unique")
def overwritten_other_kernel(x: wp.array[float], w: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    product = x[i] * w[i]
    y[i] = product * product + wp.exp(-product) * x[i]


def overwritten_other(x, w, weight):
    x, w = array(x), array(w)
    y = wp.zeros_like(x)
    return calls(lambda: wp.launch(overwritten_other_kernel, len(x), [x, w], [y]), (x, w), y, weight)


@wp.kernel(module="unique")
def newton_kernel(x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    r = float(1.0)
    while wp.abs(r * r - x[i]) > TOLERANCE * x[i]:
        r = 0.5 * (r + x[i] / r)
    y[i] = r


def newton(x, weight):
    x = array(x)
    y = wp.zeros_like(x)
    return calls(lambda: wp.launch(newton_kernel, len(x), [x], [y]), (x,), y, weight)


@wp.kernel(module="unique")
def newton_other_kernel(x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    r = float(1.0)
    for _ in range(12):
        if wp.abs(r * r - x[i]) > TOLERANCE * x[i]:
            r = 0.5 * (r + x[i] / r)
    y[i] = r


def newton_other(x, weight):
    x = array(x)
    y = wp.zeros_like(x)
    return calls(lambda: wp.launch(newton_other_kernel, len(x), [x], [y]), (x,), y, weight)
