"""Run programs that start processes or wait for each other; none of the processes outlives the test."""

import contextlib
import os
import signal
import subprocess
import sys


def start(*arguments):
    """Return the process of a Python program, in a process group of its own."""
    command = [sys.executable, *map(str, arguments)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def outputs(programs, *, unending=(), seconds=240):
    """Return the return code, the output and the errors of programs that end, then of the unending ones.

    The latter are killed when the others have ended. Raises ``TimeoutExpired``.
    """
    try:
        texts = [program.communicate(timeout=seconds) for program in programs]
    finally:
        for program in (*programs, *unending):
            with contextlib.suppress(ProcessLookupError):  # nothing of its group is left
                os.killpg(program.pid, signal.SIGKILL)
            program.wait()
    texts += [program.communicate() for program in unending]
    return [(program.returncode, *text) for program, text in zip((*programs, *unending), texts, strict=True)]
