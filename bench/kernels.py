"""The operators and peers that several rows time."""

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
def scaled() -> Any:
    """Return an operator with one float attribute."""
    import polyop

    path = FOLDER / "peers" / "leaky.c"
    return polyop.operator("bench::scaled(Tensor x, float slope=0.01) -> Tensor", f"{path}:leaky", infer="x")


@functools.cache
def torch_leaky() -> Any:
    """Return the same kernel as a C++ ``TORCH_LIBRARY`` operator; built once (about a minute)."""
    torch = need_torch()
    from torch.utils import cpp_extension

    folder = BUILD / f"torch-{torch.__version__}"
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # ninja
    try:
        cpp_extension.load(
            "polyop_peer",
            [str(FOLDER / "peers" / "torch_leaky.cpp")],
            build_directory=str(folder),
            extra_cflags=["-O2"],
            is_python_module=False,
        )
    except (RuntimeError, OSError) as problem:
        raise Missing(f"the C++ peer does not build: {str(problem).splitlines()[0]}") from problem
    return torch.ops.polyop_peer.leaky.default


def need_torch() -> Any:
    """Return PyTorch; raises ``Missing`` without it."""
    try:
        import torch
    except ImportError as problem:
        raise Missing("PyTorch is not installed") from problem
    return torch
