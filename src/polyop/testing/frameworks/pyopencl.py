"""Arrays of PyOpenCL, on the first device of OpenCL. Import this file only where PyOpenCL is used."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyopencl as cl
import pyopencl.array as cl_array

from ...call.bound import BoundOperator
from ...hosts.pyopencl.arrays import TAKEN
from ..case import Array, Case, NotRunError
from .framework import DemoRow
from .numpy import pulled

_NO_COMPILER, _NO_VMAP = "PyOpenCL has no compiler of programs", "PyOpenCL has no vmap"


def run(case: Case) -> list[Array]:
    """Call the operator on copies of the arrays, and return the results from the device."""
    return [_from_device(x) for x in case.call(case.map(_to_device))]


def gradients(case: Case, cotangents: Sequence[Array]) -> dict[str, Array | None]:
    """Return the input gradients of ``op.vjp``."""
    given = [_to_device("an output's gradient", np.asarray(x)) for x in cotangents]
    return pulled(case, case.map(_to_device), given, _from_device)


def compiled(case: Case) -> list[Array]:
    """Raise ``NotRunError``."""
    del case
    raise NotRunError(_NO_COMPILER)


def compiled_gradients(case: Case, cotangents: Sequence[Array]) -> dict[str, Array | None]:
    """Raise ``NotRunError``."""
    del case, cotangents
    raise NotRunError(_NO_COMPILER)


def batched(samples: Sequence[Case]) -> list[Array]:
    """Raise ``NotRunError``."""
    del samples
    raise NotRunError(_NO_VMAP)


def demo(bound: BoundOperator, x: Array) -> Iterator[DemoRow]:
    """Yield the call of an operator of one tensor, with its value and gradient."""
    tensor, ones = _to_device("x", x), _to_device("gradient", np.ones_like(x))
    grad = bound.vjp(tensor)[1](ones)[0]
    yield "PyOpenCL", _from_device(bound(tensor)), _from_device(grad), lambda: bound(tensor)


@functools.cache
def _queue() -> Any:
    """Return a queue of the first device; raises ``NotRunError`` if there is none."""
    try:
        return cl.CommandQueue(cl.Context(cl.get_platforms()[0].get_devices()[:1]))
    except cl.Error as problem:
        raise NotRunError(f"OpenCL has no device: {problem}") from None


def _to_device(name: str, value: Array) -> Any:
    if value.dtype not in TAKEN:
        raise NotRunError(f"PyOpenCL has no arrays of {value.dtype}, as {name} is")
    return cl_array.to_device(_queue(), np.array(value, order="C"))


def _from_device(tensor: Any) -> Array:
    return np.asarray(tensor.get())
