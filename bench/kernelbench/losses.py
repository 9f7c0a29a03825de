"""Losses: one number for a batch of rows."""
# ruff: noqa: F821 - the language's words are not names of this module

from __future__ import annotations


def squared_error(x, target):
    loss = output_tensor((), x.dtype)
    total = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            total += (x[i, j] - target[i, j]) ** 2
    loss[()] = total / (x.shape[0] * x.shape[1])
    return loss


def cross_entropy(x, label):
    loss = output_tensor((), x.dtype)
    total = 0.0
    for i in range(x.shape[0]):
        top = x[i, 0]
        for j in range(1, x.shape[1]):
            top = max(top, x[i, j])
        exponentials = 0.0
        for j in range(x.shape[1]):
            exponentials += exp(x[i, j] - top)
        total += log(exponentials) + top - x[i, label[i]]
    loss[()] = total / x.shape[0]
    return loss


def huber(x, target):
    loss = output_tensor((), x.dtype)
    total = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            d = abs(x[i, j] - target[i, j])
            if d < 1:
                total += 0.5 * d * d
            else:
                total += d - 0.5
    loss[()] = total / (x.shape[0] * x.shape[1])
    return loss


def kl_divergence(p, target):
    loss = output_tensor((), p.dtype)
    total = 0.0
    for i in range(p.shape[0]):
        for j in range(p.shape[1]):
            if target[i, j] > 0:
                total += target[i, j] * (log(target[i, j]) - log(p[i, j]))
    loss[()] = total / p.shape[0]
    return loss


def triplet_margin(anchor, positive, negative, margin: float = 1.0, eps: float = 1e-6):
    loss = output_tensor((), anchor.dtype)
    total = 0.0
    for i in range(anchor.shape[0]):
        near = 0.0
        far = 0.0
        for j in range(anchor.shape[1]):
            near += (anchor[i, j] - positive[i, j] + eps) ** 2
            far += (anchor[i, j] - negative[i, j] + eps) ** 2
        total += max(sqrt(near) - sqrt(far) + margin, 0)
    loss[()] = total / anchor.shape[0]
    return loss


def hinge(x, target):
    loss = output_tensor((), x.dtype)
    total = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            total += max(1 - x[i, j] * target[j], 0)
    loss[()] = total / (x.shape[0] * x.shape[1])
    return loss
