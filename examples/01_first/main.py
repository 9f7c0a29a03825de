"""One operator, written once in C, called from NumPy, JAX and PyTorch: eager, differentiated, compiled."""

# [define]
import polyop

CODE = """
#include "polyop/abi.h"

int leaky(int nparam, void **params, int *ndims, int64_t **shapes, const char **dtypes,
          void *stream, void *extra) {
  const float *x = params[0]; /* the inputs, then the outputs */
  float *y = params[1];
  double slope;
  if (polyop_get_float(extra, "slope", &slope)) return 1;
  int64_t n = 1;
  for (int i = 0; i < ndims[0]; ++i) n *= shapes[0][i];
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] > 0 ? x[i] : (float)slope * x[i];
  return 0;
}
"""


def gradient(x, slope, out, dout):  # the inputs, the output, its gradient; None: slope has none
    xp = polyop.array_namespace(x)  # where, exp, sum ... of the framework that calls
    return xp.where(x > 0, dout, slope * dout), None


leaky = polyop.operator(
    "first::leaky(Tensor x, float slope=0.01) -> Tensor",
    polyop.source(code=CODE, function="leaky", language="c"),  # or a file: "leaky.c:leaky"
    dtypes=["float32"],  # what the kernel takes; others are refused
    gradient=gradient,
    batch="elementwise",  # an element of the output depends on that element of x alone
)
# [/define]

# [numpy]
import numpy as np  # noqa: E402

x = np.array([[0.0, -0.1], [-0.2, 1.0]], np.float32)
print(leaky(x))  # [[ 0. -0.001] [-0.002 1. ]]
out, pull = leaky.vjp(x, 0.5)
print(pull(np.ones_like(x))[0])  # [[0.5 0.5] [0.5 1. ]]
# [/numpy]

# [jax]
import jax  # noqa: E402

print(jax.jit(leaky)(x))  # [[ 0. -0.001] [-0.002 1. ]]
print(jax.grad(lambda x: leaky(x, 0.5).sum())(x))  # [[0.5 0.5] [0.5 1. ]]
# [/jax]

# [torch]
import torch  # noqa: E402

t = torch.tensor(x, requires_grad=True)
leaky(t, slope=0.5).sum().backward()
print(t.grad)  # tensor([[0.5000, 0.5000], [0.5000, 1.0000]])

fast = torch.compile(lambda t: leaky(t) + 1, fullgraph=True, backend="aot_eager")
print(fast(torch.tensor(x)))  # tensor([[1.0000, 0.9990], [0.9980, 2.0000]])
rows = torch.vmap(torch.func.grad(lambda row: leaky(row).sum()))
print(rows(torch.tensor(x)))  # tensor([[0.0100, 0.0100], [0.0100, 1.0000]])
# [/torch]

assert leaky(x).tolist() == torch.nn.functional.leaky_relu(torch.tensor(x)).tolist()
assert pull(np.ones_like(x))[0].tolist() == t.grad.tolist() == [[0.5, 0.5], [0.5, 1.0]]
