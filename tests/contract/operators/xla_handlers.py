"""A kernel that is an XLA FFI handler, in C without headers of jaxlib."""

import pathlib

import numpy as np

import polyop

HANDLER = pathlib.Path(__file__).parents[2] / "support" / "xla_handlers" / "plain.c"

twice = polyop.operator(
    "contract::twice_by_handler(Tensor x) -> Tensor",
    polyop.xla_ffi(f"{HANDLER}:Twice", dtypes=["float32"]),
    gradient=lambda x, out, dout: (twice(dout),),
    batch="elementwise",
    reference=lambda x: 2 * x,
)
polyop_samples = {"contract::twice_by_handler": (np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4),)}
