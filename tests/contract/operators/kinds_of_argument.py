"""Lists of tensors, absent tensors, two outputs, an argument that is written in place."""

import numpy as np

import polyop

from .c_sources import kernel

both = polyop.operator(
    "contract::both(Tensor x, Tensor y) -> (Tensor, Tensor)",
    kernel("sum_and_difference"),
    infer=lambda x, y: (x, x),
    gradient=lambda x, y, outs, douts: (douts[0] + douts[1], douts[0] - douts[1]),
    batch="elementwise",
    reference=lambda x, y: (x + y, x - y),
)
add_optional = polyop.operator(
    "contract::add_optional(Tensor x, Tensor? y=None) -> Tensor",
    kernel("add_optional"),
    infer="x",
    gradient=lambda x, y, out, dout: (dout, None if y is None else dout),
    reference=lambda x, y: x if y is None else x + y,
)
add_all = polyop.operator(
    "contract::add_all(Tensor[] xs) -> Tensor",
    kernel("add_all"),
    infer=lambda xs: xs[0],
    gradient=lambda xs, out, dout: ([dout for _ in xs],),
    reference=sum,
)
scale_ = polyop.operator(
    "contract::scale_(Tensor(a!) x, float a) -> Tensor(a!)",
    kernel("scale_in_place"),
)
line = np.linspace(-1, 1, 6, dtype=np.float32)
polyop_samples = {"contract::scale_": (line, 3.0)}
