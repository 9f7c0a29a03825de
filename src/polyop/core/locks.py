"""All locks of polyop: their names, the order in which a thread takes them, and what a fork does to them.

A thread takes locks in the order of :class:`Level`; at one level it holds one lock, except at ``DERIVE``.
``POLYOP_CHECK_LOCKS=1`` raises ``AssertionError`` where a thread does otherwise, also if nothing hangs.

A child of ``os.fork`` has the forking thread alone. It must neither wait for a lock of another thread nor see
what that thread has half done. So there are two kinds of lock:

* Those of :func:`shared` guard what changes in several steps: a definition registers an operator in tables
  and in PyTorch. A fork waits for them, so the child sees each change before it began or after it has ended.
  Their holders never wait for a compiler, nor for a lock under which one runs.
* Those of :func:`own` are held while something takes long: a compilation takes 20 seconds. A fork does not
  wait, and in the child they are free. What they guard changes in one step at the end, by storing the result
  in a dict. So the child finds nothing there, and makes it itself.

A fork also waits until other threads have ended the imports that polyop's code makes: Python's lock of such
a module would never become free in the child.

A fork waits ``FORK_SECONDS`` at most. Beyond that the child cannot use what the lock guards: to take it
raises ``HostError``. The usual cause is that the forking thread itself keeps the other one waiting.
"""

from __future__ import annotations

import enum
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

from .errors import HostError

FORK_SECONDS = 20.0
"""Seconds that a fork waits for other threads."""
CHECKED = os.environ.get("POLYOP_CHECK_LOCKS", "") not in ("", "0")


class Level(enum.IntEnum):
    """Where a lock is in the order: a thread that holds one takes locks of later levels only."""

    RUN = 1  # a framework's state that a kernel changes while it runs; the kernel may call any operator
    COMPILE = 2  # compiling a kernel: whoever holds a later lock does not wait for a compiler
    DEFINE = 3  # the tables of operators, and their registrations in frameworks
    DERIVE = 4  # the typed forms of one kernel; a derived kernel takes its base's lock while it holds its own
    OPEN = 5  # opening libraries
    TABLE = 6  # a few statements on one table


_RLock: Any = type(threading.RLock())


class Lock(_RLock):  # type: ignore[misc]
    """A reentrant lock with a name and a level. :func:`shared` and :func:`own` make them."""

    name: str
    level: Level


_forks = 0
"""How many threads wait to fork. Others give way to them: a lock of Python is not fair."""


class _Shared(Lock):
    """A lock for which a fork waits."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        if is_held(self):
            return bool(super().acquire(blocking, timeout))
        _give_way()
        try:
            return bool(super().acquire(blocking, timeout))
        except BaseException:
            if is_held(self):  # interrupted right after it was taken
                super().release()
            raise

    __enter__ = acquire


def _give_way() -> None:
    """Wait while another thread wants to fork, unless this one has a lock that the fork waits for."""
    end = time.monotonic() + FORK_SECONDS if _forks else 0.0
    while _forks and not any(map(is_held, _shared)) and time.monotonic() < end:
        time.sleep(0.001)


class _Lost(Lock):
    """A lock whose holder is not in this process: a fork has waited for it in vain."""

    def acquire(self, *_: Any, **__: Any) -> bool:
        waited = f"for more than {FORK_SECONDS:.0f} s"
        rule = f"this process was forked while a thread was in polyop's {self.name} {waited}"
        hint = "fork before other threads define operators, or use the start method 'forkserver' or 'spawn'"
        raise HostError("fork", rule, hint=hint)

    __enter__ = acquire


def check_may_compile() -> None:
    """Raise ``AssertionError`` if this thread holds a lock for which a fork would wait while it compiles."""
    late = [lock.name for lock in _held.locks if lock.level > Level.COMPILE]
    if late:
        raise AssertionError(f"a compiler runs while a thread holds {', '.join(late)}: see polyop.core.locks")


class _Held(threading.local):
    """The locks that a thread holds, the last one last."""

    def __init__(self) -> None:
        self.locks: list[Lock] = []


_held = _Held()  # for _Checked


class _Checked(_Shared):
    """A lock that raises if it is taken against the order."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        if self not in _held.locks and _held.locks:
            last = max(_held.locks, key=lambda lock: lock.level)
            nested = self.level == last.level == Level.DERIVE
            if self.level <= last.level and not nested:
                before = " > ".join(lock.name for lock in _held.locks)
                raise AssertionError(f"the lock {self.name!r} is taken after {before}: see polyop.core.locks")
        taken = bool(super().acquire(blocking, timeout))
        if taken:
            _held.locks.append(self)
        return taken

    __enter__ = acquire

    def release(self) -> None:
        del _held.locks[len(_held.locks) - 1 - _held.locks[::-1].index(self)]
        super().release()

    def __exit__(self, *_: object) -> None:
        self.release()


_shared: list[Lock] = []
_own: weakref.WeakSet[Lock] = weakref.WeakSet()


def _make(kind: type[Lock], name: str, level: Level) -> Lock:
    lock = _Checked() if CHECKED else kind()
    lock.name, lock.level = name, level
    return lock


def shared(name: str, level: Level) -> Lock:
    """Return a lock of the process, for which a fork waits. Call it where a module is loaded."""
    lock = _make(_Shared, name, level)
    _shared.append(lock)
    _shared.sort(key=lambda one: one.level)
    return lock


def is_held(lock: Lock) -> bool:
    """Whether this thread holds a lock."""
    return bool(lock._is_owned())  # noqa: SLF001


def own(name: str, level: Level) -> Lock:
    """Return a lock that is free in the child of a fork, for what changes in one step."""
    lock = _make(Lock, name, level)
    _own.add(lock)
    return lock


define = shared("definitions of operators", Level.DEFINE)
"""Held from the check of a name until the operator is whole: in the tables, and in every framework."""


_for_fork = _Held()  # the locks that a forking thread has taken for the fork


def _before_fork() -> None:
    global _forks  # noqa: PLW0603 - changed while Python's lock is held
    _forks += 1
    try:
        _take_all()
    finally:
        _forks -= 1


def _take_all() -> None:
    end = time.monotonic() + FORK_SECONDS
    while True:
        for lock in _shared:
            if not isinstance(lock, _Lost) and _RLock.acquire(lock, True, max(0.0, end - time.monotonic())):
                _for_fork.locks.append(lock)
        if not _importing() or time.monotonic() > end:
            return
        _release()  # an import may need one of the locks to end
        time.sleep(0.002)


def _release() -> None:
    while _for_fork.locks:
        _RLock.release(_for_fork.locks.pop())


def _in_child() -> None:
    global _forks  # noqa: PLW0603
    _forks = 0  # the other threads that wanted to fork are not here
    for lock in _shared:
        if lock in _for_fork.locks:
            continue
        if _RLock.acquire(lock, False):  # the wait was interrupted
            _RLock.release(lock)
        else:
            lock._at_fork_reinit()  # noqa: SLF001 - Python's own modules call it in the same place
            lock.__class__ = _Lost
    _release()
    for lock in list(_own):
        if not is_held(lock):
            lock._at_fork_reinit()  # noqa: SLF001


def _importing() -> bool:
    """Whether another thread is in an import that polyop's code makes."""
    me = threading.get_ident()
    return any(_imports(frame) for thread, frame in sys._current_frames().items() if thread != me)  # noqa: SLF001


def _imports(frame: Any) -> bool:
    in_import = False
    while frame is not None:
        package = str(frame.f_globals.get("__name__")).partition(".")[0]
        if package == "polyop" and in_import:
            return True
        in_import = package in ("importlib", "_frozen_importlib", "_frozen_importlib_external")
        frame = frame.f_back
    return False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_release, after_in_child=_in_child)

Value = TypeVar("Value")


class cached_property(Generic[Value]):  # noqa: N801 - the name that it has in functools
    """``functools.cached_property`` without a lock: before Python 3.12 that has one for all objects.

    Two threads that read it at the same time may both compute the value; both get the one that was first.
    """

    def __init__(self, function: Callable[[Any], Value]) -> None:
        """Take the function that computes the value."""
        self.function, self.__doc__ = function, function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        """Store the value under the attribute's name."""
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> cached_property[Value]: ...

    @overload
    def __get__(self, instance: object, owner: type) -> Value: ...

    def __get__(self, instance: object, owner: type) -> Any:
        """Compute the value and keep it in the object, where later reads find it."""
        if instance is None:
            return self
        value = self.function(instance)
        return vars(instance).setdefault(self.name, value)
