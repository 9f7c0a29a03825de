"""PyTorch's operators by name, and those that somebody else registered, on NumPy arrays."""

# [numpy]
import numpy as np

from polyop import aten

leaky = aten("leaky_relu")  # schema, shapes and gradient are PyTorch's
print(leaky)

x = np.array([[0.0, -0.1], [-0.2, 1.0]], np.float32)
print(leaky(x, 0.5))
out, pull = leaky.vjp(x, 0.5)
dx = pull(np.ones_like(x))[0]
print(dx)
# [/numpy]

# [overloads]
total = aten("sum.dim_IntList")(x, 1, dtype="float64")
parts = aten("split")(x, 1)  # views in PyTorch, new arrays here
aten("add_.Tensor")(x, np.float32([[1.0], [2.0]]))  # written in place
print(total, x)
# [/overloads]

# [foreign]
import torch  # noqa: E402


@torch.library.custom_op("vision_example::keep_best", mutates_args=())  # as a vision library has one
def keep_best(boxes: torch.Tensor, scores: torch.Tensor, count: int) -> torch.Tensor:
    """Return the ``count`` boxes with the highest scores."""
    return boxes[scores.topk(count).indices]


@keep_best.register_fake
def _(boxes: torch.Tensor, scores: torch.Tensor, count: int) -> torch.Tensor:
    del scores
    return boxes.new_empty(count, *boxes.shape[1:])


best = aten("vision_example::keep_best")
boxes = np.arange(12, dtype=np.float32).reshape(3, 4)
print(best(boxes, np.float32([0.1, 0.9, 0.5]), 2))
# [/foreign]

# [torch]
t = torch.tensor([-2.0, 3.0])
fast = torch.compile(lambda t: leaky(t, negative_slope=0.5) + 1, fullgraph=True, backend="aot_eager")
print(fast(t), torch.vmap(torch.func.grad(leaky))(t))
# [/torch]

assert dx.tolist() == [[0.5, 0.5], [0.5, 1.0]]
assert total.dtype == np.float64
assert [part.tolist() for part in parts] == [[[0.0, np.float32(-0.1)]], [[np.float32(-0.2), 1.0]]]
assert x.tolist() == [[1.0, np.float32(0.9)], [np.float32(1.8), 3.0]]
assert best(boxes, np.float32([0.1, 0.9, 0.5]), 2).tolist() == boxes[[1, 2]].tolist()
assert fast(t).tolist() == [0.0, 4.0]
