"""How long a process has worked or waited: other work on the machine does not count.

These are the seconds of processors that it and all that it started took, and those in which none of them was
ready to run: a process that waits for ever does not work.
"""

from __future__ import annotations

import contextlib
import glob
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

STEP_S = 0.5
TICK = os.sysconf("SC_CLK_TCK")
READY = frozenset("RD")


def stats_of(pattern: str) -> Iterator[list[str]]:
    """Yield the fields that Linux has of processes or threads, from the state on."""
    # Path.glob fails where a folder has gone meanwhile
    for path in glob.glob(f"/proc/{pattern}"):  # noqa: PTH207
        with contextlib.suppress(OSError):  # it has ended
            yield Path(path).read_text().rpartition(")")[2].split()


class Watched:
    """A process with a session of its own; it is ended, with all that it started, after so many seconds.

    ``flag`` is a file that is written before that, when no further test should begin.
    """

    def __init__(self, process: subprocess.Popen[bytes], limit: float, flag: Path, flag_s: float) -> None:
        self.process, self.limit, self.flag, self.flag_s = process, limit, flag, flag_s
        self.worked = self.waited = 0.0

    @property
    def seconds(self) -> float:
        """How long it has worked or waited."""
        return self.worked + self.waited

    def status(self) -> int | None:
        """Wait, and return the status of the process; None if it was ended here."""
        try:
            while self.seconds < self.limit:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    return self.process.wait(STEP_S)
                self.look()
                if self.seconds > self.flag_s:
                    self.flag.touch()
            return None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def look(self) -> None:
        """Add what the processes did since the last look."""
        session = self.process.pid
        own = (fields for fields in stats_of("[0-9]*/stat") if int(fields[3]) == session)
        ticks = sum(
            int(time) for fields in own for time in fields[11:15]
        )  # with those of children that ended
        threads = (fields for fields in stats_of("[0-9]*/task/[0-9]*/stat") if int(fields[3]) == session)
        self.worked = max(self.worked, ticks / TICK)
        if not any(fields[0] in READY for fields in threads):
            self.waited += STEP_S
