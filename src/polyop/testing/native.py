"""Run a native kernel in buffers with filled borders, which show a write outside of a tensor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _core
from ..call.prepare import Prepared
from ..core.errors import KernelError
from ..kernels.c_function import CFunctionKernel
from .case import Array, Case, spec_of

_MISSING = object()


@dataclass(frozen=True)
class Guarded:
    """An array inside a buffer; ``fill`` is the byte that its borders were filled with."""

    array: Array
    buffer: Array
    start: int
    fill: int

    def border(self) -> int | None:
        """Return the offset of the first changed byte of the borders, from the array's start, or None."""
        stop = self.start + self.array.nbytes
        changed = self.buffer != self.fill
        changed[self.start : stop] = False
        positions = np.flatnonzero(changed)
        return int(positions[0]) - self.start if positions.size else None


def guard(shape: tuple[int, ...], kind: Any, band: int, fill: int) -> Guarded:
    """Return an array between borders of ``band`` bytes, all of it filled, aligned to 64 bytes."""
    size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    raw = np.full(size + 2 * band + 64, fill, np.uint8)
    shift = -raw.ctypes.data % 64
    buffer = raw[shift : shift + size + 2 * band]
    array = buffer[band : band + size].view(kind).reshape(shape)
    return Guarded(array, buffer, band, fill)


def guard_copy(value: Array, band: int, fill: int) -> Guarded:
    """Return a copy of an array between borders."""
    guarded = guard(value.shape, value.dtype, band, fill)
    guarded.array[...] = value
    return guarded


class _Launcher(_core.Call):
    """Calls one kernel. Outputs are passed in, behind the inputs, so their memory is the caller's."""

    def __init__(self, launch: Any, tensors: int, kernel: CFunctionKernel) -> None:
        self.ready, self.kernel = launch, kernel
        self.configure(
            "t" * tensors, ("",) * tensors, (_MISSING,) * tensors, tensors, _MISSING, True, 0, 0, False
        )

    def _prepare(self, _: tuple[Any, ...], rows: tuple[Any, ...] = ()) -> tuple[Any, bool]:
        del rows
        return self.ready, False

    def _failed(self, code: int, text: str, threw: bool, label: str) -> None:
        del threw, label
        raise KernelError(self.kernel, f"returned {code}", text or None)


def run_guarded(
    case: Case, prepared: Prepared, kernel: CFunctionKernel, fill: int
) -> tuple[list[Guarded | None], list[Guarded]]:
    """Run the kernel once; return its inputs and outputs in their buffers.

    Before the call outputs are filled with ``fill``, and all borders with another byte. Borders are
    wide enough for a kernel that writes as many bytes as its inputs have, where fewer were inferred.
    """
    band = 4096 + 4 * sum(value.nbytes for _, value in case.tensors())
    band += -band % 64
    inputs: list[Guarded | None] = []
    for position in case.operator.schema.tensor_positions:
        value = case.arguments[position]
        items = value if isinstance(value, (list, tuple)) else (value,)
        inputs.extend(None if item is None else guard_copy(item, band, fill ^ 0xFF) for item in items)
    outputs = [guard(tuple(spec.shape), spec.dtype.numpy, band, fill ^ 0xFF) for spec in prepared.outputs]
    for output in outputs:
        output.buffer[output.start : output.start + output.array.nbytes] = fill
    _launch(prepared, kernel, [None if g is None else g.array for g in (*inputs, *outputs)])
    return inputs, outputs


def run_in_place(
    case: Case,
    prepared: Prepared,
    kernel: CFunctionKernel,
    place: Callable[[str, tuple[int, ...], Any], Array],
) -> None:
    """Run the kernel once on copies of the inputs in arrays that ``place(name, shape, dtype)`` returns."""
    tensors: list[Array | None] = []
    for position in case.operator.schema.tensor_positions:
        argument, value = case.operator.schema.arguments[position], case.arguments[position]
        listed = isinstance(value, (list, tuple))
        for number, item in enumerate(value if listed else (value,)):
            tensors.append(None)
            if item is not None:
                name = f"{argument.name}[{number}]" if listed else argument.name
                tensors[-1] = copy = place(name, item.shape, item.dtype)
                copy[...] = item
    for number, spec in enumerate(prepared.outputs):
        tensors.append(place(f"output {number}", tuple(spec.shape), spec.dtype.numpy))
    _launch(prepared, kernel, tensors)


def _launch(prepared: Prepared, kernel: CFunctionKernel, tensors: list[Array | None]) -> None:
    specs = [None if array is None else spec_of(array) for array in tensors]
    inputs = len(tensors) - len(prepared.outputs)
    launch = kernel.launch_into(specs[:inputs], specs[inputs:], prepared.attributes)
    _Launcher(launch, len(tensors), kernel).launch(*tensors)
