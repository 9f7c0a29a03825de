"""The kernels of the rows in the form that MindSpore's AKG compiles, with the same parameters and results.

Sums are accumulated in elements of tensors, as in AKG's documents: with scalars its results are wrong. The
elements are cleared explicitly, and there is no atan2, which AKG lacks on CPUs.
"""
# ruff: noqa: F821, C901 - the language's words are not names of this module; loop nests in a row

from .npbench.permutes import permute_0213, transpose  # noqa: F401 - AKG compiles these as they are


def arc_distance(theta_1, phi_1, theta_2, phi_2):
    d = output_tensor(theta_1.shape, theta_1.dtype)
    for i in range(theta_1.shape[0]):
        up = sin((theta_2[i] - theta_1[i]) * 0.5)
        along = sin((phi_2[i] - phi_1[i]) * 0.5)
        chord = up * up + cos(theta_1[i]) * cos(theta_2[i]) * along * along
        d[i] = atan(sqrt(chord / (1.0 - chord))) * 2.0
    return d


def chain(x, y, scale):
    z = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            t = min(max(scale * x[i, j] + y[i, j], -1.0), 1.0)
            z[i, j] = t * abs(t) + 0.5 * x[i, j]
    return z


def bias_gelu(x, bias, residual):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            t = x[i, j] + bias[j]
            y[i, j] = residual[i, j] + 0.5 * t * (1.0 + tanh(0.7978845608028654 * (t + 0.044715 * t * t * t)))
    return y


def gather(x, index):
    y = output_tensor((index.shape[0], x.shape[1]), x.dtype)
    for i in range(index.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[index[i], j]
    return y


def softmax(x):
    y = output_tensor(x.shape, x.dtype)
    top = allocate((x.shape[0], x.shape[1], x.shape[2]), x.dtype)
    total = allocate((x.shape[0], x.shape[1], x.shape[2]), x.dtype)
    bent = allocate(x.shape, x.dtype)
    for b in range(x.shape[0]):
        for h in range(x.shape[1]):
            for i in range(x.shape[2]):
                top[b, h, i] = -3.0e38
                for j in range(x.shape[3]):
                    top[b, h, i] = max(top[b, h, i], x[b, h, i, j])
    for b in range(x.shape[0]):
        for h in range(x.shape[1]):
            for i in range(x.shape[2]):
                for j in range(x.shape[3]):
                    bent[b, h, i, j] = exp(x[b, h, i, j] - top[b, h, i])
    for b in range(x.shape[0]):
        for h in range(x.shape[1]):
            for i in range(x.shape[2]):
                total[b, h, i] = 0.0
                for j in range(x.shape[3]):
                    total[b, h, i] = total[b, h, i] + bent[b, h, i, j]
    for b in range(x.shape[0]):
        for h in range(x.shape[1]):
            for i in range(x.shape[2]):
                for j in range(x.shape[3]):
                    y[b, h, i, j] = bent[b, h, i, j] / total[b, h, i]
    return y


def layernorm(x, scale, shift, eps):
    y = output_tensor(x.shape, x.dtype)
    total = allocate((x.shape[0],), x.dtype)
    squares = allocate((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        total[i] = 0.0
        for j in range(x.shape[1]):
            total[i] = total[i] + x[i, j]
    for i in range(x.shape[0]):
        squares[i] = 0.0
        for j in range(x.shape[1]):
            squares[i] = squares[i] + (x[i, j] - total[i] / x.shape[1]) * (x[i, j] - total[i] / x.shape[1])
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            factor = 1.0 / sqrt(squares[i] / x.shape[1] + eps)
            y[i, j] = (x[i, j] - total[i] / x.shape[1]) * factor * scale[j] + shift[j]
    return y


def rms_norm(x, scale, eps):
    y = output_tensor(x.shape, x.dtype)
    squares = allocate((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        squares[i] = 0.0
        for j in range(x.shape[1]):
            squares[i] = squares[i] + x[i, j] * x[i, j]
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * scale[j] / sqrt(squares[i] / x.shape[1] + eps)
    return y


def atax(a, x):
    y = output_tensor((a.shape[1],), a.dtype)
    s = allocate((a.shape[0],), a.dtype)
    for j in range(a.shape[1]):
        y[j] = 0.0
    for i in range(a.shape[0]):
        s[i] = 0.0
        for j in range(a.shape[1]):
            s[i] = s[i] + a[i, j] * x[j]
        for j in range(a.shape[1]):
            y[j] = y[j] + a[i, j] * s[i]
    return y


def gemver(a, u1, v1, u2, v2, y, z, alpha, beta):
    x = output_tensor((a.shape[0],), a.dtype)
    w = output_tensor((a.shape[0],), a.dtype)
    for i in range(a.shape[0]):
        for j in range(a.shape[0]):
            a[i, j] = a[i, j] + u1[i] * v1[j] + u2[i] * v2[j]
    for i in range(a.shape[0]):
        x[i] = z[i]
        for j in range(a.shape[0]):
            x[i] = x[i] + a[j, i] * y[j] * beta
    for i in range(a.shape[0]):
        w[i] = 0.0
        for j in range(a.shape[0]):
            w[i] = w[i] + a[i, j] * x[j] * alpha
    return a, x, w


def gesummv(a, b, x, alpha, beta):
    y = output_tensor((a.shape[0],), a.dtype)
    for i in range(a.shape[0]):
        y[i] = 0.0
        for j in range(a.shape[0]):
            y[i] = y[i] + (a[i, j] * alpha + b[i, j] * beta) * x[j]
    return y


def column_sums(x):
    y = output_tensor((x.shape[1],), x.dtype)
    for j in range(x.shape[1]):
        y[j] = 0.0
        for i in range(x.shape[0]):
            y[j] = y[j] + x[i, j]
    return y


def go_fast(a):
    out = output_tensor(a.shape, a.dtype)
    bent = allocate((a.shape[0],), a.dtype)
    trace = allocate((1,), a.dtype)
    for i in range(a.shape[0]):
        bent[i] = tanh(a[i, i])
    for k in range(1):
        trace[k] = 0.0
        for i in range(a.shape[0]):
            trace[k] = trace[k] + bent[i]
    for i in range(a.shape[0]):
        for j in range(a.shape[0]):
            out[i, j] = a[i, j] + trace[0]
    return out


def matmul(a, b):
    c = output_tensor((a.shape[0], b.shape[1]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            c[i, j] = 0.0
            for k in range(a.shape[1]):
                c[i, j] = c[i, j] + a[i, k] * b[k, j]
    return c


def conv2d_bias(x, weight, bias):
    ho = x.shape[1] - weight.shape[0] + 1
    wo = x.shape[2] - weight.shape[1] + 1
    y = output_tensor((x.shape[0], ho, wo, weight.shape[3]), x.dtype)
    for n in range(x.shape[0]):
        for h in range(ho):
            for w in range(wo):
                for o in range(weight.shape[3]):
                    y[n, h, w, o] = bias[o]
                    for p in range(weight.shape[0]):
                        for q in range(weight.shape[1]):
                            for c in range(weight.shape[2]):
                                y[n, h, w, o] = y[n, h, w, o] + x[n, h + p, w + q, c] * weight[p, q, c, o]
    return y


def doitgen(a, c4):
    out = output_tensor(a.shape, a.dtype)
    for r in range(a.shape[0]):
        for q in range(a.shape[1]):
            for p in range(a.shape[2]):
                out[r, q, p] = 0.0
                for k in range(a.shape[2]):
                    out[r, q, p] = out[r, q, p] + a[r, q, k] * c4[k, p]
    return out


def syrk(a, c, alpha, beta):
    for i in range(a.shape[0]):
        for j in range(i + 1):
            c[i, j] = c[i, j] * beta
            for k in range(a.shape[1]):
                c[i, j] = c[i, j] + a[i, k] * a[j, k] * alpha
    return c


def covariance(data):
    mean = allocate((data.shape[1],), data.dtype)
    centred = allocate(data.shape, data.dtype)
    cov = output_tensor((data.shape[1], data.shape[1]), data.dtype)
    for j in range(data.shape[1]):
        mean[j] = 0.0
    for i in range(data.shape[0]):
        for j in range(data.shape[1]):
            mean[j] = mean[j] + data[i, j] / data.shape[0]
    for i in range(data.shape[0]):
        for j in range(data.shape[1]):
            centred[i, j] = data[i, j] - mean[j]
    for i in range(data.shape[1]):
        for j in range(i, data.shape[1]):
            cov[i, j] = 0.0
            for k in range(data.shape[0]):
                cov[i, j] = cov[i, j] + centred[k, i] * centred[k, j] / (data.shape[0] - 1)
            cov[j, i] = cov[i, j]
    return cov


def jacobi_2d(a, b, tsteps):
    for _ in range(tsteps):
        for i in range(1, a.shape[0] - 1):
            for j in range(1, a.shape[0] - 1):
                b[i, j] = (a[i, j] + a[i, j - 1] + a[i, j + 1] + a[i + 1, j] + a[i - 1, j]) * 0.2
        for i in range(1, a.shape[0] - 1):
            for j in range(1, a.shape[0] - 1):
                a[i, j] = (b[i, j] + b[i, j - 1] + b[i, j + 1] + b[i + 1, j] + b[i - 1, j]) * 0.2
    return a, b


def heat_3d(a, b, tsteps):
    for _ in range(tsteps):
        for i in range(1, a.shape[0] - 1):
            for j in range(1, a.shape[0] - 1):
                for k in range(1, a.shape[0] - 1):
                    b[i, j, k] = (
                        0.125 * (a[i + 1, j, k] - 2.0 * a[i, j, k] + a[i - 1, j, k])
                        + 0.125 * (a[i, j + 1, k] - 2.0 * a[i, j, k] + a[i, j - 1, k])
                        + 0.125 * (a[i, j, k + 1] - 2.0 * a[i, j, k] + a[i, j, k - 1])
                        + a[i, j, k]
                    )
        for i in range(1, a.shape[0] - 1):
            for j in range(1, a.shape[0] - 1):
                for k in range(1, a.shape[0] - 1):
                    a[i, j, k] = (
                        0.125 * (b[i + 1, j, k] - 2.0 * b[i, j, k] + b[i - 1, j, k])
                        + 0.125 * (b[i, j + 1, k] - 2.0 * b[i, j, k] + b[i, j - 1, k])
                        + 0.125 * (b[i, j, k + 1] - 2.0 * b[i, j, k] + b[i, j, k - 1])
                        + b[i, j, k]
                    )
    return a, b


def fdtd_2d(ex, ey, hz, source):
    for t in range(source.shape[0]):
        for j in range(hz.shape[1]):
            ey[0, j] = source[t]
        for i in range(1, hz.shape[0]):
            for j in range(hz.shape[1]):
                ey[i, j] = ey[i, j] - 0.5 * (hz[i, j] - hz[i - 1, j])
        for i in range(hz.shape[0]):
            for j in range(1, hz.shape[1]):
                ex[i, j] = ex[i, j] - 0.5 * (hz[i, j] - hz[i, j - 1])
        for i in range(hz.shape[0] - 1):
            for j in range(hz.shape[1] - 1):
                hz[i, j] = hz[i, j] - 0.7 * (ex[i, j + 1] - ex[i, j] + ey[i + 1, j] - ey[i, j])
    return ex, ey, hz


def hdiff(field, coefficient):
    lap = allocate((coefficient.shape[0] + 2, coefficient.shape[1] + 2, coefficient.shape[2]), field.dtype)
    flx = allocate((coefficient.shape[0] + 1, coefficient.shape[1], coefficient.shape[2]), field.dtype)
    fly = allocate((coefficient.shape[0], coefficient.shape[1] + 1, coefficient.shape[2]), field.dtype)
    out = output_tensor(coefficient.shape, field.dtype)
    for i in range(coefficient.shape[0] + 2):
        for j in range(coefficient.shape[1] + 2):
            for k in range(coefficient.shape[2]):
                lap[i, j, k] = field[i + 1, j + 1, k] * 4.0 - (
                    field[i + 2, j + 1, k] + field[i, j + 1, k] + field[i + 1, j + 2, k] + field[i + 1, j, k]
                )
    for i in range(coefficient.shape[0] + 1):
        for j in range(coefficient.shape[1]):
            for k in range(coefficient.shape[2]):
                across = lap[i + 1, j + 1, k] - lap[i, j + 1, k]
                slope = field[i + 2, j + 2, k] - field[i + 1, j + 2, k]
                flx[i, j, k] = 0.0 if across * slope > 0.0 else across
    for i in range(coefficient.shape[0]):
        for j in range(coefficient.shape[1] + 1):
            for k in range(coefficient.shape[2]):
                along = lap[i + 1, j + 1, k] - lap[i + 1, j, k]
                slant = field[i + 2, j + 2, k] - field[i + 2, j + 1, k]
                fly[i, j, k] = 0.0 if along * slant > 0.0 else along
    for i in range(coefficient.shape[0]):
        for j in range(coefficient.shape[1]):
            for k in range(coefficient.shape[2]):
                out[i, j, k] = field[i + 2, j + 2, k] - coefficient[i, j, k] * (
                    flx[i + 1, j, k] - flx[i, j, k] + fly[i, j + 1, k] - fly[i, j, k]
                )
    return out


def vadv(tendency, u, wind, position, forcing, rate):
    ccol = allocate(u.shape, u.dtype)
    dcol = allocate(u.shape, u.dtype)
    state = allocate(u.shape, u.dtype)
    top = u.shape[2] - 1
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            first = (wind[i + 1, j, 1] + wind[i, j, 1]) * 0.125
            right = position[i, j, 0] * rate + forcing[i, j, 0] + tendency[i, j, 0]
            ccol[i, j, 0] = first / (rate - first)
            dcol[i, j, 0] = (right - first * (u[i, j, 1] - u[i, j, 0])) / (rate - first)
            for k in range(1, u.shape[2] - 1):
                low = (wind[i + 1, j, k] + wind[i, j, k]) * -0.125
                high = (wind[i + 1, j, k + 1] + wind[i, j, k + 1]) * 0.125
                drift = low * (u[i, j, k - 1] - u[i, j, k]) + high * (u[i, j, k + 1] - u[i, j, k])
                value = position[i, j, k] * rate + forcing[i, j, k] + tendency[i, j, k] - drift
                scale = 1.0 / (rate - low - high - ccol[i, j, k - 1] * low)
                ccol[i, j, k] = high * scale
                dcol[i, j, k] = (value - dcol[i, j, k - 1] * low) * scale
            last = (wind[i + 1, j, top] + wind[i, j, top]) * -0.125
            given = position[i, j, top] * rate + forcing[i, j, top] + tendency[i, j, top]
            whole = given - last * (u[i, j, top - 1] - u[i, j, top])
            state[i, j, top] = (whole - dcol[i, j, top - 1] * last) / (
                rate - last - ccol[i, j, top - 1] * last
            )
            tendency[i, j, top] = (state[i, j, top] - position[i, j, top]) * rate
            for k in range(top - 1, -1, -1):
                state[i, j, k] = dcol[i, j, k] - ccol[i, j, k] * state[i, j, k + 1]
                tendency[i, j, k] = (state[i, j, k] - position[i, j, k]) * rate
    return tendency
