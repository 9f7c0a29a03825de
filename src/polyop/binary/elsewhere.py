"""Load a library in another process first, so that a crash is an error: by the loader alone, or opened.

The loader is started as a program: it maps the file and relocates it, as it does for ``ldd -r``, and says
which libraries it found. None of the library's code runs. That takes about a millisecond.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

from ..core import programs
from ..core.errors import LibraryError
from .allowed import check_allowed
from .elf import opened
from .elf_tables import Damaged
from .file_kind import file_problem, subject_of

_PATH = "import sys; sys.path[:] = [one for one in sys.path if one]; "  # not the current folder's modules
_LOADER_SECONDS, _OPEN_SECONDS = 60, 300
"""After so long a loader, or a process that opens a library, is ended: the library counts as broken."""
_CRASHES = (signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGILL, signal.SIGFPE)
_TRACED = {"LD_TRACE_LOADED_OBJECTS": "1", "LD_WARN": "1", "LD_BIND_NOW": "1"}


def loading_problem(path: Path) -> str | None:
    """Return why a library cannot be loaded on any machine of its kind, or None.

    Libraries and symbols that are missing are no such reason: they may be there where it is used.
    """
    wrong = file_problem(path)
    if wrong is not None:
        return str(wrong)
    try:
        with opened(path) as elf:
            if not elf.is_whole:
                return "it is shorter than its own headers say"
            machine = elf.machine
    except (OSError, Damaged) as problem:
        return str(problem)
    loader, own = _loader()
    return _refusal(loader, path) if loader and machine == own else None


def _refusal(loader: str, path: Path) -> str | None:
    command = [loader, str(path.absolute())]
    try:
        done = programs.run(
            command,
            _LOADER_SECONDS,
            env={**os.environ, **_TRACED},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if -done.returncode in _CRASHES:
        return f"the loader crashes: {signal.Signals(-done.returncode).name}"
    # 127 is the loader's own code; its message may also be about a library that this one needs
    text = done.stderr.decode(errors="backslashreplace").strip()
    own = f"libraries: {path.absolute()}: " in text or "Inconsistency detected" in text
    return text.rpartition("libraries: ")[2] if done.returncode == 127 and own else None


@cache
def _loader() -> tuple[str, int]:
    """Return the loader of this process and its machine; "" for another one than glibc's."""
    try:
        with opened("/proc/self/exe") as elf:
            path = elf.interpreter
            known = Path(path).name.startswith("ld-linux") and os.access(path, os.X_OK)
            return path if known else "", elf.machine
    except (OSError, Damaged):
        return "", 0


class Opened(NamedTuple):
    """What a process that opened a library has written, and its exit code; that of a signal is negative."""

    output: str
    errors: str
    code: int


def open_elsewhere(path: Path, program: str, hint: str | None = None) -> Opened:
    """Return what :func:`run_elsewhere` returns, which raises; ``LibraryError`` if the process dies, too."""
    opened = run_elsewhere(path, program)
    if opened.code < 0:
        name = signal.Signals(-opened.code).name
        rule = f"ended the process that opened it with {name}: code that runs when it is opened crashes"
        said = "\n".join(part.rstrip() for part in (opened.output, opened.errors) if part.strip())
        raise LibraryError(subject_of(path), rule, hint="\n  ".join(filter(None, (hint, said))) or None)
    return opened


def run_elsewhere(path: Path, program: str) -> Opened:
    """Return what a Python program writes that opens the library, whose path is ``sys.argv[1]``.

    Raises ``LibraryError`` if that process does not end, and ``ArgumentTypeError`` for a library outside the
    folders that may be opened.
    """
    check_allowed(path)
    command = [sys.executable, "-c", _PATH + program, str(path)]
    try:
        done = programs.run(command, _OPEN_SECONDS, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except subprocess.TimeoutExpired:
        rule = f"did not open within {_OPEN_SECONDS} seconds: code that runs when it is opened goes on"
        raise LibraryError(subject_of(path), rule) from None
    output, errors = (text.decode(errors="backslashreplace") for text in (done.stdout, done.stderr))
    return Opened(output, errors, done.returncode)
