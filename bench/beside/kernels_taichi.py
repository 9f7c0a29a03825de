"""The problems in Taichi, with fields of ``needs_grad`` and ``kernel.grad()``.

https://docs.taichi-lang.org/docs/differentiable_programming gives ``kernel.grad()`` for a result that is more
than one number; ``ti.ad.Tape`` calls the same. ``..._other`` keeps that page's rules: no element is written
after it was read, and sums go into fields by ``+=``.
"""
# Annotations are objects here: Taichi reads them.

import os

import taichi as ti

ti.init(ti.cpu, cpu_max_num_threads=1, ad_stack_size=int(os.environ.get("BESIDE_AD_STACK_SIZE", "2048")))

EPSILON, SOFTENING, TOLERANCE = 1e-5, 0.01, 1e-3


def field(shape, values=None):
    x = ti.field(ti.f32, shape, needs_grad=True)
    if values is not None:
        x.from_numpy(values)
    return x


def calls(kernels, fields, count, weight):
    """Return the calls; the first ``count`` fields are inputs, the last is the result."""
    y, given = fields[-1], weight_of(fields[-1], weight)

    def forward():
        for kernel, arguments in kernels:
            kernel(*arguments)
        return y

    def gradient():
        for x in fields:
            x.grad.fill(0)
        forward()
        y.grad.copy_from(given)
        for kernel, arguments in reversed(kernels):
            kernel.grad(*arguments)
        return [x.grad for x in fields[:count]]

    return forward, gradient


def weight_of(y, weight):
    given = (
        ti.Vector.field(3, ti.f32, y.shape) if isinstance(y, ti.MatrixField) else ti.field(ti.f32, y.shape)
    )
    given.from_numpy(weight)
    return given


@ti.kernel
def rms_norm_kernel(x: ti.template(), gain: ti.template(), y: ti.template()):
    for i in range(x.shape[0]):
        total = 0.0
        for j in range(x.shape[1]):
            total += x[i, j] * x[i, j]
        scale = ti.rsqrt(total / x.shape[1] + EPSILON)
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * scale * gain[j]


def rms_norm(x, gain, weight):
    fields = field(x.shape, x), field(gain.shape, gain), field(x.shape)
    return calls([(rms_norm_kernel, fields)], fields, 2, weight)


@ti.kernel
def clear_kernel(total: ti.template()):
    for i in total:
        total[i] = 0.0


@ti.kernel
def squares_kernel(x: ti.template(), total: ti.template()):
    for i, j in x:
        total[i] += x[i, j] * x[i, j]


@ti.kernel
def scale_kernel(x: ti.template(), gain: ti.template(), total: ti.template(), y: ti.template()):
    for i, j in x:
        y[i, j] = x[i, j] * ti.rsqrt(total[i] / x.shape[1] + EPSILON) * gain[j]


def rms_norm_other(x, gain, weight):
    x, gain, total, y = field(x.shape, x), field(gain.shape, gain), field(len(x)), field(x.shape)
    kernels = [(clear_kernel, (total,)), (squares_kernel, (x, total)), (scale_kernel, (x, gain, total, y))]
    return calls(kernels, (x, gain, total, y), 2, weight)


@ti.kernel
def scan_kernel(a: ti.template(), x: ti.template(), y: ti.template()):
    for j in range(x.shape[1]):
        for t in range(x.shape[0]):
            y[t, j] = x[t, j]
        for t in range(1, x.shape[0]):
            y[t, j] = ti.tanh(a[t, j] * y[t - 1, j] + y[t, j])


def scan(a, x, weight):
    fields = field(a.shape, a), field(x.shape, x), field(x.shape)
    return calls([(scan_kernel, fields)], fields, 2, weight)


@ti.kernel
def start_kernel(x: ti.template(), y: ti.template()):
    for j in range(x.shape[1]):
        y[0, j] = x[0, j]


@ti.kernel
def steps_kernel(a: ti.template(), x: ti.template(), y: ti.template()):
    for j in range(x.shape[1]):
        for t in range(1, x.shape[0]):
            y[t, j] = ti.tanh(a[t, j] * y[t - 1, j] + x[t, j])


def scan_other(a, x, weight):
    a, x, y = fields = field(a.shape, a), field(x.shape, x), field(x.shape)
    return calls([(start_kernel, (x, y)), (steps_kernel, (a, x, y))], fields, 2, weight)


@ti.kernel
def max_pool_kernel(x: ti.template(), y: ti.template()):
    for i, j in y:
        best = x[2 * i, 2 * j]
        for p in range(3):
            for q in range(3):
                best = ti.max(best, x[2 * i + p, 2 * j + q])
        y[i, j] = best


def max_pool(x, weight):
    fields = field(x.shape, x), field(weight.shape)
    return calls([(max_pool_kernel, fields)], fields, 1, weight)


@ti.kernel
def max_pool_other_kernel(x: ti.template(), y: ti.template()):
    for i, j in y:
        best = x[2 * i, 2 * j]
        for p, q in ti.static(ti.ndrange(3, 3)):
            best = ti.max(best, x[2 * i + p, 2 * j + q])
        y[i, j] = best


def max_pool_other(x, weight):
    fields = field(x.shape, x), field(weight.shape)
    return calls([(max_pool_other_kernel, fields)], fields, 1, weight)


def vectors(shape, values=None):
    x = ti.Vector.field(3, ti.f32, shape, needs_grad=True)
    if values is not None:
        x.from_numpy(values)
    return x


@ti.kernel
def n_body_kernel(p: ti.template(), m: ti.template(), f: ti.template()):
    for i in p:
        force = ti.Vector([0.0, 0.0, 0.0])
        for j in range(p.shape[0]):
            d = p[j] - p[i]
            s = ti.rsqrt(d.dot(d) + SOFTENING)
            force += m[j] * s * s * s * d
        f[i] = force


def n_body(p, m, weight):
    fields = vectors(len(p), p), field(m.shape, m), vectors(len(p))
    return calls([(n_body_kernel, fields)], fields, 2, weight)


@ti.kernel
def zero_kernel(f: ti.template()):
    for i in f:
        f[i] = ti.Vector([0.0, 0.0, 0.0])


@ti.kernel
def pairs_kernel(p: ti.template(), m: ti.template(), f: ti.template()):
    for i, j in ti.ndrange(p.shape[0], p.shape[0]):
        d = p[j] - p[i]
        s = ti.rsqrt(d.dot(d) + SOFTENING)
        f[i] += m[j] * s * s * s * d


def n_body_other(p, m, weight):
    p, m, f = fields = vectors(len(p), p), field(m.shape, m), vectors(len(p))
    return calls([(zero_kernel, (f,)), (pairs_kernel, fields)], fields, 2, weight)


@ti.kernel
def overwritten_kernel(x: ti.template(), w: ti.template(), buffer: ti.template(), y: ti.template()):
    for i in x:
        buffer[i] = x[i] * w[i]
        square = buffer[i] * buffer[i]
        buffer[i] = ti.exp(-buffer[i])
        y[i] = square + buffer[i] * x[i]


def overwritten(x, w, weight):
    fields = field(x.shape, x), field(x.shape, w), field(x.shape), field(x.shape)
    return calls([(overwritten_kernel, fields)], fields, 2, weight)


@ti.kernel
def overwritten_other_kernel(x: ti.template(), w: ti.template(), y: ti.template()):
    for i in x:
        product = x[i] * w[i]
        y[i] = product * product + ti.exp(-product) * x[i]


def overwritten_other(x, w, weight):
    fields = field(x.shape, x), field(x.shape, w), field(x.shape)
    return calls([(overwritten_other_kernel, fields)], fields, 2, weight)


@ti.kernel
def newton_kernel(x: ti.template(), y: ti.template()):
    for i in x:
        r = 1.0
        while abs(r * r - x[i]) > TOLERANCE * x[i]:
            r = 0.5 * (r + x[i] / r)
        y[i] = r


def newton(x, weight):
    fields = field(x.shape, x), field(x.shape)
    return calls([(newton_kernel, fields)], fields, 1, weight)


@ti.kernel
def newton_other_kernel(x: ti.template(), y: ti.template()):
    for i in x:
        r = 1.0
        for _ in ti.static(range(12)):
            if abs(r * r - x[i]) > TOLERANCE * x[i]:
                r = 0.5 * (r + x[i] / r)
        y[i] = r


def newton_other(x, weight):
    fields = field(x.shape, x), field(x.shape)
    return calls([(newton_other_kernel, fields)], fields, 1, weight)
