"""Products of narrow matrices beside PyTorch's own, on one and on all threads."""
# ruff: noqa: F821 - the language's words are not names of this module

import functools
import warnings

import numpy as np
from kernels import need_torch
from measure import Measured, Row, Settings, Timed, beside

import polyop

SHAPES = {"1024^3": (1024, 1024, 1024), "1 x 4096 x 4096": (1, 4096, 4096), "17 x 333 x 100": (17, 333, 100)}
"""Rows, terms and columns."""


@polyop.kernel(name="bench_narrow::int8")
def int8_product(a, b):
    c = np.zeros((a.shape[0], b.shape[1]), np.int32)
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            for k in range(a.shape[1]):
                c[i, j] += int32(a[i, k]) * int32(b[k, j])
    return c


@polyop.kernel(name="bench_narrow::int8_linear")
def int8_linear(a, w):
    c = np.zeros((a.shape[0], w.shape[0]), np.int32)
    for i in range(a.shape[0]):
        for j in range(w.shape[0]):
            for k in range(a.shape[1]):
                c[i, j] += int32(a[i, k]) * int32(w[j, k])
    return c


@polyop.kernel(name="bench_narrow::bfloat16")
def bfloat16_product(a, b):
    c = np.zeros((a.shape[0], b.shape[1]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            total = float32(0)
            for k in range(a.shape[1]):
                total += float32(a[i, k]) * float32(b[k, j])
            c[i, j] = total
    return c


@polyop.kernel(name="bench_narrow::bfloat16_linear")
def bfloat16_linear(a, w):
    c = np.zeros((a.shape[0], w.shape[0]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(w.shape[0]):
            total = float32(0)
            for k in range(a.shape[1]):
                total += float32(a[i, k]) * float32(w[j, k])
            c[i, j] = total
    return c


KERNELS = {
    "int8": (int8_product, "torch._int_mm(a, b)"),
    "int8, a row of weights for each column": (int8_linear, "torch._int_mm(a, b.t())"),
    "bfloat16": (bfloat16_product, "torch.mm(a, b)"),
    "bfloat16, a row of weights for each column": (bfloat16_linear, "torch.mm(a, b.t())"),
}


def beside_torch(kind: str, shape: str, threads: int, settings: Settings) -> Measured:
    """Measure a product once its values agree; ``threads``: of both, or 0 for all."""
    torch = need_torch()
    ours, theirs = KERNELS[kind]
    m, k, n = SHAPES[shape]
    torch.manual_seed(0)
    a, b = (torch.randint(-128, 128, s, dtype=torch.int8) for s in ((m, k), (k, n)))
    if not kind.startswith("int8"):
        a, b = ((x.float() / 64).bfloat16() for x in (a, b))
    b = b.t().contiguous() if ".t()" in theirs else b
    variables = {"torch": torch, "f": ours, "a": a, "b": b}
    before = torch.get_num_threads(), polyop.get_num_threads()
    try:
        if threads:
            torch.set_num_threads(threads)
            polyop.set_num_threads(threads)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = ours(a, b).float()
        torch.testing.assert_close(found, eval(theirs, variables).float(), rtol=2e-2, atol=2e-2)  # noqa: S307
        return beside(Timed("f(a, b)", variables), Timed(theirs, variables))(settings)
    finally:
        torch.set_num_threads(before[0])
        polyop.set_num_threads(before[1])


def rows() -> list[Row]:
    return [
        Row(
            f"narrow product, {kind}: {shape}{', one thread' * (threads == 1)}",
            "PyTorch's own",
            1.2 if shape == "1024^3" else None,
            functools.partial(beside_torch, kind, shape, threads),
        )
        for kind in KERNELS
        for shape in SHAPES
        for threads in (1, 0)
    ]
