"""The operators and peers that are measured by several rows."""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path
from typing import Any

from measure import Missing

FOLDER = Path(__file__).resolve().parent
BUILD = FOLDER / "build"


@functools.cache
def leaky() -> Any:
    """Return polyop's operator: the C kernel of peers/leaky.c, with a gradient."""
    import polyop

    path = FOLDER / "peers" / "leaky.c"
    backward = polyop.operator(
        "bench::leaky_grad(Tensor x, Tensor grad) -> Tensor", f"{path}:leaky_grad", infer="x"
    )
    return polyop.operator(
        "bench::leaky(Tensor x) -> Tensor",
        f"{path}:leaky",
        infer="x",
        gradient=lambda x, out, grad: (backward(x, grad),),
    )


@functools.cache
def loop_leaky() -> Any:
    """Return the same as a loop kernel, whose gradient polyop derives."""
    import polyop

    @polyop.kernel(name="bench::loop_leaky")
    def leaky(x):
        y = output_tensor(x.shape, x.dtype)  # noqa: F821 - a word of loop kernels
        for i in range(x.shape[0]):
            y[i] = x[i] if x[i] > 0.0 else 0.01 * x[i]
        return y

    return leaky


@functools.cache
def loop_leaky_rows() -> Any:
    """Return the same for tensors with two dimensions."""
    import polyop

    @polyop.kernel(name="bench::loop_leaky_rows")
    def leaky(x):
        y = output_tensor(x.shape, x.dtype)  # noqa: F821 - a word of loop kernels
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                y[i, j] = x[i, j] if x[i, j] > 0.0 else 0.01 * x[i, j]
        return y

    return leaky


LARGE_STRIDED = {"transposed": lambda x: x[:, :1000].T, "half of the columns": lambda x: x[:, :1000]}
"""Parts of a tensor of 1000 x 2000 that are not contiguous."""


@functools.cache
def scaled() -> Any:
    """Return an operator with one float attribute."""
    import polyop

    path = FOLDER / "peers" / "leaky.c"
    return polyop.operator("bench::scaled(Tensor x, float slope=0.01) -> Tensor", f"{path}:leaky", infer="x")


@functools.cache
def twice() -> Any:
    """Return the operator of an XLA FFI handler."""
    import polyop

    kernel = polyop.xla_ffi(f"{FOLDER / 'peers' / 'twice.cc'}:Twice")
    return polyop.operator("bench::twice(Tensor x) -> Tensor", kernel, infer="x")


@functools.cache
def custom_mul() -> Any:
    """Return the product of the C++ module peers/custom_mul.cpp."""
    import polyop

    return polyop.CustomOpBuilder("bench_mul", [FOLDER / "peers" / "custom_mul.cpp"]).load().mul


def torch_leaky() -> Any:
    """Return the C kernel as a C++ ``TORCH_LIBRARY`` operator; built once (about a minute)."""
    return torch_peer("torch_leaky.cpp").leaky.default


def torch_mul() -> Any:
    """Return the product as a C++ ``TORCH_LIBRARY`` operator, built once too."""
    return torch_peer("torch_mul.cpp").mul.default


@functools.cache
def torch_peer(source: str) -> Any:
    """Return ``torch.ops.polyop_peer`` with the operators of a source; raises ``Missing``."""
    torch = need_torch()
    from torch.utils import cpp_extension

    folder = BUILD / f"torch-{torch.__version__}" / source
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # ninja
    try:
        cpp_extension.load(
            f"polyop_peer_{source.partition('.')[0]}",
            [str(FOLDER / "peers" / source)],
            build_directory=str(folder),
            extra_cflags=["-O2"],
            is_python_module=False,
        )
    except (RuntimeError, OSError) as problem:
        raise Missing(f"the C++ peer does not build: {str(problem).splitlines()[0]}") from problem
    return torch.ops.polyop_peer


def need_torch() -> Any:
    """Return PyTorch; raises ``Missing`` without it."""
    try:
        import torch
    except ImportError as problem:
        raise Missing("PyTorch is not installed") from problem
    return torch
