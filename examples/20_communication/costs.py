"""Bytes per device of a linear layer, a norm and a stencil, in several layouts, on any number of devices."""

# ruff: noqa: F821 - the words of the loop language

import polyop

TOKENS, INNER, OUTER, SIDE = 2048, 4096, 11008, 4096


# [linear]
linear = polyop.operator(
    "costs::linear(Tensor x, Tensor w) -> Tensor",
    lambda x, w: x @ w,
    dims="b i, i o -> b o",
    parallel="b o",
    sum="i",
    gradient=lambda x, w, y, dy: (dy @ w.T, x.T @ dy),
)

HYBRID = linear.communication(
    {"data": 128, "model": 8},
    shapes=[(TOKENS, INNER), (INNER, OUTER)],
    placements=[("data", None), (None, "model")],
    dtype="bfloat16",
)
# [/linear]


@polyop.kernel
def norm(x, w, eps: float = 1e-5):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        total = 0.0
        for j in range(x.shape[1]):
            total += x[i, j] * x[i, j]
        scale = 1.0 / sqrt(total / x.shape[1] + eps)
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * scale * w[j]
    return y


@polyop.kernel
def stencil(u):
    v = output_tensor(u.shape, u.dtype)
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            if i == 0 or j == 0 or i == u.shape[0] - 1 or j == u.shape[1] - 1:
                v[i, j] = u[i, j]
            else:
                v[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
    return v


LAYER = {"shapes": [(TOKENS, INNER), (INNER, OUTER)], "dtype": "bfloat16"}
WAYS = {
    "linear, data parallel": (linear, LAYER, [("d", None), None]),
    "linear, row parallel": (linear, LAYER, [(None, "d"), ("d", None)]),
    "linear, column parallel": (linear, LAYER, [None, (None, "d")]),
    "stencil, rows": (stencil, {"shapes": [(SIDE, SIDE)]}, [("d", None)]),
    "norm, data parallel": (norm, {"shapes": [(TOKENS, INNER), (INNER,)]}, [("d", None), None]),
    "stencil, blocks": (stencil, {"shapes": [(SIDE, SIDE)]}, [("d", "e")]),
}
"""Name -> operator, its shapes, the layouts of its tensors on the mesh axes d and e."""


def received(way, devices):
    """Return the bytes that each device receives in a forward and a backward pass."""
    operator, sizes, layouts = WAYS[way]
    second = 1
    while way == "stencil, blocks" and second * second < devices:
        second *= 2
    mesh = {"d": devices // second, "e": second}
    return operator.communication(mesh, placements=layouts, **sizes).bytes
