"""The code of docs/guides/triton-kernels.md."""

# [softmax]
import numpy as np
import triton
import triton.language as tl

import polyop


@triton.jit
def softmax_kernel(x_ptr, out_ptr, stride_xb, stride_out_b, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride_xb + i, mask=i < n, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * stride_out_b + i, e / tl.sum(e, axis=0), mask=i < n)


softmax = polyop.operator(
    "page::softmax(Tensor x) -> Tensor",
    softmax_kernel,
    dims="b n -> b n",
    parallel="b",
    grid=lambda meta: (meta["b"],),
    constants={"BLOCK": lambda meta: triton.next_power_of_2(meta["n"]), "num_warps": 4},
    dtypes=["float32"],
)
print(softmax(np.zeros((2, 5), np.float32)))
# [/softmax]

assert softmax(np.zeros((2, 5), np.float32)).tolist() == [[np.float32(0.2)] * 5] * 2
