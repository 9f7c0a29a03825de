"""Ask the system's loader, in another process, whether it can load a library; none of its code runs.

The loader is started as a program: it maps the file and relocates it, as it does for ``ldd -r``, and says
which libraries it found. That takes about a millisecond.
"""

from __future__ import annotations

import os
import signal
from functools import cache
from pathlib import Path

from .elf import opened
from .elf_tables import Damaged
from .file_kind import file_problem

_SECONDS = 60
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
    import subprocess

    command = [loader, str(path.absolute())]
    try:
        done = subprocess.run(
            command,
            env={**os.environ, **_TRACED},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=_SECONDS,
            check=False,
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
