"""Operators that are exported: a loop kernel with a derived gradient, and a C++ source."""
# ruff: noqa: F821 - output_tensor is a word of the language

import pathlib

import polyop

HERE = pathlib.Path(__file__).parent


@polyop.kernel(name="exported::scale")
def scale(x, factor: float = 2.0):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * x[i, j] * factor
    return y


add = polyop.operator(
    "exported::add(Tensor x, Tensor y, Tensor? z=None, *, int[] repeat=[1], float? by=None) -> Tensor",
    f"{HERE.parent / 'sources' / 'exported_add.cc'}:AddRepeated",
    dims="... n, ... n, n -> ... n",
    dtypes=["float32"],
    attributes={"most": 3},
)
