"""A kernel that crashes must not take the process of the check with it."""

from __future__ import annotations

import os
import signal
import time
import warnings

from ..hosts.numpy import HOST
from .case import BrokenRuleError, Case, Check, NotRunError


def survives(case: Case) -> str | None:
    """Run the native kernel once in a forked child; a signal there is a failure here.

    The child calls the kernel and nothing else, and ends without cleaning up.
    """
    if not hasattr(os, "fork"):
        raise NotRunError("this platform has no fork()")
    if not case.bound.native:
        raise NotRunError("the kernel is a Python function")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads: the child touches no lock of theirs
        child = os.fork()
    if child == 0:
        code = 0
        try:
            HOST.call(case.bound, case.arguments)
        except BaseException:  # noqa: BLE001 - an error is for the next checks to find
            code = 1
        os._exit(code)
    status = _wait(child)
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        given = ", ".join("None" if value is None else _shown(value) for value in case.arguments)
        raise BrokenRuleError("the kernel must not crash", f"{name} when called with ({given})")
    return None


def _wait(child: int, seconds: float = 120) -> int:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise NotRunError(f"the kernel did not end within {seconds:.0f} s")


def _shown(value: object) -> str:
    shape = getattr(value, "shape", None)
    return repr(value) if shape is None else f"{getattr(value, 'dtype', '')}{list(shape)}"


CHECKS = (Check("no crash", "native", survives, stops="the kernel crashes"),)
