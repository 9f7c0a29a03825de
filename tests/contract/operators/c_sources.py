"""Kernels from C source: elementwise with an attribute, a rule that is an operator, several inputs."""

import pathlib

import numpy as np

import polyop

KERNELS = pathlib.Path(__file__).parents[2] / "sources" / "kernels.c"


def kernel(name):
    return polyop.source(KERNELS, function=name)


cube = polyop.operator(
    "contract::cube(Tensor x, float a=1.0) -> Tensor",
    kernel("cube"),
    infer="x",
    gradient=lambda x, a, out, dout: (3 * a * x**2 * dout, None),
    batch="elementwise",
    reference=lambda x, a: a * x**3,
)
square_grad = polyop.operator(
    "contract::square_grad(Tensor x, Tensor out, Tensor dout) -> Tensor",
    kernel("square_grad"),
    infer="x",
    reference=lambda x, out, dout: 2 * x * dout,
)
square = polyop.operator(
    "contract::square(Tensor x) -> Tensor",
    kernel("square"),
    infer="x",
    gradient=lambda x, out, dout: (square_grad(x, out, dout),),
    reference=lambda x: x * x,
)
gather = polyop.operator(
    "contract::gather(Tensor x, Tensor index) -> Tensor",
    kernel("gather"),
    infer=lambda x, index: polyop.Spec(index.shape, x.dtype, x.device),
    reference=lambda x, index: x[index],
)
polyop_samples = {
    "contract::cube": (np.linspace(0.5, 2, 12).reshape(3, 4), 2.0),
    "contract::gather": (np.linspace(-1, 1, 7, dtype=np.float32), np.array([6, 0, 3, 3], np.int64)),
}
