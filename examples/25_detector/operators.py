"""ROI align and NMS beside plain PyTorch, in PyTorch and in JAX; a box is trained to find a bright spot."""

import jax
import jax.numpy as jnp
import numpy as np
import torch
import vision
from kernels import nms, roi_align

import polyop

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(2, 3, 16, 20)).astype(np.float32)
BOXES = np.array([[2.2, 3.1, 9.7, 12.4], [4.0, 1.5, 17.3, 14.2], [0.6, 0.9, 6.1, 5.3]], np.float32)
IMAGE = np.array([0, 1, 1], np.int32)
SCORES = np.array([0.1, 0.3, 0.2], np.float32)


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


def check_roi_align():
    results = []
    for function in (roi_align, vision.roi_align):
        x, boxes = torch.tensor(X, requires_grad=True), torch.tensor(BOXES, requires_grad=True)
        out = function(x, boxes, torch.tensor(IMAGE), 4, 0.9)
        results.append([out, *torch.autograd.grad(out.square().sum(), (x, boxes))])
    ours, expected = ([one.detach().numpy() for one in row] for row in results)

    def loss(x, boxes):
        return jnp.square(roi_align(x, boxes, jnp.asarray(IMAGE), 4, 0.9)).sum()

    _, slopes = jax.jit(jax.value_and_grad(loss, argnums=(0, 1)))(X, BOXES)
    for one, other in zip((*ours, *slopes), (*expected, *expected[1:]), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3)
    print(f"{roi_align.schema}: value and gradient agree in PyTorch and JAX")


def check_nms():
    low = RANDOM.uniform(0, 40, (3, 100, 2)).astype(np.float32)
    boxes = np.concatenate([low, low + RANDOM.uniform(5, 20, low.shape)], 2, dtype=np.float32)
    scores = RANDOM.normal(size=(3, 100)).astype(np.float32)
    kept = jax.jit(jax.vmap(lambda boxes, scores: nms(boxes, scores, 0.3, 100)))(boxes, scores)
    for places, *inputs in zip(np.asarray(kept), boxes, scores, strict=True):
        expected = vision.nms(*map(torch.tensor, inputs), 0.3).numpy()
        assert 10 < len(expected) < 100
        assert (places == np.pad(expected, (0, 100 - len(expected)), constant_values=-1)).all()
        assert (nms(*map(torch.tensor, inputs), 0.3, 10).numpy() == expected[:10]).all()
    print(f"{nms.schema}: the same boxes in PyTorch and JAX")


def check_torchvision():
    try:
        from torchvision import ops
    except (ImportError, RuntimeError) as error:  # RuntimeError: it is for another build of PyTorch
        print(f"torchvision is left out: {error}")
        return
    x, boxes, image = torch.tensor(X), torch.tensor(BOXES), torch.tensor(IMAGE)
    expected = ops.roi_align(x, torch.cat([image[:, None], boxes], 1), 4, 0.9, 2, aligned=True)
    np.testing.assert_allclose(roi_align(x, boxes, image, 4, 0.9), expected, rtol=1e-4, atol=1e-4)
    # [by_name]
    by_name = polyop.aten("torchvision::nms")
    places = by_name(jnp.asarray(BOXES), jnp.asarray(SCORES), 0.1)  # as many as there are
    three = jax.jit(lambda boxes, scores: by_name(boxes, scores, 0.1, size=3, fill_value=-1))
    # [/by_name]
    assert nms(BOXES, SCORES, 0.1, 3).tolist() == [*places.tolist(), -1]
    assert three(BOXES, SCORES).tolist() == [*places.tolist(), -1]
    print("the same values as torchvision's")


def main():
    check_roi_align()
    check_nms()
    check_torchvision()
    column, row = found()
    print(f"the box was moved to column {column:.1f}, row {row:.1f}")
    assert abs(column - 12) < 0.5
    assert abs(row - 6) < 0.5


if __name__ == "__main__":
    main()
