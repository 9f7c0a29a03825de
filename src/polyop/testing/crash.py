"""A kernel that crashes must not take the process of the check with it."""

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
    """Run the native kernel once in a forked child; a signal there is a failure here.

    The child calls the kernel and nothing else, and ends without cleaning up.
    """
    if not hasattr(os, "fork"):
        raise NotRunError("this platform has no fork()")
    if not case.bound.native:
        raise NotRunError("the kernel is a Python function")
    name = signal_of(lambda: HOST.call(case.bound, case.arguments))
    if name:
        raise BrokenRuleError("the kernel must not crash", f"{name} when called with ({_given(case)})")
    return None


def must_refuse_politely(variant: Case) -> None:
    """Derive and call a C++ module's function for other inputs in a forked child first.

    It may refuse them with an error. Raises ``BrokenRuleError`` that names the inputs where it ends
    the process; operators of other kinds are not tried.
    """
    if not variant.bound.is_module or not hasattr(os, "fork"):
        return

    def attempt() -> None:
        variant.prepare()
        HOST.call(variant.bound, variant.arguments)

    name = signal_of(attempt)
    if name:
        rule = "the C++ function must refuse inputs with an error, and not crash"
        raise BrokenRuleError(rule, f"{name} when called with ({_given(variant)})")


def settle(case: Case) -> None:
    """Let a C++ module's function learn what it writes, as its first call does, unless that crashes."""
    if not case.bound.is_module:
        return

    def learn() -> None:
        case.bound.settle(normalise(case.operator, specs(HOST, case.operator, case.arguments)))

    try:
        if not hasattr(os, "fork") or not signal_of(learn):
            learn()
    except (PolyopError, NotRunError):
        return  # the checks meet it again, and say it


def signal_of(attempt: Callable[[], object]) -> str | None:
    """Return the name of the signal that ends a forked child which runs ``attempt``, or None."""
    with warnings.catch_warnings():
        # Python and JAX warn of threads: the child touches no lock of theirs
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        child = os.fork()
    if child == 0:
        code = 0
        faulthandler.disable()  # the signal is reported, not the child's stack
        try:
            attempt()
        except BaseException:  # noqa: BLE001 - an error is for the next checks to find
            code = 1
        os._exit(code)
    status = _wait(child)
    return signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else None


def _given(case: Case) -> str:
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
