"""Rules of an operator: gradients, tangents and batches that serve every framework."""

import numpy as np

import polyop


# [gradient]
def huber_gradient(x, delta, out, dout):  # the inputs, the output, its gradient
    xp = polyop.array_namespace(x)  # where, abs, sign ... of the calling framework
    return xp.where(xp.abs(x) <= delta, x, delta * xp.sign(x)) * dout, None  # None: an attribute


def huber_tangent(x, delta, out, tangents):  # one tangent per argument, None for zero
    return huber_gradient(x, delta, out, tangents[0])[0]


huber = polyop.operator(
    "rules::huber(Tensor x, float delta=1.0) -> Tensor",
    lambda x, delta: np.where(abs(x) <= delta, x * x / 2, delta * (abs(x) - delta / 2)),
    gradient=huber_gradient,
    jvp=huber_tangent,  # without it the gradient rule is transposed
    batch="elementwise",
)
# [/gradient]


# [dims]
softmax = polyop.operator(
    "rules::softmax(Tensor x) -> Tensor",
    lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True),
    dims="... n -> ... n",  # rows of n; "..." is any number of dimensions more, as vmap adds one
)
linear = polyop.operator(
    "rules::linear(Tensor x, Tensor w) -> Tensor",
    lambda x, w: x @ w,
    dims="b i, i o -> b o",  # i is one size: a call with others is refused before the kernel runs
    parallel="b o",
    sum="i",
)
# [/dims]


# [batch]
def sort_batch(dims, inputs):  # the batch axis of each argument, or None; the arguments
    (x,), (dim,) = inputs, dims
    xp = polyop.array_namespace(x)
    rows = xp.moveaxis(x, dim, 0)
    return sort_rows(xp.reshape(rows, (rows.shape[0], -1))), 0  # the output and its batch axis


sort_rows = polyop.operator(
    "rules::sort_rows(Tensor x) -> Tensor", lambda x: np.sort(x, -1), dims="... n -> ... n"
)
sort_all = polyop.operator(
    "rules::sort_all(Tensor x) -> Tensor",
    lambda x: np.sort(x, None),
    dims="m n -> m*n",
    batch=sort_batch,
)
# [/batch]

# [data_sizes]
positive = polyop.operator(
    "rules::positive(Tensor x) -> Tensor",
    lambda x: x[x > 0],
    dims="n -> k<=n",  # the kernel knows k, from the data
)
print(positive(np.array([1.0, -2.0, 3.0])))
print(positive(np.array([1.0, -2.0, 3.0]), size=4, fill_value=9))
# [/data_sizes]

x = np.array([-3.0, 0.5, 2.0])
np.testing.assert_allclose(huber.vjp(x, 1.0)[1](np.ones(3))[0], [-1.0, 0.5, 1.0])

import torch  # noqa: E402

t = torch.tensor(x, requires_grad=True)
huber(t).sum().backward()
print("PyTorch", t.grad)
print(torch.func.jvp(huber, (torch.tensor(x),), (torch.ones(3, dtype=torch.float64),))[1])
print(torch.vmap(softmax)(torch.zeros(2, 3, 4)).shape, torch.vmap(sort_all)(torch.rand(2, 3, 4)).shape)
try:
    linear(torch.ones(2, 3), torch.ones(4, 5))
except polyop.PolyopError as problem:
    print(problem)

try:
    import jax
except ImportError:
    print("JAX is not installed: not run")
else:
    gradient = jax.jit(jax.grad(lambda x: huber(x).sum()))(jax.numpy.asarray(x, "float32"))
    print("JAX", gradient)
    np.testing.assert_allclose(gradient, [-1.0, 0.5, 1.0])
    print(jax.vmap(softmax)(jax.numpy.zeros((2, 3, 4))).shape)
    print(jax.jit(lambda x: positive(x, size=2))(jax.numpy.asarray(x, "float32")))
