"""The problems as eager PyTorch, without torch.compile."""

from __future__ import annotations

import torch

EPSILON, SOFTENING, TOLERANCE = 1e-5, 0.01, 1e-3


def calls(function, inputs, weight):
    tensors = [torch.tensor(x, requires_grad=True) for x in inputs]
    plain = [x.detach() for x in tensors]
    weight = torch.from_numpy(weight)
    return lambda: function(*plain), lambda: torch.autograd.grad(function(*tensors), tensors, weight)


def rms_norm(x, gain, weight):
    return calls(lambda x, g: torch.nn.functional.rms_norm(x, g.shape, g, EPSILON), (x, gain), weight)


def scan_in_place(a, x):
    y = x.clone()
    for t in range(1, len(y)):
        y[t] = torch.tanh(a[t] * y[t - 1] + y[t])
    return y


def scan(a, x, weight):
    return calls(scan_in_place, (a, x), weight)


def scan_list(a, x):
    y = [x[0]]
    for at, xt in zip(a[1:], x[1:], strict=True):
        y.append(torch.tanh(at * y[-1] + xt))
    return torch.stack(y)


def scan_other(a, x, weight):
    return calls(scan_list, (a, x), weight)


def max_pool(x, weight):
    return calls(lambda x: torch.nn.functional.max_pool2d(x[None], 3, 2)[0], (x,), weight)


def forces(p, m):
    d = p[None, :] - p[:, None]
    s = torch.rsqrt((d * d).sum(dim=2) + SOFTENING)
    return ((m * s**3)[:, :, None] * d).sum(dim=1)


def n_body(p, m, weight):
    return calls(forces, (p, m), weight)


def with_buffer(x, w):
    buffer = x * w
    y = buffer * buffer
    buffer.neg_().exp_()
    return y + buffer * x


def overwritten(x, w, weight):
    return calls(with_buffer, (x, w), weight)


def without_buffer(x, w):
    product = x * w
    return product * product + torch.exp(-product) * x


def overwritten_other(x, w, weight):
    return calls(without_buffer, (x, w), weight)


def root(x):
    r = torch.ones_like(x)
    while (wrong := (r * r - x).abs() > TOLERANCE * x).any():
        r = torch.where(wrong, 0.5 * (r + x / r), r)
    return r


def newton(x, weight):
    return calls(root, (x,), weight)
