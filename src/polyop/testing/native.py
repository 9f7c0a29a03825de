"""Running a native kernel in buffers of our own, whose borders show what it should not touch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _core
from ..call.prepare import Prepared
from ..core.errors import KernelError
from ..kernels.library import LibraryKernel
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
        """Return the offset in bytes, from the array's start, of the first changed byte, or None."""
        stop = self.start + self.array.nbytes
        changed = self.buffer != self.fill
        changed[self.start : stop] = False
        found = np.flatnonzero(changed)
        return int(found[0]) - self.start if found.size else None


def guard(shape: tuple[int, ...], kind: Any, band: int, fill: int) -> Guarded:
    """Return an array, filled like its borders of ``band`` bytes, aligned to 64 bytes."""
    size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    raw = np.full(size + 2 * band + 64, fill, np.uint8)
    shift = -raw.ctypes.data % 64
    buffer = raw[shift : shift + size + 2 * band]
    array = buffer[band : band + size].view(kind).reshape(shape)
    return Guarded(array, buffer, band, fill)


def guard_copy(value: Array, band: int, fill: int) -> Guarded:
    """Return a copy of an array inside such a buffer."""
    made = guard(value.shape, value.dtype, band, fill)
    made.array[...] = value
    return made


class _Launcher(_core.Call):
    """Calls one kernel with outputs that are passed in: inputs and outputs are one list to it."""

    def __init__(self, launch: Any, tensors: int, kernel: LibraryKernel) -> None:
        self.ready, self.kernel = launch, kernel
        self.configure("t" * tensors, (_MISSING,) * tensors, tensors, _MISSING, True, 0, 0, False)

    def _prepare(self, _: tuple[Any, ...]) -> tuple[Any, bool]:
        return self.ready, False

    def _failed(self, code: int, text: str, threw: bool, label: str) -> None:
        del threw, label
        raise KernelError(self.kernel, f"returned {code}", text or None)


def run_guarded(
    case: Case, prepared: Prepared, kernel: LibraryKernel, fill: int
) -> tuple[list[Guarded | None], list[Guarded]]:
    """Run the kernel once; return its inputs and outputs in their buffers.

    Outputs hold the byte ``fill`` beforehand, and all borders another one. Borders are wide
    enough for a kernel that writes as much as its inputs hold where less was inferred.
    """
    band = 4096 + 4 * sum(value.nbytes for _, value in case.tensors())
    band += -band % 64
    inputs: list[Guarded | None] = []
    for position in case.operator.schema.tensor_positions:
        value = case.arguments[position]
        items = value if isinstance(value, (list, tuple)) else (value,)
        inputs.extend(None if item is None else guard_copy(item, band, fill ^ 0xFF) for item in items)
    outputs = [guard(tuple(spec.shape), spec.dtype.numpy, band, fill ^ 0xFF) for spec in prepared.outputs]
    for made in outputs:
        made.buffer[made.start : made.start + made.array.nbytes] = fill
    _launch(prepared, kernel, [None if g is None else g.array for g in (*inputs, *outputs)])
    return inputs, outputs


def run_in_place(
    case: Case,
    prepared: Prepared,
    kernel: LibraryKernel,
    place: Callable[[str, tuple[int, ...], Any], Array],
) -> None:
    """Run the kernel once on copies of the inputs in arrays that ``place(name, shape, dtype)`` returns."""
    every: list[Array | None] = []
    for position in case.operator.schema.tensor_positions:
        argument, value = case.operator.schema.arguments[position], case.arguments[position]
        listed = isinstance(value, (list, tuple))
        for number, item in enumerate(value if listed else (value,)):
            every.append(None)
            if item is not None:
                name = f"{argument.name}[{number}]" if listed else argument.name
                every[-1] = copy = place(name, item.shape, item.dtype)
                copy[...] = item
    for number, spec in enumerate(prepared.outputs):
        every.append(place(f"output {number}", tuple(spec.shape), spec.dtype.numpy))
    _launch(prepared, kernel, every)


def _launch(prepared: Prepared, kernel: LibraryKernel, every: list[Array | None]) -> None:
    specs = [None if array is None else spec_of(array) for array in every]
    launch = kernel.launch(specs, (), prepared.attributes)
    _Launcher(launch, len(every), kernel).launch(*every)
