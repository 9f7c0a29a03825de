"""Show the progress of long builds: a spinner on a terminal, or a line per file where a program asks."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar

from ..core import locks
from ..core.errors import printable
from ..core.log import listener

_AFTER, _STEP = 1.0, 0.5
"""Seconds until a spinner is shown, and between two changes of it."""
_LINES_AFTER = 2.0
"""Seconds. A shorter build prints no lines."""
_MAX_NAMES = 3
"""Files that are named at once."""
_line_per_file: ContextVar[bool] = ContextVar("line_per_file", default=False)


@contextlib.contextmanager
def line_per_file() -> Iterator[None]:
    """Within this context, a long build of several sources prints a line for each, unless on a terminal."""
    before = _line_per_file.set(True)
    try:
        yield
    finally:
        _line_per_file.reset(before)


@contextlib.contextmanager
def progress(text: str | Callable[[], str], *, logged: bool = True, detail: str = "") -> Iterator[None]:
    """Show ``text`` and the seconds if the block takes longer than one: on a terminal, nothing elsewhere.

    If it is ``logged``, the logger ``polyop.build`` gets it (or ``detail``) at once, as a detail.
    """
    now = text if callable(text) else lambda: text
    if logged and (log := listener("build", detail=True)):
        log.debug("%s", detail or now())
    if not _on_terminal():
        yield
        return
    ended, started = threading.Event(), time.monotonic()

    def show() -> None:
        if ended.wait(_AFTER):
            return
        from rich.console import Console
        from rich.text import Text

        def line() -> Text:
            return Text(printable(f"{now()}, {time.monotonic() - started:.0f} s"))

        with Console(stderr=True).status(line()) as status:
            while not ended.wait(_STEP):
                status.update(line())

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _on_terminal() -> bool:
    return os.isatty(sys.__stderr__.fileno() if sys.__stderr__ else -1)


class Count:
    """How many of a build's sources are compiled, and which are being compiled.

    ``names`` are those of the sources, ``label`` is what the build is called.
    """

    def __init__(self, label: str, names: Sequence[str]) -> None:
        self._label, self._names, self._done = label, names, 0
        self._running: dict[int, None] = {}
        self._lock = locks.own("count of compiled files", locks.Level.TABLE)
        self._started, self._unsaid = time.monotonic(), list[str]()
        self._prints = _line_per_file.get() and sys.stderr is not None and not _on_terminal()

    def text(self) -> str:
        """Return what is being done now.

        >>> Count("k.c", ["k.c"]).text()
        'compiling k.c'
        >>> count = Count("a.c, b.c", ["a.c", "b.c"])
        >>> count.found(1)
        >>> with count.compiling(1): count.text()
        'compiled 1 of 2 files, now b.c'
        >>> count.text()
        'linking a.c, b.c'
        """
        if len(self._names) == 1:
            return f"compiling {self._label}"
        with self._lock:
            names = [self._names[number] for number in self._running]
        if self._done == len(self._names):
            return f"linking {self._label}"
        more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
        now = f", now {', '.join(names[:_MAX_NAMES])}{more}" if names else ""
        return f"compiled {self._done} of {len(self._names)} files{now}"

    def found(self, number: int) -> None:
        """Count sources that need no compiler."""
        self._done += number

    @contextlib.contextmanager
    def compiling(self, number: int) -> Iterator[None]:
        """Count a source while the block compiles it, and tell that it is compiled."""
        started = time.perf_counter()
        with self._lock:
            self._running[number] = None
        try:
            yield
        except BaseException:
            self._end(number, 0)
            raise
        done = self._end(number, 1)
        if len(self._names) > 1:
            seconds = time.perf_counter() - started
            self._tell(f"compiled {done} of {len(self._names)}: {self._names[number]} in {seconds:.1f} s")

    def _end(self, number: int, compiled: int) -> int:
        with self._lock:
            del self._running[number]
            self._done += compiled
            return self._done

    def _tell(self, line: str) -> None:
        if log := listener("build"):
            log.info("%s", line)
        elif self._prints:
            with self._lock:
                self._unsaid.append(f"{printable(line)}\n")
                if time.monotonic() - self._started < _LINES_AFTER:
                    return
                lines, self._unsaid = "".join(self._unsaid), []
            sys.stderr.write(lines)
            sys.stderr.flush()
