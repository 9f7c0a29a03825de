"""Loop kernels on a GPU beside PyTorch's and Triton's kernels. Without a GPU no row is measured."""
# ruff: noqa: F821 - the language's words are not names of this module

import functools
from typing import Any

import numpy as np
from kernels import need_torch
from measure import Measured, Missing, Row, Settings, Timed, beside

import polyop

ROWS, COLUMNS = 4096, 1024


@polyop.kernel(name="bench_cuda::softmax")
def softmax(x):
    y = np.empty(x.shape, x.dtype)
    for i in range(x.shape[0]):
        top = x[i, 0]
        for j in range(1, x.shape[1]):
            top = max(top, x[i, j])
        total = 0.0
        for j in range(x.shape[1]):
            y[i, j] = exp(x[i, j] - top)
            total += y[i, j]
        for j in range(x.shape[1]):
            y[i, j] /= total
    return y


@polyop.kernel(name="bench_cuda::layer_norm")
def layer_norm(x, scale, shift):
    y = np.empty(x.shape, x.dtype)
    for i in range(x.shape[0]):
        mean = 0.0
        for j in range(x.shape[1]):
            mean += x[i, j] / x.shape[1]
        variance = 0.0
        for j in range(x.shape[1]):
            variance += (x[i, j] - mean) * (x[i, j] - mean) / x.shape[1]
        for j in range(x.shape[1]):
            y[i, j] = (x[i, j] - mean) / sqrt(variance + 1e-5) * scale[j] + shift[j]
    return y


@polyop.kernel(name="bench_cuda::silu")
def silu(x):
    y = np.empty(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] / (1.0 + exp(-x[i, j]))
    return y


@polyop.kernel(name="bench_cuda::row_sums")
def row_sums(x):
    y = np.zeros(x.shape[0], x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i] += x[i, j]
    return y


def torch_peers(torch: Any) -> dict[str, Any]:
    """Return the function of PyTorch for each kernel, by its name."""
    nn = torch.nn.functional
    return {
        "softmax": lambda x: torch.softmax(x, 1),
        "layer_norm": lambda x, scale, shift: nn.layer_norm(x, x.shape[1:], scale, shift),
        "silu": nn.silu,
        "row_sums": lambda x: x.sum(1),
    }


def triton_peers(torch: Any) -> dict[str, Any]:
    """Return the function of Triton for the kernels that have one, by its name."""
    try:
        import triton
        import triton.language as tl
    except ImportError as problem:
        raise Missing(f"triton: {problem}") from None

    @triton.jit
    def softmax_kernel(x, y, columns: tl.constexpr):
        places = tl.program_id(0) * columns + tl.arange(0, columns)
        row = tl.load(x + places)
        bent = tl.exp(row - tl.max(row, axis=0))
        tl.store(y + places, bent / tl.sum(bent, axis=0))

    def softmax_of(x):
        y = torch.empty_like(x)
        softmax_kernel[(x.shape[0],)](x, y, x.shape[1])
        return y

    return {"softmax": softmax_of}


PEERS = {"PyTorch": torch_peers, "Triton": triton_peers}
KERNELS = {"softmax": softmax, "layer_norm": layer_norm, "silu": silu, "row_sums": row_sums}


def on_the_gpu(name: str, peer: str, backward: bool, settings: Settings) -> Measured:
    """Measure a kernel once its values agree; each time ends when the GPU has ended."""
    torch = need_torch()
    if not torch.cuda.is_available():
        raise Missing("PyTorch has no CUDA device")
    ours, theirs = KERNELS[name], PEERS[peer](torch)[name]
    torch.manual_seed(0)
    x = torch.randn(ROWS, COLUMNS, device="cuda", requires_grad=backward)
    more = [torch.randn(COLUMNS, device="cuda", requires_grad=backward) for _ in range(2)]
    given = [x, *more] if name == "layer_norm" else [x]
    slope = torch.randn_like(theirs(*given))

    def gradients(function: Any) -> Any:
        return torch.autograd.grad(function(*given), given, slope)

    def run(function: Any) -> Any:
        found = gradients(function) if backward else function(*given)
        torch.cuda.synchronize()
        return found

    torch.testing.assert_close(run(ours), run(theirs), rtol=1e-3, atol=1e-3)
    variables = {"run": run, "ours": ours, "theirs": theirs}
    return beside(Timed("run(ours)", variables), Timed("run(theirs)", variables))(settings)


def rows() -> list[Row]:
    found = [(name, "PyTorch", backward) for name in KERNELS for backward in (False, True)]
    return [
        Row(
            f"CUDA, {name}{' with its gradient' * backward}: {ROWS} x {COLUMNS}",
            peer,
            None,
            functools.partial(on_the_gpu, name, peer, backward),
        )
        for name, peer, backward in [*found, ("softmax", "Triton", False)]
    ]
