"""Run compilers as processes, and turn their failures into errors."""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import shlex
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..core import locks, programs
from ..core.errors import ArgumentValueError, BuildError
from .left_out import left_out

if TYPE_CHECKING:
    import subprocess

TIMEOUT = "POLYOP_BUILD_TIMEOUT"
_SECONDS, _SHARE_OF_QUESTION = 1800, 1 / 30
"""How long a compiler may take without that variable; which part of it, a question such as ``--version``."""
_MAX_OUTPUT = 2**20
"""Bytes of a program's output that are kept."""
_NEEDS_TARGET = r"(?m)^(.+?):(\d+):\d+: error: .*target specific option mismatch"  # gcc's, at an intrinsic
_TARGET = re.compile(r'#pragma GCC target ?\("([^"+]+)"\)')
_REFUSAL = r"(?<!fatal )\b[Ee]rror ?: *(.+)"  # not a missing header, nor a compiler that was killed
_LOCATION = r"(?m)^(.+?)[:(](\d+)(?::\d+)?[:)]:? *(?:fatal )?error\b"


@dataclass(frozen=True, slots=True)
class Finished:
    """A process that has ended: its exit code, and its output (stdout and stderr together)."""

    command: tuple[str, ...]
    code: int
    output: str


class RefusedError(BuildError):
    """A compiler that found an error in a source; another source may compile.

    ``said``: its first message. ``path``: the file that it names, "" if it names none.
    """

    said = ""
    path = ""


class Processes:
    """The programs of one build that run now. Other threads wait for them; :meth:`end` ends all of them."""

    def __init__(self) -> None:
        self._lock = locks.own("programs of a build", locks.Level.TABLE)
        self._running: set[subprocess.Popen[bytes]] = set()
        self._ended = False

    @contextlib.contextmanager
    def holding(self, process: subprocess.Popen[bytes]) -> Iterator[None]:
        """Count a program in while the block runs; it is ended at once if the others have been."""
        with self._lock:
            self._running.add(process)
            if self._ended:
                _end(process)
        try:
            yield
        finally:
            with self._lock:
                self._running.discard(process)

    def end(self) -> None:
        """End all programs with what they have started, and every later one."""
        with self._lock:
            self._ended = True
            for process in self._running:
                _end(process)


def time_limit() -> float | None:
    """Return how many seconds a compiler may take, None for any time. Raises ``ArgumentValueError``."""
    text = os.environ.get(TIMEOUT, "").strip()
    try:
        seconds = float(text or _SECONDS)
    except ValueError:
        seconds = -1.0
    if not seconds >= 0:  # also not a number
        hint = f"{TIMEOUT}={_SECONDS} is what holds without it; 0 is no limit"
        raise ArgumentValueError(TIMEOUT, "must be a number of seconds", repr(text), hint=hint)
    return min(seconds, threading.TIMEOUT_MAX) or None


def run(command: Sequence[str], processes: Processes | None = None, *, asks: bool = False) -> Finished:
    """Run a program to its end. What it has started is ended with it if this function raises.

    ``asks`` is for a question, such as the version: it may take a thirtieth of the time limit.
    Raises ``BuildError`` if it cannot be started, or takes longer than the time limit.
    """
    import subprocess

    limit = time_limit()
    if limit is not None and asks:
        limit *= _SHARE_OF_QUESTION
    try:
        process = programs.start(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # the compilers that a driver starts belong to it, and are ended with it
        )
    except OSError as problem:
        raise BuildError(command[0], "cannot be run", problem.strerror or problem) from None
    with process, (processes or Processes()).holding(process):
        try:
            output = _output(process, limit)
        except subprocess.TimeoutExpired:
            _end(process)
            raise _too_slow(command, limit or 0) from None
        except BaseException:  # Ctrl-C
            _end(process)
            raise
    return Finished(tuple(command), process.returncode, output)


def _output(process: subprocess.Popen[bytes], limit: float | None) -> str:
    """Return what a program has written when it has ended, at most the first ``_MAX_OUTPUT`` bytes.

    What it has started may go on and hold the pipe open, as the server of a compiler cache does. Raises
    ``subprocess.TimeoutExpired``.
    """
    end = time.monotonic() + (threading.TIMEOUT_MAX if limit is None else limit)
    assert process.stdout is not None
    pipe, text = process.stdout.fileno(), bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while time.monotonic() < end:
            ended = process.poll() is not None
            if ended:  # what is in the pipe is read; a second is enough for that
                end = min(end, time.monotonic() + 1)
            if selector.select(0 if ended else 0.05):
                part = os.read(pipe, 2**16)
                if not part:
                    break
                text += part[: _MAX_OUTPUT - len(text)]
            elif ended:
                break
    if process.returncode is None:
        process.wait(max(0.0, end - time.monotonic()))
    return text.decode(errors="replace").replace("\r\n", "\n")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a program that was not waited for yet, and what it has started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)


def _too_slow(command: Sequence[str], limit: float) -> BuildError:
    rule = f"did not end within {limit:g} seconds, and was ended"
    hint = f"if it needs longer: {TIMEOUT}={2 * (time_limit() or 0):g} (seconds; 0 is no limit)"
    return BuildError(command[0], rule, hint=f"{hint}\n  command: {shlex.join(command)}")


def failed(subject: str, rule: str, finished: Finished) -> BuildError:
    """Return the error of a compiler that has failed, with its output, the source line and the command.

    It is a ``RefusedError`` if the compiler names an error in the source.
    """
    if finished.code < 0:
        number = -finished.code
        name = signal.Signals(number).name if number in set(signal.Signals) else str(number)
        output = f"{finished.output}the compiler was killed by {name}; is there enough memory?"
    else:
        output = finished.output.rstrip() or f"the compiler ended with code {finished.code} and said nothing"
    if refused := re.findall(_NEEDS_TARGET, output):
        output += "\n  the source uses instructions that the compiler may not assume: allow them by "
        if flags := _flags_of(refused):
            by_verb = " ".join(f"--flag={flag}" for flag in flags)
            output += f"{' '.join(flags)} (polyop build {by_verb}, or flags= in Python), or by "
        output += "-march=native, which allows all of this machine's"
    location = re.search(_LOCATION, finished.output)
    output += "".join(f"\n  {note}" for note in (left_out(location[1]) if location else ()))
    where = f"{location[1]}:{location[2]}" if location else None
    hint = f"{output}\n  command: {shlex.join(finished.command)}"
    said = re.search(_REFUSAL, finished.output) if finished.code > 0 else None
    if said is None:
        return BuildError(subject, rule, where=where, hint=hint)
    error = RefusedError(subject, rule, where=where, hint=hint)
    error.said, error.path = said[1].strip(), location[1] if location else ""
    return error


def _flags_of(intrinsics: Sequence[tuple[str, str]]) -> list[str]:
    """Return the flags that allow intrinsics: ahead of each, its header says what it is compiled for."""
    flags: dict[str, None] = {}
    for path, line in intrinsics:
        with contextlib.suppress(OSError):
            before = Path(path).read_text(errors="replace").splitlines()[: int(line)]
            targets = [found[1] for found in map(_TARGET.match, before) if found]
            flags |= {f"-m{name}": None for name in (targets[-1].split(",") if targets else ())}
    return sorted(flags)
