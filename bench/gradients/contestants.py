"""Gradients as functions without arguments, ready to be timed: of polyop, PyTorch, JAX, and in C."""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from loops import compare as comparison

import polyop
from polyop import dtype
from polyop.build import build
from polyop.core.spec import Spec
from polyop.core.spec_key import SpecKey
from polyop.kernels.loop.adjoints import Adjoints
from polyop.kernels.loop.derived import DerivedKernel
from polyop.kernels.loop.forms import GRADIENT
from polyop.kernels.loop.kernel import LoopKernel
from polyop.loops.frontend.parse import outline

from .table import Gradient, incoming

Run = Callable[[], tuple[Any, ...]]


def operator(program: Gradient) -> Any:
    """Return the operator of a program's kernel."""
    return _operator(program.kernel)


@functools.cache
def _operator(kernel: Callable[..., Any]) -> Any:
    return polyop.Custom(kernel, func_type="hybrid")


def through_torch(program: Gradient, arguments: tuple[Any, ...], *, ours: bool) -> Run:
    """Return the gradient by ``torch.autograd.grad``: of polyop's operator, or of PyTorch's own."""
    import torch

    function, tensors, leaves = _torch_call(program, arguments, ours=ours)
    output = function(*tensors)
    cotangent = torch.from_numpy(incoming(tuple(output.shape), arguments[0].dtype))
    torch.autograd.grad(output, leaves, cotangent, retain_graph=True)  # compiles
    return lambda: torch.autograd.grad(output, leaves, cotangent, retain_graph=True)


def both_ways(program: Gradient, arguments: tuple[Any, ...], *, ours: bool) -> Run:
    """Return the call and its gradient in PyTorch, as :func:`through_torch`."""
    import torch

    function, tensors, leaves = _torch_call(program, arguments, ours=ours)
    output = function(*tensors)
    cotangent = torch.from_numpy(incoming(tuple(output.shape), arguments[0].dtype))
    torch.autograd.grad(output, leaves, cotangent)
    return lambda: torch.autograd.grad(function(*tensors), leaves, cotangent)


def _torch_call(
    program: Gradient, arguments: tuple[Any, ...], *, ours: bool
) -> tuple[Callable[..., Any], list[Any], list[Any]]:
    """Return the function, its tensors, and those that get a gradient."""
    import torch

    smooth = program.smooth(arguments)
    tensors = [torch.from_numpy(a.copy()).requires_grad_(i in smooth) for i, a in enumerate(arguments)]
    function = operator(program) if ours else program.torch
    return function, tensors, [tensors[i] for i in smooth]


def through_jax(program: Gradient, arguments: tuple[Any, ...]) -> Run:
    """Return the jitted gradient of JAX; the forward and its residuals are computed beforehand."""
    import jax

    smooth = program.smooth(arguments)

    def of_smooth(*values: Any) -> Any:
        inputs = list(arrays)
        for i, value in zip(smooth, values, strict=True):
            inputs[i] = value
        return program.jax(*inputs)

    wide = enable_x64() if arguments[0].dtype == np.float64 else contextlib.nullcontext()
    with wide:
        arrays = [jax.numpy.asarray(a) for a in arguments]
        output, rule = jax.vjp(of_smooth, *(arrays[i] for i in smooth))
        cotangent = jax.numpy.asarray(incoming(output.shape, arguments[0].dtype))
        compiled = jax.jit(lambda rule, cotangent: rule(cotangent)).lower(rule, cotangent).compile()

    def run() -> tuple[Any, ...]:
        gradients: tuple[Any, ...] = jax.block_until_ready(compiled(rule, cotangent))
        return gradients

    return run


def enable_x64() -> Any:
    """Return JAX's context manager for 64-bit numbers, which older versions have elsewhere."""
    import jax

    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)
    from jax.experimental import enable_x64 as context

    return context()


class Direct(comparison.Direct):
    """The derived gradient as a call of the kernel's C function, without a framework."""

    def __init__(self, program: Gradient, arguments: tuple[Any, ...], results: tuple[Any, ...]) -> None:
        """Derive, schedule and compile it; ``results`` are the kernel's."""
        parsed = outline(program.kernel)
        base = LoopKernel(program.kernel, tuple(n for n in parsed.parameters if n not in parsed.tensors))
        self.kernel, self.attributes = DerivedKernel.of(base, GRADIENT), {}
        input_specs, present = specs(arguments), (True,) * len(results)
        requested = tuple(i in program.smooth(arguments) for i in range(len(arguments)))
        numbers = {self.kernel.key_attribute: str(SpecKey.of(input_specs, requested))}
        everything = [*arguments, *results, *(incoming(r.shape, r.dtype) for r in results)]
        read = [*Adjoints(self.kernel, input_specs, {}).reads(present, requested), *present]
        operands = [a if flag else None for a, flag in zip(everything, read, strict=True)]
        operand_specs = [None if a is None else specs([a])[0] for a in operands]
        shapes = [a.shape if flag else (1,) for a, flag in zip(arguments, requested, strict=True)]
        self.outputs = [
            np.zeros(s, t.numpy)
            for s, t in zip(shapes, self.kernel.infer_types(operand_specs, numbers, 0), strict=True)
        ]
        address = self.kernel.library(self.kernel.typed(operand_specs, numbers))._address
        self.function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, *[ctypes.c_void_p] * 6)(address)
        operands += self.outputs
        self.count = len(operands)
        self.pointers = (ctypes.c_void_p * self.count)(
            *[a.ctypes.data if a is not None else None for a in operands]
        )
        self.sizes = [(ctypes.c_int64 * max(1, np.ndim(a)))(*np.shape(a)) for a in operands]
        self.shapes = (ctypes.c_void_p * self.count)(*[ctypes.addressof(s) for s in self.sizes])
        self._alive = operands
        self._make_extra()


def specs(arrays: Any) -> list[Spec]:
    """Return the specs of arrays."""
    return [Spec(a.shape, dtype(a.dtype.name), "cpu") for a in arrays]


class Written:
    """The hand-written gradient on the same arrays; ``outputs`` has its results."""

    def __init__(self, program: Gradient, arguments: tuple[Any, ...], results: tuple[Any, ...]) -> None:
        self.function = _written(program.written)
        (last,) = program.smooth(arguments)
        cotangent = incoming(results[0].shape, results[0].dtype)
        self.outputs = [np.zeros_like(arguments[last])]
        self._arrays = [arguments[0], cotangent, *self.outputs]  # keeps them alive
        self.arguments = [ctypes.c_void_p(a.ctypes.data) for a in self._arrays]
        self.arguments += [ctypes.c_int64(n) for n in arguments[0].shape]

    def __call__(self) -> None:
        """Run it once."""
        self.function(*self.arguments)


@functools.cache
def _written(name: str) -> Any:
    from polyop import _core
    from polyop.binary.open import open_library

    path = build([Path(__file__).with_name("written.c")], flags=["-O3", "-march=native", "-std=gnu11"])
    address = _core.find_symbol(open_library(path), f"written_{name}")
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, ctypes.c_int64, ctypes.c_int64)(address)
