"""Decides where operators for Ascend run: on CANN, or on the CPU as a rehearsal."""

from __future__ import annotations

import os
import warnings

from ...core import locks
from ...core.errors import ArgumentValueError, FallbackWarning, HostError
from . import cann

VARIABLE = "POLYOP_ASCEND"
REHEARSE = "rehearse"

_lock = locks.shared("warning of a rehearsal", locks.Level.TABLE)
_warned = False


def ascend(above: int = 0) -> str:
    """Return "cann", or "rehearse" if ``POLYOP_ASCEND=rehearse`` is set.

    The first rehearsal of a process gives a ``FallbackWarning`` at the caller, or ``above`` frames
    higher. Raises ``HostError`` if CANN is missing and the variable is not set, and
    ``ArgumentValueError`` for any other value of the variable.
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
    global _warned  # noqa: PLW0603 - once per process
    with _lock:
        if _warned:
            return
        _warned = True
    text = f"{VARIABLE}={REHEARSE}: what is meant for Ascend runs on the CPU; results are those of NumPy"
    warnings.warn(text, FallbackWarning, stacklevel=3 + above)
