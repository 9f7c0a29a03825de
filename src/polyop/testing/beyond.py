"""Find reads outside the tensors of a native kernel, above all for sizes that do not fit together.

    | no access | ... tensor | no access |        at_end=True: finds an access past the end
    | no access | tensor ... | no access |        at_end=False: finds an access before the start

Each tensor lies between pages without access, so a wrong access ends the process with a signal. The
kernel therefore runs in a forked child, and a counter in shared memory says which call ended it.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..kernels.c_function import CFunctionKernel
from .case import Array, BrokenRuleError, Case, Check, NotRunError
from .crash import signal_of
from .native import run_in_place

PAGE = mmap.PAGESIZE
Place = Callable[[str, tuple[int, ...], Any], Array]
"""Allocates a tensor of zeros, by name, shape and dtype."""

_WAY_OUT = (
    "the infer rule takes these sizes: it must raise for those that the kernel cannot run on (infer= a "
    "function, out_shape= a function, or <Func>InferShape), or the kernel must look at them and fail"
)
_mappings: list[mmap.mmap] = []
"""Keeps the memory of arrays alive in the forked child, which ends without cleaning up."""


def fenced(name: str, shape: tuple[int, ...], kind: Any, *, at_end: bool = True) -> Array:
    """Return an array of zeros that ends at a page without access, or that starts at one."""
    del name
    size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    room = -(-max(size, 1) // PAGE) * PAGE
    memory = mmap.mmap(-1, room + 2 * PAGE)
    _mappings.append(memory)
    pages = np.frombuffer(memory, np.uint8)
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    for fence in (pages.ctypes.data, pages.ctypes.data + PAGE + room):
        if protect(ctypes.c_void_p(fence), ctypes.c_size_t(PAGE), 0):
            raise NotRunError("this system does not let memory be protected")
    start = PAGE + (room - size if at_end else 0)
    return pages[start : start + size].view(kind).reshape(shape)


def roomy(name: str, shape: tuple[int, ...], kind: Any) -> Array:
    """Return an array of zeros between two readable megabytes: a wrong access there does no harm."""
    del name
    size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    return np.zeros(size + 2 * _ROOM, np.uint8)[_ROOM : _ROOM + size].view(kind).reshape(shape)


_ROOM = 1 << 20


def reads_inside(case: Case) -> str | None:
    """Run the native kernel on fenced tensors, in the sample's sizes and in others that do not fit."""
    kernel = case.prepare().kernel
    if not isinstance(kernel, CFunctionKernel) or kernel.device != "cpu":
        raise NotRunError(f"{kernel} is no C function for the CPU")
    names = [name for name, _ in case.tensors()]
    variants = [case, *_misfits(case)]
    accepted = [variant for variant in variants if _is_accepted(variant)]
    progress = np.frombuffer(mmap.mmap(-1, PAGE), np.int64)  # shared with the child

    def attempt() -> None:
        for number, variant in enumerate(accepted):
            progress[0] = number
            for at_end in (True, False):
                _run(variant, functools.partial(fenced, at_end=at_end))

    if signal_of(attempt):
        _explain(case, accepted[int(progress[0])], names)
    refused = len(variants) - len(accepted)
    return f"{refused} of {len(variants) - 1} sizes that do not fit are refused" if refused else None


def _is_accepted(variant: Case) -> bool:
    try:
        return isinstance(variant.prepare().kernel, CFunctionKernel)
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
    """Yield the case with the sizes of one tensor changed; integers are 0, because they may be indices."""
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
    shapes = [*changed, shape[1:], ()] if shape else [(1,)]
    return [other for other in dict.fromkeys(shapes) if other != shape]


def _resized(target: str, shape: tuple[int, ...], name: str, value: Array) -> Array:
    return np.resize(value, shape).astype(value.dtype) if name == target else value


def _explain(case: Case, variant: Case, names: Sequence[str]) -> None:
    """Raise ``BrokenRuleError`` with the tensor that the kernel reads or writes outside of.

    Tensors are fenced one by one: the one whose fence ends the child is it.
    """
    if signal_of(lambda: _run(variant, roomy)) is None:
        outputs = [f"output {k}" for k in range(len(variant.prepare().outputs))]
        for name in (*names, *outputs):
            for at_end in (True, False):
                side = "beyond its end" if at_end else "before its start"

                place = functools.partial(_fence_one, name, at_end)
                if signal_of(functools.partial(_run, variant, place)):
                    access = "written" if name in outputs or case.writes(name) else "read"
                    rule = f"{name}: must not be {access} {side}"
                    hint = "" if variant is case else f"\n{_WAY_OUT}"
                    raise BrokenRuleError(rule, f"an access there, called with ({variant}){hint}")
    raise BrokenRuleError("the kernel must not crash", f"a signal when called with ({variant})")


def _fence_one(target: str, at_end: bool, name: str, shape: tuple[int, ...], kind: Any) -> Array:
    return fenced(name, shape, kind, at_end=at_end) if name == target else roomy(name, shape, kind)


CHECKS = (Check("reads inside", "native", reads_inside),)
