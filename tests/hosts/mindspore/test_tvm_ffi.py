"""A function of tvm-ffi as a kernel of MindSpore calls, in both modes, with its gradient."""

import numpy as np

import polyop
import tvm_ffi_library


def test_values_and_gradients(mode, request):
    import mindspore as ms

    def gradient(x, factor, out, dout):
        return scale(dout, factor), None

    scale = polyop.operator(
        f"tvmffi_ms::{request.node.callspec.id}(Tensor x, float factor) -> Tensor",
        f"{tvm_ffi_library.path()}:scale",
        infer="x",
        gradient=gradient,
    )
    x = np.arange(6, dtype=np.float32).reshape(2, 3)

    def function(x):
        return scale(x, 3.0)

    np.testing.assert_array_equal(mode(function)(ms.Tensor(x)).asnumpy(), 3 * x)
    np.testing.assert_array_equal(ms.grad(mode(function))(ms.Tensor(x)).asnumpy(), np.full_like(x, 3))
