"""The locks of polyop: their order, and that a child of a fork finds them free and what they guard whole."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

from polyop.core import locks
from polyop.core.errors import HostError
from polyop.core.locks import Level

SOURCE = Path(locks.__file__).parents[1]


def test_no_other_module_makes_locks():
    """``functools.cached_property`` has a lock for all objects of a class before Python 3.12."""
    makes = re.compile(
        r"\b(threading|_thread|multiprocessing)\.\w*(Lock|Condition|Semaphore)\b|allocate_lock"
    )
    caches = re.compile(r"functools\.cached_property|from functools import .*cached_property")
    found = [
        f"{path.relative_to(SOURCE)}: {line.strip()}"
        for path in sorted(SOURCE.rglob("*.py"))
        if path != Path(locks.__file__)
        for line in path.read_text().splitlines()
        if makes.search(line) or caches.search(line)
    ]
    assert found == []


@pytest.fixture
def lock():
    """Return a function that makes a lock of a level which no fork waits for, with its check of the order."""
    assert locks.CHECKED
    return lambda level: locks.own(f"lock of level {level.name}", level)


@pytest.mark.parametrize(
    ("first", "second", "allowed"),
    [
        (Level.RUN, Level.TABLE, True),
        (Level.COMPILE, Level.DEFINE, True),
        (Level.DERIVE, Level.DERIVE, True),  # a derived kernel, then its base
        (Level.DEFINE, Level.COMPILE, False),
        (Level.TABLE, Level.DEFINE, False),
        (Level.TABLE, Level.TABLE, False),
        (Level.COMPILE, Level.COMPILE, False),
    ],
)
def test_order(lock, first: Level, second: Level, allowed: bool):
    outer, inner = lock(first), lock(second)
    with outer:
        with outer:  # a lock that the thread holds is no new one
            pass
        if allowed:
            with inner:
                pass
        else:
            with pytest.raises(AssertionError, match=f"lock of level {second.name}' is taken after"):
                inner.acquire()
    with inner, inner:
        pass


def test_nothing_is_compiled_while_a_fork_would_wait():
    locks.check_may_compile()
    with locks.define, pytest.raises(AssertionError, match="definitions of operators"):
        locks.check_may_compile()


def in_child(work: Callable[[], object]) -> int:
    """Return the exit code of a forked child that runs ``work``: 0 if it returned True."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python 3.12 warns of forks beside threads
        child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.alarm(60)
            code = 0 if work() is True else 2
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


class Holder:
    """A thread that holds a lock until :meth:`end`."""

    def __init__(self, lock: locks.Lock) -> None:
        self.lock, self.holds, self.ends = lock, threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()
        assert self.holds.wait(60)

    def run(self) -> None:
        with self.lock:
            self.holds.set()
            assert self.ends.wait(60)

    def end(self) -> None:
        self.ends.set()
        self.thread.join()


def take(lock: locks.Lock) -> bool:
    with lock:
        return True


def take_in_threads(lock: locks.Lock) -> bool:
    threads = [threading.Thread(target=take, args=(lock,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return take(lock)


@pytest.mark.parametrize("work", [take, take_in_threads])
def test_a_lock_of_its_own_is_free_in_the_child(lock, work):
    one = lock(Level.COMPILE)
    holder = Holder(one)
    try:
        assert in_child(lambda: work(one)) == 0
        assert not one.acquire(blocking=False), "the parent's thread still holds it"
    finally:
        holder.end()
    assert take(one)


def test_what_the_forking_thread_holds_stays_held(lock):
    one = lock(Level.COMPILE)
    with one, locks.define:
        assert in_child(lambda: take(one) and take(locks.define)) == 0

        def other_thread_waits() -> bool:
            got = []
            thread = threading.Thread(target=lambda: got.append(one.acquire(timeout=0.05)))
            thread.start()
            thread.join()
            return got == [False]

        assert in_child(other_thread_waits) == 0


def test_a_fork_waits_for_a_change_of_several_steps():
    """The child sees both steps or neither."""
    steps: list[int] = []
    begun, end = threading.Event(), threading.Event()

    def change() -> None:
        with locks.define:
            steps.append(1)
            begun.set()
            end.wait(0.2)
            steps.append(2)

    thread = threading.Thread(target=change)
    thread.start()
    assert begun.wait(60)
    assert in_child(lambda: steps == [1, 2] and take(locks.define)) == 0
    thread.join()


def test_beyond_the_limit_the_child_refuses(monkeypatch):
    """A holder that waits for the forking thread would hang both."""
    monkeypatch.setattr(locks, "FORK_SECONDS", 0.1)
    holder = Holder(locks.define)

    def refuses() -> bool:
        import polyop

        with pytest.raises(HostError, match="definitions of operators.*\n.*forkserver"):
            polyop.operator("locks::late(Tensor x) -> Tensor", lambda x: x, infer="x")
        return True

    try:
        assert in_child(refuses) == 0
        grandchildren: list[int] = []
        assert in_child(lambda: grandchildren.append(in_child(refuses)) or grandchildren == [0]) == 0
    finally:
        holder.end()
    assert take(locks.define)


@pytest.mark.parametrize("how", ["import slow_to_import", "import_module('slow_to_import')"])
def test_a_fork_waits_for_imports_of_polyop(tmp_path, monkeypatch, how: str):
    """A child would wait for ever for the lock of a module that another thread was importing."""
    (tmp_path / "slow_to_import.py").write_text("import time\ntime.sleep(0.3)\nvalue = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    begun = threading.Event()
    scope = {"__name__": "polyop.imports_late", "begun": begun, "sys": sys, "import_module": import_module}
    text = f"def imports():\n    begun.set()\n    {how}\n    return sys.modules['slow_to_import'].value == 1"
    exec(text, scope)
    imports: Callable[[], bool] = scope["imports"]  # type: ignore[assignment]
    thread = threading.Thread(target=imports)
    thread.start()
    try:
        assert begun.wait(60)
        while "slow_to_import" not in sys.modules:
            pass
        assert in_child(imports) == 0
    finally:
        thread.join()
        sys.modules.pop("slow_to_import", None)


def test_a_cached_property_is_computed_once():
    class Counted:
        computed = 0

        @locks.cached_property
        def value(self) -> int:
            """Its document."""
            self.computed += 1
            return self.computed

    one, other = Counted(), Counted()
    assert (one.value, one.value, other.value, one.computed) == (1, 1, 1, 1)
    assert Counted.value.__doc__ == "Its document."
