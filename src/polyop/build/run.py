"""Compilers run as processes; a word on the terminal when one takes longer than a second."""

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

_PATIENCE = 1.0
_NEEDS_TARGET = "target specific option mismatch"  # gcc's words
_LOCATION = r"(?m)^(.+?)[:(](\d+)(?::\d+)?[:)]:? *(?:fatal )?error\b"


@dataclass(frozen=True, slots=True)
class Finished:
    """A process that has ended, with what it said."""

    command: tuple[str, ...]
    code: int
    output: str


def run(command: Sequence[str]) -> Finished:
    """Run a program to its end. Raises ``BuildError`` when it cannot be started."""
    import subprocess

    try:
        done = subprocess.run(
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
    return Finished(tuple(command), done.returncode, done.stdout)


def failed(subject: str, rule: str, finished: Finished) -> BuildError:
    """Return the error of a compiler that has failed: its own words, where, and the command."""
    if finished.code < 0:
        number = -finished.code
        name = signal.Signals(number).name if number in set(signal.Signals) else str(number)
        said = f"{finished.output}the compiler was killed by {name}; is there enough memory?"
    else:
        said = finished.output.rstrip() or f"the compiler ended with code {finished.code} and said nothing"
    if _NEEDS_TARGET in said:
        said += (
            "\n  the source uses vector instructions that the compiler may not assume: allow them by a flag, "
            "as -mavx2 -mfma (polyop build --flag=-mavx2 --flag=-mfma, or flags= in Python); "
            "-march=native allows all of this machine's"
        )
    place = re.search(_LOCATION, finished.output)
    where = f"{place[1]}:{place[2]}" if place else None
    return BuildError(subject, rule, where=where, hint=f"{said}\n  command: {shlex.join(finished.command)}")


@contextlib.contextmanager
def progress(text: str) -> Iterator[None]:
    """Show ``text`` when the block takes longer than a second: a moving sign, or one line of plain text."""
    ended = threading.Event()
    terminal = os.isatty(sys.__stderr__.fileno() if sys.__stderr__ else -1)

    def show() -> None:
        if ended.wait(_PATIENCE):
            return
        if not terminal:
            print(f"polyop: {text}", file=sys.stderr, flush=True)  # noqa: T201 - what a log shows of the wait
            return
        from rich.console import Console

        with Console(stderr=True).status(text):
            ended.wait()

    shower = threading.Thread(target=show, daemon=True)
    shower.start()
    try:
        yield
    finally:
        ended.set()
        shower.join()
