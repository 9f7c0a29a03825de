"""Calls with DTensors beside the matrix product of PyTorch, in one process without communication."""

from kernels import need_torch
from measure import Missing, Row, Timed, beside

import polyop


@polyop.kernel(name="bench::linear")
def linear(x, w):
    """Return the matrix product."""
    y = output_tensor((x.shape[0], w.shape[1]), x.dtype)  # noqa: F821
    for i in range(x.shape[0]):
        for j in range(w.shape[1]):
            y[i, j] = 0.0
            for k in range(x.shape[1]):
                y[i, j] += x[i, k] * w[k, j]
    return y


def rows() -> list[Row]:
    torch = need_torch()
    if not torch.distributed.is_available():
        raise Missing("this PyTorch has no torch.distributed")
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor, init_device_mesh

    if not torch.distributed.is_initialized():
        torch.distributed.init_process_group("fake", rank=0, world_size=4)
    mesh = init_device_mesh("cpu", (4,))
    x = distribute_tensor(torch.ones(16, 8), mesh, [Shard(0)])
    w = distribute_tensor(torch.ones(8, 8), mesh, [Replicate()])
    assert torch.equal(linear(x, w).to_local(), torch.mm(x, w).to_local())
    calls = (Timed("f(x, w)", {"f": f, "x": x, "w": w}) for f in (linear, torch.mm))
    return [
        Row("torch call with DTensors, 16x8 by 8x8", "torch.mm of the same DTensors", 1.25, beside(*calls))
    ]
