"""What a native kernel reads beyond the end of its tensors, above all where their sizes do not fit together.

Each tensor lies between pages that may not be read: an access one byte past its end, or before its
start, ends the process. So the kernel runs in a forked child, which tells how far it has come.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..kernels.library import LibraryKernel
from .case import Array, BrokenRuleError, Case, Check, NotRunError
from .crash import signal_of
from .native import run_in_place

PAGE = mmap.PAGESIZE
Place = Callable[[str, tuple[int, ...], Any], Array]

_WAY_OUT = (
    "the infer rule takes these sizes: it must raise for those that the kernel cannot run on (infer= a "
    "function, out_shape= a function, or <Func>InferShape), or the kernel must look at them and fail"
)
_kept: list[mmap.mmap] = []
"""Memory of the forked child; it ends without cleaning up."""


def fenced(name: str, shape: tuple[int, ...], kind: Any, *, at_end: bool = True) -> Array:
    """Return an array of zeros that ends where the memory does; ``at_end=False``: that starts there."""
    del name
    size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    room = -(-max(size, 1) // PAGE) * PAGE
    memory = mmap.mmap(-1, room + 2 * PAGE)
    _kept.append(memory)
    every = np.frombuffer(memory, np.uint8)
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    for fence in (every.ctypes.data, every.ctypes.data + PAGE + room):
        if protect(ctypes.c_void_p(fence), ctypes.c_size_t(PAGE), 0):
            raise NotRunError("this system does not let memory be protected")
    start = PAGE + (room - size if at_end else 0)
    return every[start : start + size].view(kind).reshape(shape)


def roomy(name: str, shape: tuple[int, ...], kind: Any) -> Array:
    """Return an array of zeros with as much readable memory around it as any kernel of the case needs."""
    del name
    size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    return np.zeros(size + 2 * _ROOM, np.uint8)[_ROOM : _ROOM + size].view(kind).reshape(shape)


_ROOM = 1 << 20


def reads_inside(case: Case) -> str | None:
    """Run the native kernel on fenced tensors, in the sample's sizes and in others that do not fit."""
    kernel = case.prepare().kernel
    if not isinstance(kernel, LibraryKernel) or kernel.device != "cpu":
        raise NotRunError(f"{kernel} is no function of a library for the CPU")
    names = [name for name, _ in case.tensors()]
    variants = [case, *_misfits(case)]
    taken = [variant for variant in variants if _is_taken(variant)]
    progress = np.frombuffer(mmap.mmap(-1, PAGE), np.int64)  # shared with the child

    def attempt() -> None:
        for number, variant in enumerate(taken):
            progress[0] = number
            for at_end in (True, False):
                _run(variant, functools.partial(fenced, at_end=at_end))

    if signal_of(attempt):
        _explain(case, taken[int(progress[0])], names)
    refused = len(variants) - len(taken)
    return f"{refused} of {len(variants) - 1} sizes that do not fit are refused" if refused else None


def _is_taken(variant: Case) -> bool:
    try:
        return isinstance(variant.prepare().kernel, LibraryKernel)
    except Exception:  # noqa: BLE001 - an infer rule may refuse sizes in any way
        return False


def _run(variant: Case, place: Place) -> None:
    prepared = variant.prepare()
    kernel: Any = prepared.kernel
    try:
        run_in_place(variant, prepared, kernel, place)
    except Exception:  # noqa: BLE001 - the kernel may look at the sizes itself, and refuse them
        return


def _misfits(case: Case) -> Iterator[Case]:
    """Yield the case with one tensor's sizes changed; integers are 0, as they may be indices of another."""
    tensors = [(name, value.shape) for name, value in case.tensors()]
    if len(tensors) < 2:
        return
    zeros = case.mapped(lambda _, value: np.zeros_like(value) if value.dtype.kind in "biu" else value)
    for name, shape in tensors:
        for other in _other_shapes(shape):
            yield zeros.mapped(functools.partial(_resized, name, other))


def _other_shapes(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    axes = [axis for axis, size in enumerate(shape) if size > 1]
    changed = [(*shape[:axis], size, *shape[axis + 1 :]) for axis in axes for size in (1, shape[axis] - 1)]
    found = [*changed, shape[1:], ()] if shape else [(1,)]
    return [other for other in dict.fromkeys(found) if other != shape]


def _resized(name: str, shape: tuple[int, ...], own: str, value: Array) -> Array:
    return np.resize(value, shape).astype(value.dtype) if own == name else value


def _explain(case: Case, variant: Case, names: Sequence[str]) -> None:
    """Raise ``BrokenRuleError`` that names the tensor beyond whose end the kernel reads or writes."""
    if signal_of(lambda: _run(variant, roomy)) is None:
        outputs = [f"output {k}" for k in range(len(variant.prepare().outputs))]
        for name in (*names, *outputs):
            for at_end in (True, False):
                side = "beyond its end" if at_end else "before its start"

                place = functools.partial(_fence_one, name, at_end)
                if signal_of(functools.partial(_run, variant, place)):
                    what = "written" if name in outputs or case.writes(name) else "read"
                    rule = f"{name}: must not be {what} {side}"
                    hint = "" if variant is case else f"\n{_WAY_OUT}"
                    raise BrokenRuleError(rule, f"an access there, called with ({variant}){hint}")
    raise BrokenRuleError("the kernel must not crash", f"a signal when called with ({variant})")


def _fence_one(name: str, at_end: bool, own: str, shape: tuple[int, ...], kind: Any) -> Array:
    return fenced(own, shape, kind, at_end=at_end) if own == name else roomy(own, shape, kind)


CHECKS = (Check("reads inside", "native", reads_inside),)
