"""Where what is meant for Ascend runs: on CANN, or in rehearsal on the CPU."""

from __future__ import annotations

import os
import threading
import warnings

from ...core.errors import ArgumentValueError, FallbackWarning, HostError
from . import cann

VARIABLE = "POLYOP_ASCEND"
REHEARSE = "rehearse"

_lock = threading.Lock()
_warned = False


def ascend(above: int = 0) -> str:
    """Return "cann", or "rehearse" when ``POLYOP_ASCEND=rehearse`` is set.

    The first rehearsal of a process gives ``FallbackWarning`` at the caller, or so many frames
    ``above`` it. Raises ``HostError`` where there is neither CANN nor the switch, and
    ``ArgumentValueError`` for another value of it.
    """
    value = os.environ.get(VARIABLE)
    if value is not None and value != REHEARSE:
        raise ArgumentValueError(VARIABLE, f"must be {REHEARSE!r} or unset", repr(value))
    if value == REHEARSE:
        _warn(above)
        return REHEARSE
    if cann.available():
        return "cann"
    rule = "CANN is not installed: libascendcl.so and libopapi.so cannot be opened"
    hint = f"set ASCEND_HOME_PATH, or rehearse on the CPU: {VARIABLE}={REHEARSE}"
    raise HostError("Ascend", rule, hint=hint)


def _warn(above: int) -> None:
    global _warned  # noqa: PLW0603 - once for each process
    with _lock:
        if _warned:
            return
        _warned = True
    text = f"{VARIABLE}={REHEARSE}: what is meant for Ascend runs on the CPU; results are those of NumPy"
    warnings.warn(text, FallbackWarning, stacklevel=3 + above)
