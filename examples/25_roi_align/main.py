"""ROI align, called and differentiated in PyTorch and in JAX; a box is trained to find a bright spot."""

import jax
import jax.numpy as jnp
import numpy as np
import torch
from kernels import roi_align

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(2, 3, 16, 20)).astype(np.float32)
BOXES = np.array([[2.2, 3.1, 9.7, 12.4], [4.0, 1.5, 17.3, 14.2], [0.6, 0.9, 6.1, 5.3]], np.float32)
IMAGE = np.array([0, 1, 1], np.int32)


def composed(x, boxes, image, size=4, samples=2):
    """Return the same by PyTorch's grid_sample: all samples, then their averages."""
    x0, y0, x1, y1 = boxes.T[..., None]
    at = (torch.arange(size * samples) + 0.5) / (size * samples)
    rows, columns = y0 + at * (y1 - y0) - 0.5, x0 + at * (x1 - x0) - 0.5
    places = torch.stack(
        [
            (2 * columns / (x.shape[3] - 1) - 1)[:, None, :].expand(-1, len(at), -1),
            (2 * rows / (x.shape[2] - 1) - 1)[:, :, None].expand(-1, -1, len(at)),
        ],
        -1,
    )
    sampled = torch.nn.functional.grid_sample(x[image], places, padding_mode="border", align_corners=True)
    return torch.nn.functional.avg_pool2d(sampled, samples)


def found():
    """Return the centre of a box that is moved towards a bright spot at column 12, row 6."""
    rows, columns = np.mgrid[:16, :20]
    spot = torch.tensor(np.exp(-((rows - 6) ** 2 + (columns - 12) ** 2) / 30.0)[None, None])
    box = torch.tensor([[6.0, 7.0, 10.0, 11.0]], dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.SGD([box], lr=2.0)
    for _ in range(60):
        optimiser.zero_grad()
        (-roi_align(spot, box, torch.zeros(1, dtype=torch.int32), size=2).mean()).backward()
        optimiser.step()
    x0, y0, x1, y1 = (box[0] - 0.5).tolist()
    return (x0 + x1) / 2, (y0 + y1) / 2


def main():
    results = []
    for function in (roi_align, composed):
        x, boxes = torch.tensor(X, requires_grad=True), torch.tensor(BOXES, requires_grad=True)
        out = function(x, boxes, torch.tensor(IMAGE), size=4)
        results.append([out, *torch.autograd.grad(out.square().sum(), (x, boxes))])
    ours, expected = ([one.detach().numpy() for one in row] for row in results)

    def loss(x, boxes):
        return jnp.square(roi_align(x, boxes, jnp.asarray(IMAGE), size=4)).sum()

    _, slopes = jax.jit(jax.value_and_grad(loss, argnums=(0, 1)))(X, BOXES)
    for one, other in zip((*ours, *slopes), (*expected, *expected[1:]), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3)
    print(f"{roi_align.schema}: value and gradient agree in PyTorch and JAX")

    column, row = found()
    print(f"the box was moved to column {column:.1f}, row {row:.1f}")
    assert abs(column - 12) < 0.5
    assert abs(row - 6) < 0.5


if __name__ == "__main__":
    main()
