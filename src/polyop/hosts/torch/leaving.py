"""Remove operators from ``torch.ops``, once no call of theirs is running in PyTorch any more.

PyTorch frees an operator at once when its library is destroyed, also while its dispatcher is in a call.
That is a call in this thread, as the first call of a module's function shows that it writes in place, or
in another thread, as a name is defined again. So a registration with calls inside stays until they have
ended, and its name is taken until then. Calls are found by the frames of Python that make them: PyTorch's
own functions of an overload, and those of :data:`CALLERS`. A thread that was seen outside of them once has no
call of the old operator any more: new calls find the new one.
"""

from __future__ import annotations

import contextlib
import gc
import inspect
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

import torch

from ...core import locks
from ...core.errors import HostError

CALLERS: dict[CodeType, str] = {}
"""Functions that look an overload up and call it -> the name of the operator in them."""
_OF_TORCH = {
    function.__code__
    for kind in (torch._ops.OpOverload, torch._ops.OpOverloadPacket)
    for name in ("__call__", "redispatch")
    if (function := vars(kind).get(name)) is not None
}
_SUSPENDED = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_leaving: dict[str, _Leaving] = {}


class BusyError(HostError):
    """The name of an operator is that of a replaced one, which PyTorch still runs."""


@dataclass(frozen=True)
class Registration:
    """An operator's overload and library in PyTorch."""

    bound: Any
    overload: Any
    library: Any

    def threads(self) -> set[int]:
        """Return the threads that may have a call of it.

        Of another thread only the functions are known, not which operator they call: to read the variables
        of a frame that runs can crash. Nothing is collected meanwhile: a finaliser lets other threads go on.
        """
        here = threading.get_ident()
        with _uncollected():
            frames = sys._current_frames().items()
            return {thread for thread, frame in frames if self._may_run(frame, is_still=thread == here)}

    def _may_run(self, frame: FrameType, *, is_still: bool) -> bool:
        """Whether a call of it may be in the frame or in its callers; ``is_still`` is that of this thread.

        Other threads go on meanwhile. A frame that has ended keeps its caller, but a generator that has
        given a value has none: where the callers end with one, the thread may have a call that is not seen.
        """
        while True:
            if self._runs(frame) if is_still else frame.f_code in _OF_TORCH or frame.f_code in CALLERS:
                return True
            caller = frame.f_back  # read once: it may change
            if caller is None:
                return not is_still and bool(frame.f_code.co_flags & _SUSPENDED)
            frame = caller

    def _runs(self, frame: FrameType) -> bool:
        if frame.f_code in _OF_TORCH:
            return frame.f_locals.get("self") in (self.overload, self.overload.overloadpacket)
        name = CALLERS.get(frame.f_code)
        return name is not None and frame.f_locals.get(name) is self.bound


@dataclass
class _Leaving:
    """A registration that is to leave, and the threads that have not been seen outside of its calls since."""

    registration: Registration
    threads: set[int]

    def running(self) -> set[int]:
        """Return the threads that may still have a call of it."""
        self.threads &= self.registration.threads()
        return self.threads


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def destroy(library: Any) -> None:
    """Destroy a library; its names can be defined again.

    What PyTorch does again when it collects the library, in any thread, finds no names in it: by then they
    may be those of a new operator.
    """
    library._destroy()
    signatures = getattr(sys.modules.get("torch.fx.operator_schemas"), "_SCHEMA_TO_SIGNATURE_CACHE", {})
    for name in library._op_defs:
        base, _, overload = name.partition(".")
        signatures.pop((base, overload), None)
    torch.library._defs.difference_update(library._op_defs)
    library._op_defs.clear()
    library._op_impls.clear()


def leave(name: str, registration: Registration) -> None:
    """Destroy a registration, now or when it has no call any more. Callers hold ``locks.define``."""
    threads = registration.threads()
    if threads:
        _leaving[name] = _Leaving(registration, threads)
    else:
        destroy(registration.library)


def is_free(name: str) -> bool:
    """Whether no registration that is to leave has the name."""
    return name not in _leaving


def overload_until_left(name: str, bound: Any) -> Any:
    """Return the overload of an operator whose old registration has a call of this thread, else None.

    The name is free then: waits until the calls of other threads have ended. Raises ``BusyError`` if they do
    not, if this thread holds ``locks.define``, which they may need, or if the registration is that of another
    operator and has a call of this thread.
    """
    end = time.monotonic() + locks.FORK_SECONDS
    while True:
        with locks.define:
            old = _leaving.get(name)
            running = old.running() if old is not None else set()
            if old is None or not running:
                if old is not None:
                    del _leaving[name]
                    destroy(old.registration.library)
                return None
        here = threading.get_ident() in running
        if here and old.registration.bound is bound:
            return old.registration.overload
        if here or locks.is_held(locks.define) or time.monotonic() > end:
            rule = "PyTorch may still run the operator that had this name before"
            raise BusyError(name, rule, hint="call the new one after that call has ended")
        time.sleep(0.001)
