"""Run compilers as processes, turn their failures into errors, and show progress after a second."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..core.errors import BuildError
from ..core.log import listener

_PROGRESS_AFTER = 1.0
"""Seconds."""
_NEEDS_TARGET = "target specific option mismatch"  # gcc's message about an intrinsic
_LOCATION = r"(?m)^(.+?)[:(](\d+)(?::\d+)?[:)]:? *(?:fatal )?error\b"


@dataclass(frozen=True, slots=True)
class Finished:
    """A process that has ended: its exit code, and its output (stdout and stderr together)."""

    command: tuple[str, ...]
    code: int
    output: str


def run(command: Sequence[str]) -> Finished:
    """Run a program to its end. Raises ``BuildError`` if it cannot be started."""
    import subprocess

    try:
        process = subprocess.run(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
    except OSError as problem:
        raise BuildError(command[0], "cannot be run", problem.strerror or problem) from None
    return Finished(tuple(command), process.returncode, process.stdout)


def failed(subject: str, rule: str, finished: Finished) -> BuildError:
    """Return the error of a compiler that has failed, with its output, the source line and the command."""
    if finished.code < 0:
        number = -finished.code
        name = signal.Signals(number).name if number in set(signal.Signals) else str(number)
        output = f"{finished.output}the compiler was killed by {name}; is there enough memory?"
    else:
        output = finished.output.rstrip() or f"the compiler ended with code {finished.code} and said nothing"
    if _NEEDS_TARGET in output:
        output += (
            "\n  the source uses vector instructions that the compiler may not assume: allow them by a flag, "
            "as -mavx2 -mfma (polyop build --flag=-mavx2 --flag=-mfma, or flags= in Python); "
            "-march=native allows all of this machine's"
        )
    location = re.search(_LOCATION, finished.output)
    where = f"{location[1]}:{location[2]}" if location else None
    return BuildError(subject, rule, where=where, hint=f"{output}\n  command: {shlex.join(finished.command)}")


@contextlib.contextmanager
def progress(text: str, *, logged: bool = True) -> Iterator[None]:
    """Show ``text`` if the block takes longer than a second: a spinner on a terminal, nothing elsewhere.

    If it is ``logged``, the logger ``polyop.build`` gets it at once, as a detail.
    """
    if logged and (log := listener("build", detail=True)):
        log.debug("%s", text)
    if not os.isatty(sys.__stderr__.fileno() if sys.__stderr__ else -1):
        yield
        return
    ended = threading.Event()

    def show() -> None:
        if ended.wait(_PROGRESS_AFTER):
            return
        from rich.console import Console

        with Console(stderr=True).status(text):
            ended.wait()

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
