"""Loop kernels that run for as long as their attribute ``n`` says; run as a program, they are interrupted.

Usage: endless.py SCENARIO. The program fails where the scenario does not hold.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np

import polyop

FOREVER = 10**15
X = np.linspace(0.1, 1, 600).astype(np.float32)
# ruff: noqa: F821 - the words of the loop language need no import


@polyop.kernel
def divided(x, n):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        s = x[i]
        for _ in range(n):
            s = s * 0.5 + sin(s)
        y[i] = s
    return y


@polyop.kernel
def in_order(x, n):
    y = output_tensor(x.shape, x.dtype)
    for j in range(x.shape[0]):
        y[j] = x[j]
    for _ in range(n):
        for j in range(1, x.shape[0]):
            y[j] = y[j - 1] * 0.5 + y[j] * 0.25
    return y


@polyop.kernel
def reduction(x, n):
    y = output_tensor((1,), x.dtype)
    for i in range(x.shape[0]):
        for r in range(n):
            y[0] += sin(x[i] * r)
    return y


@polyop.kernel
def columns(x, n):
    y = output_tensor(x.shape, x.dtype)
    for j in range(x.shape[0]):
        y[j] = x[j]
    for _ in range(n):
        for j in range(x.shape[0]):
            y[j] = y[j] * 0.5 + x[j]
    return y


@polyop.kernel
def scalar(x, n):
    y = output_tensor((1,), x.dtype)
    s = x[0]
    for _ in range(n):
        s = s * 0.5 + x[1]
    y[0] = s
    return y


@polyop.kernel
def steps(x, n):
    y = output_tensor(x.shape, x.dtype)
    z = allocate(x.shape, x.dtype)
    for j in range(x.shape[0]):
        y[j] = x[j]
    for _ in range(n):
        for j in range(1, x.shape[0] - 1):
            z[j] = y[j - 1] + y[j + 1]
        for j in range(1, x.shape[0] - 1):
            y[j] = z[j] * 0.5
    return y


@polyop.kernel
def tiled(x, n):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            total = float32(0)
            for _ in range(n):
                for k in range(x.shape[1]):
                    total += x[i, k] * x[k, j]
            y[i, j] = total
    return y


@polyop.kernel
def scattered(x, n):
    y = output_tensor(x.shape, x.dtype)
    for i in range(n):
        y[i * 7919 % x.shape[0]] += x[i % x.shape[0]]
    return y


KERNELS = (divided, in_order, reduction, columns, scalar, steps, tiled, scattered)
INFORMATION = polyop.CustomRegOp().attr("n", "required", "int").target("CPU").get_op_info()


def operator(function: Callable[..., Any]) -> Any:
    """Return the operator of a kernel."""
    return polyop.Custom(function, func_type="hybrid", reg_info=INFORMATION)


def is_interrupted(call: Callable[[], Any]) -> bool:
    """Return whether Ctrl-C ends a call within a minute."""
    begin = time.monotonic()
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        call()
    except KeyboardInterrupt:
        return time.monotonic() - begin < 60
    return False


def numpy() -> None:
    """Ctrl-C ends each kernel; the next call gives the same result as before."""
    for kernel in KERNELS:
        op, x = operator(kernel), X[:576].reshape(24, 24) if kernel is tiled else X
        before = op(x, 3)
        assert np.allclose(before, kernel.python(x, 3), 1e-4), kernel.__name__
        print(kernel.__name__, flush=True)
        assert is_interrupted(lambda op=op, x=x: op(x, FOREVER)), kernel.__name__
        assert np.array_equal(op(x, 3), before), kernel.__name__


def torch() -> None:
    """Ctrl-C ends the forward and the backward call of PyTorch."""
    import torch

    backward = operator(divided)
    op = polyop.Custom(
        columns, func_type="hybrid", reg_info=INFORMATION, bprop=lambda x, n, y, dy: (backward(dy, n), None)
    )
    x = torch.from_numpy(X).requires_grad_()
    short = torch.autograd.grad(op(x, 2).sum(), x)[0]
    assert is_interrupted(lambda: op(x.detach(), FOREVER))
    assert is_interrupted(lambda: op(x, FOREVER))
    slow = polyop.Custom(
        columns,
        func_type="hybrid",
        reg_info=INFORMATION,
        bprop=lambda x, n, y, dy: (backward(dy, FOREVER), None),
    )
    assert is_interrupted(lambda: slow(x, 2).sum().backward())
    assert torch.equal(torch.autograd.grad(op(x, 2).sum(), x)[0], short)


def handlers() -> None:
    """A handler of the program runs during a kernel and may call operators; all results are right."""
    for kernel in (scalar, steps):
        op, inner = operator(kernel), operator(columns)
        expected, during = inner(X, 3), []

        def note(
            _: int,
            __: FrameType | None,
            inner: Any = inner,
            during: list[bool] = during,
            expected: Any = expected,
        ) -> None:
            during.append(np.array_equal(inner(X, 3), expected))

        count = 10_000
        while not during:  # until it takes long enough on this machine
            count *= 10
            expected = op(X, count)
            signal.signal(signal.SIGALRM, note)
            signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
            begun = len(during)
            values = op(X, count)
            del during[:begun]
            signal.setitimer(signal.ITIMER_REAL, 0)
            assert np.array_equal(values, expected)
        assert all(during)


def threads() -> None:
    """A call of another thread is not interrupted; the main thread receives the signal."""
    op, results = operator(scalar), []
    caller = threading.Thread(target=lambda: results.append(op(X, 300_000_000)))
    expected = op(X, 300_000_000)
    caller.start()
    assert is_interrupted(lambda: time.sleep(100))
    while caller.is_alive():
        time.sleep(0.1)
    assert np.array_equal(results[0], expected)


def forks() -> None:
    """If a handler forks, the child must not use outputs whose threads it does not have."""
    op, children = operator(steps), []
    op(X, 2)
    signal.signal(signal.SIGUSR1, lambda *_: children.append(os.fork()))
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGUSR1)).start()
    threading.Timer(0.9, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        op(X, FOREVER)
    except RuntimeError as problem:
        os._exit(7 if children == [0] and "forked" in str(problem) else 8)
    except KeyboardInterrupt:
        _, status = os.waitpid(children[0], 0)
        assert os.waitstatus_to_exitcode(status) == 7


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")
    signal.alarm(240) if sys.argv[1] != "handlers" else None
    globals()[sys.argv[1]]()
    print("held")
