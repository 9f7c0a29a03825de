"""Operators that are exported: loop kernels with derived gradients, and C++ sources."""
# ruff: noqa: F821 - output_tensor is a word of the language

import pathlib

import polyop

HERE = pathlib.Path(__file__).parent
SOURCES = HERE.parent / "sources"
SIGNATURES = {
    "exported::scale": ["float32[:,:], float", "float64[:,:]"],
    "exported::shift": ["float32[:,:], int"],
    "exported::both": ["float32[:,:], float32[:,:]"],
}


@polyop.kernel(name="exported::scale")
def scale(x, factor: float = 2.0):
    """Squares, times a factor."""
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * x[i, j] * factor
    return y


@polyop.kernel(name="exported::shift")
def shift(x, by: int = 1):
    y = output_tensor((x.shape[0] + by, x.shape[1] * 2 - 1), x.dtype)
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            y[i, j] = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i + by, j] = x[i, j] * x[i, j]
    return y


@polyop.kernel(name="exported::both")
def both(x, y):
    total = output_tensor((x.shape[0],), x.dtype)
    large = output_tensor((x.shape[0],), int32)
    for i in range(x.shape[0]):
        total[i] = 0.0
        large[i] = 0
        for j in range(x.shape[1]):
            total[i] = total[i] + x[i, j] * y[i, j]
            large[i] = large[i] + 1
    return total, large


add = polyop.operator(
    "exported::add(Tensor x, Tensor y, Tensor? z=None, *, int[] repeat=[1], float? by=None) -> Tensor",
    f"{SOURCES / 'exported_add.cc'}:AddRepeated",
    dims="... n, ... n, n -> ... n",
    dtypes=["float32"],
    attributes={"most": 3},
    gradient=lambda x, y, z, repeat, by, out, dout: (dout, dout, None, None, None),  # stays behind
)

fill_ = polyop.operator(
    "exported::fill_(Tensor(a!) x) -> Tensor(a!)",
    f"{SOURCES / 'exported_fill.cc'}:Fill",
    dtypes=["float32"],
    attributes={"value": float("inf")},
)
