"""The code of docs/hosts/pyopencl.md."""

# [first]
import numpy as np
import pyopencl as cl
import pyopencl.array as cl_array

import polyop

queue = cl.CommandQueue(cl.create_some_context(interactive=False))
x = cl_array.to_device(queue, np.array([[-2.0, 1.0], [3.0, -4.0]], np.float32))


@polyop.kernel
def leaky(x, slope: float = 0.01):
    y = np.zeros(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] if x[i, j] > 0 else slope * x[i, j]
    return y


y = leaky(x, 0.5)  # comes back at once, an array on the same queue
y += 1  # PyOpenCL's own kernel runs after it
print(y.get())  # [[0. 2.] [4. -1.]]
out, pull = leaky.vjp(x, 0.5)
print(pull(out)[0].get())  # [[-0.5 1. ] [ 3. -1. ]]
# [/first]
np.testing.assert_array_equal(y.get(), [[0, 2], [4, -1]])
np.testing.assert_array_equal(pull(out)[0].get(), [[-0.5, 1], [3, -1]])

# [source]
CODE = """
__kernel void softmax(__global const float *x, const int n, __global float *out) {
  const size_t row = get_global_id(0);
  float most = -INFINITY, sum = 0;
  for (int i = 0; i < n; ++i) most = fmax(most, x[row * n + i]);
  for (int i = 0; i < n; ++i) sum += exp(x[row * n + i] - most);
  for (int i = 0; i < n; ++i) out[row * n + i] = exp(x[row * n + i] - most) / sum;
}

__kernel void softmax_grad(__global const float *out, __global const float *dout, const int n,
                           __global float *dx) {
  const size_t row = get_global_id(0);
  float dot = 0;
  for (int i = 0; i < n; ++i) dot += out[row * n + i] * dout[row * n + i];
  for (int i = 0; i < n; ++i) dx[row * n + i] = out[row * n + i] * (dout[row * n + i] - dot);
}
"""
softmax_grad = polyop.operator(
    "page::softmax_grad(Tensor out, Tensor dout) -> Tensor",
    polyop.source(code=CODE, function="softmax_grad", language="opencl"),  # or "file.cl:softmax_grad"
    dims="b n, b n -> b n",
    grid=lambda meta: (meta["b"],),
)
softmax = polyop.operator(
    "page::softmax(Tensor x) -> Tensor",
    polyop.source(code=CODE, function="softmax", language="opencl"),
    dims="b n -> b n",
    parallel="b",
    grid=lambda meta: (meta["b"],),
    gradient=lambda x, out, dout: (softmax_grad(out, dout),),
)
out, pull = softmax.vjp(x)
print(out.get().sum(-1))  # [1. 1.]
print(pull(x)[0].get().sum(-1))  # [0. 0.], but for rounding
# [/source]
np.testing.assert_allclose(out.get().sum(-1), 1, rtol=1e-6)
np.testing.assert_allclose(pull(x)[0].get().sum(-1), 0, atol=1e-6)
print(np.all(np.diff(out.get()) * np.diff(x.get()) > 0))
