"""Operators and layouts for which ``op.communication`` is compared with what frameworks move."""

# ruff: noqa: F821 - the words of the loop language

import polyop

ROWS, INNER, COLUMNS = 64, 32, 16
linear = polyop.operator(
    "measured::linear(Tensor x, Tensor w) -> Tensor",
    lambda x, w: (0 * x) @ (0 * w),  # the values do not matter, and those of a fake process group are any
    dims="b i, i o -> b o",
    parallel="b o",
    sum="i",
    gradient=lambda x, w, y, d_y: (d_y @ w.T, x.T @ d_y),
)


@polyop.kernel
def norm(x, w, eps: float = 1e-5):
    out = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        total = 0.0
        for j in range(x.shape[1]):
            total += x[i, j] * x[i, j]
        scale = 1.0 / sqrt(total / x.shape[1] + eps)
        for j in range(x.shape[1]):
            out[i, j] = x[i, j] * scale * w[j]
    return out


@polyop.kernel
def smooth(x):
    out = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if i == 0 or j == 0 or i == x.shape[0] - 1 or j == x.shape[1] - 1:
                out[i, j] = x[i, j]
            else:
                out[i, j] = x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1]
    return out


@polyop.kernel
def column_sums(x):
    out = output_tensor((x.shape[1],), x.dtype)
    for j in range(x.shape[1]):
        total = 0.0
        for i in range(x.shape[0]):
            total += x[i, j]
        out[j] = total
    return out


MATRICES = [(ROWS, INNER), (INNER, COLUMNS)]
NORM = [(ROWS, INNER), (INNER,)]
PLATE = [(ROWS, INNER)]
CASES = {
    "data parallel": (linear, MATRICES, [("data",), ()]),
    "column parallel": (linear, MATRICES, [(), (None, "data")]),
    "row parallel": (linear, MATRICES, [(None, "data"), ("data",)]),
    "replicated": (linear, MATRICES, [(), ()]),
    "norm": (norm, NORM, [("data",), ()]),
    "norm along its row": (norm, NORM, [(None, "data"), ()]),
    "rows of a stencil": (smooth, PLATE, [("data",)]),
    "columns of a stencil": (smooth, PLATE, [(None, "data")]),
    "sums of split columns": (column_sums, PLATE, [("data",)]),
    "sums of whole columns": (column_sums, PLATE, [(None, "data")]),
}
"""Name -> operator, shapes, and layouts on the mesh axis ``data``."""
ON_TWO_AXES = {
    "data and column parallel": (linear, MATRICES, [("data",), (None, "model")]),
    "data and row parallel": (linear, MATRICES, [("data", "model"), ("model",)]),
    "blocks of a stencil": (smooth, PLATE, [("data", "model")]),
    "norm, one axis unused": (norm, NORM, [("data",), ()]),
}
MESHES = {2: (1, 2), 4: (2, 2), 8: (4, 2), 16: (4, 4)}
"""Devices -> the sizes of ``data`` and ``model``."""


def cases(devices):
    """Yield the name of each case, its mesh, operator, shapes and layouts."""
    for name, case in CASES.items():
        yield name, {"data": devices}, *case
    for name, case in ON_TWO_AXES.items():
        yield name, dict(zip(("data", "model"), MESHES[devices], strict=True)), *case


def by_kind(collectives):
    """Return the bytes of each kind of collective, without those of 0 bytes."""
    total = {}
    for one in collectives:
        if one.bytes:
            total[one.kind] = total.get(one.kind, 0) + one.bytes
    return total
