"""Run kernels in a forked child first, so that a crash is a result and not the end of the checks."""

from __future__ import annotations

import faulthandler
import os
import signal
import time
import warnings
from collections.abc import Callable

from ..call.host import specs
from ..call.prepare import normalise
from ..core.errors import PolyopError
from ..hosts.numpy import HOST
from .case import BrokenRuleError, Case, Check, NotRunError


def survives(case: Case) -> str | None:
    """Run the native kernel once in a forked child; the check fails if a signal ends the child."""
    if not hasattr(os, "fork"):
        raise NotRunError("this platform has no fork()")
    if not case.bound.native:
        raise NotRunError("the kernel is a Python function")
    name = signal_of(lambda: HOST.call(case.bound, case.arguments))
    if name:
        raise BrokenRuleError("the kernel must not crash", f"{name} when called with ({_described(case)})")
    return None


def must_refuse_politely(variant: Case) -> None:
    """Call a C++ module's function with these inputs in a forked child.

    It may refuse them with an error. Raises ``BrokenRuleError`` with the inputs if it ends the process
    instead. Operators of other kinds are not called.
    """
    if not variant.bound.is_module or not hasattr(os, "fork"):
        return

    def attempt() -> None:
        variant.prepare()
        HOST.call(variant.bound, variant.arguments)

    name = signal_of(attempt)
    if name:
        rule = "the C++ function must refuse inputs with an error, and not crash"
        raise BrokenRuleError(rule, f"{name} when called with ({_described(variant)})")


def settle(case: Case) -> None:
    """Find out which arguments a C++ module's function writes, as its first call does, unless it crashes."""
    if not case.bound.is_module:
        return

    def learn() -> None:
        case.bound.refine_schema(normalise(case.operator, specs(HOST, case.operator, case.arguments)))

    try:
        if not hasattr(os, "fork") or not signal_of(learn):
            learn()
    except (PolyopError, NotRunError):
        return  # the checks run into the same error and report it


def signal_of(attempt: Callable[[], object]) -> str | None:
    """Run ``attempt`` in a forked child; return the name of the signal that ended it, or None.

    The child does nothing else and ends without cleaning up. Raises ``NotRunError`` after two minutes.
    """
    with warnings.catch_warnings():
        # Python and JAX warn about forking beside threads; the child takes none of their locks
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        child = os.fork()
    if child == 0:
        code = 0
        faulthandler.disable()  # the signal is reported, not the child's stack
        try:
            attempt()
        except BaseException:  # noqa: BLE001 - an error is no crash; the next checks report it
            code = 1
        os._exit(code)
    status = _wait(child)
    return signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else None


def _described(case: Case) -> str:
    return ", ".join("None" if value is None else _shown(value) for value in case.arguments)


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
