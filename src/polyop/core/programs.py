"""Start other programs, so that no fork of this process keeps them waiting.

``Popen`` reads a pipe until the new process runs its program. A child of ``os.fork`` that another thread
makes meanwhile has the other end of this pipe open for as long as it lives. So a fork waits until a program
runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import locks

if TYPE_CHECKING:
    import subprocess

_starting = locks.shared("start of a program", locks.Level.TABLE)


def start(command: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
    """Return a new process; ``options`` are those of ``subprocess.Popen``, which raises the same."""
    import subprocess

    with _starting:
        return subprocess.Popen(list(command), **options)


def run(
    command: Sequence[str], timeout: float | None = None, **options: Any
) -> subprocess.CompletedProcess[Any]:
    r"""Run a program to its end; it is killed if that takes more seconds than ``timeout``.

    >>> import subprocess
    >>> run(["echo", "done"], stdout=subprocess.PIPE, text=True).stdout
    'done\n'

    Raises ``subprocess.TimeoutExpired``, and what ``subprocess.Popen`` raises.
    """
    import subprocess

    with start(command, **options) as process:
        try:
            output, errors = process.communicate(timeout=timeout)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(command, process.returncode, output, errors)
