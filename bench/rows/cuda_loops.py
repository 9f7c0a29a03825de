"""The kernels of bench/gradients/rowwise.py on a GPU, beside PyTorch and Triton: not measured without one."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from gradients import rowwise
from gradients.table import Gradient
from kernels import need_torch
from measure import Measured, Missing, Row, Settings, Timed, beside

import polyop

SIZES = {"m": 4096, "n": 1024}


@functools.cache
def operator_of(name: str, kernel: Callable[..., Any]) -> Callable[..., Any]:
    return polyop.kernel(name=f"bench_cuda::{name.replace(' ', '_')}")(kernel)


def triton_softmax() -> Callable[..., Any]:
    """Return a softmax of rows in Triton: a program for each row."""
    torch = need_torch()
    try:
        import triton
        import triton.language as tl
    except ImportError as problem:
        raise Missing(f"triton: {problem}") from None

    @triton.jit
    def kernel(x, y, columns: tl.constexpr):
        places = tl.program_id(0) * columns + tl.arange(0, columns)
        row = tl.load(x + places)
        bent = tl.exp(row - tl.max(row, axis=0))
        tl.store(y + places, bent / tl.sum(bent, axis=0))

    def softmax(x):
        y = torch.empty_like(x)
        kernel[(x.shape[0],)](x, y, x.shape[1])
        return y

    return softmax


def on_the_gpu(
    program: Gradient, peer: Callable[[], Callable[..., Any]], backward: bool, settings: Settings
) -> Measured:
    """Measure a kernel once its values agree; each time ends when the GPU has ended."""
    torch = need_torch()
    if not torch.cuda.is_available():
        raise Missing("PyTorch has no CUDA device")
    ours, theirs = operator_of(program.name, program.kernel), peer()
    arrays = program.arguments(SIZES)
    given = [torch.from_numpy(array).cuda().requires_grad_(backward) for array in arrays]
    slope = torch.randn_like(theirs(*given))

    def run(function: Callable[..., Any]) -> Sequence[Any]:
        result = function(*given)
        found = torch.autograd.grad(result, given, slope) if backward else (result,)
        torch.cuda.synchronize()
        return found

    torch.testing.assert_close(run(ours), tuple(run(theirs)), rtol=1e-3, atol=1e-3)
    variables = {"run": run, "ours": ours, "theirs": theirs}
    return beside(Timed("run(ours)", variables), Timed("run(theirs)", variables))(settings)


def rows() -> list[Row]:
    found: list[tuple[Gradient, str, Callable[[], Callable[..., Any]], bool]] = [
        (program, "PyTorch", lambda program=program: program.torch, backward)
        for program in rowwise.PROGRAMS
        for backward in (False, True)
    ]
    (softmax,) = (program for program in rowwise.PROGRAMS if program.kernel is rowwise.softmax)
    return [
        Row(
            f"CUDA, {program.name}{' with its gradient' * backward}: {SIZES['m']} x {SIZES['n']}",
            beside_what,
            None,
            functools.partial(on_the_gpu, program, peer, backward),
        )
        for program, beside_what, peer, backward in [*found, (softmax, "Triton", triton_softmax, False)]
    ]
