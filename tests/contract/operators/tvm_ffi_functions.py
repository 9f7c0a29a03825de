"""A kernel that is a function of tvm-ffi, with an attribute."""

import numpy as np

import polyop
import tvm_ffi_library

scale = polyop.operator(
    "contract::scale_by_tvm_ffi(Tensor x, float factor) -> Tensor",
    f"{tvm_ffi_library.path()}:scale",
    infer="x",
    dtypes=["float32"],
    gradient=lambda x, factor, out, dout: (scale(dout, factor), None),
    batch="elementwise",
    reference=lambda x, factor: x * np.float32(factor),
)
polyop_samples = {"contract::scale_by_tvm_ffi": (np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4), 2.5)}
