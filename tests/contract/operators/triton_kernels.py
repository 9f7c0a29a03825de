"""A kernel that is a function of ``@triton.jit``, with an attribute, a size, a stride and a constant."""

import importlib.util
import warnings

import numpy as np

import polyop

polyop_samples = {}

if importlib.util.find_spec("triton") is not None:  # 286 MB, so the set-up of the tests does not install it
    import triton
    import triton.language as tl

    @triton.jit
    def scale_rows(x_ptr, out_ptr, factor, n, stride_xb, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        at = tl.program_id(0) * stride_xb + i
        tl.store(out_ptr + at, tl.load(x_ptr + at, mask=i < n) * factor, mask=i < n)

    scale = polyop.operator(
        "contract::scale_by_triton(Tensor x, float factor) -> Tensor",
        scale_rows,
        dims="b n -> b n",
        parallel="b",
        grid=lambda meta: (meta["b"],),
        constants={"BLOCK": lambda meta: triton.next_power_of_2(meta["n"])},
        dtypes=["float32"],
        gradient=lambda x, factor, out, dout: (scale(dout, factor), None),
        reference=lambda x, factor: x * np.float32(factor),
    )
    X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    polyop_samples = {"contract::scale_by_triton": (X, 2.5)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the interpreter runs it: given once
        scale(X, 2.5)
