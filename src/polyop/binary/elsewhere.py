"""Open a library in another process first, so that a crash becomes an error message."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from ..core.errors import LibraryError
from .allowed import check_allowed
from .file_kind import subject_of

_SECONDS = 300
_PATH = "import sys; sys.path[:] = [one for one in sys.path if one]; "  # not the current folder's modules


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
        done = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        rule = f"did not open within {_SECONDS} seconds: code that runs when it is opened goes on"
        raise LibraryError(subject_of(path), rule) from None
    output, errors = (text.decode(errors="backslashreplace") for text in (done.stdout, done.stderr))
    return Opened(output, errors, done.returncode)
