"""Find out whether MindSpore's compiler can read a gradient rule, by compiling the rule alone.

What the compiler reads is not written down anywhere, and depends on all that a rule calls. So the rule is
compiled alone, for the tensors of the call, before a graph takes it. The compiler cannot be entered a second
time while it compiles. A copy of the process (``fork``) compiles the rule, stops before anything runs, and
sends back the compiler's message.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import mindspore
from mindspore.common.api import _pynative_executor

from ...call.operator import Operator
from ...core.errors import FallbackWarning
from ...core.origin import of_function
from .generated import folder

_SETTINGS = {"MS_DEV_PRECOMPILE_ONLY": "1", "MS_DEV_SINGLE_EVAL": "1"}
"""For the copy: nothing runs after compilation, and no threads evaluate branches."""

_UNEXPECTED = "Framework Unexpected Exception"
_RULE_SECONDS = 30.0  # seconds for one rule; it takes a tenth of one
_IDLE_SECONDS = 0.7  # seconds without any work after which the copy waits for a thread that it does not have
_POLL_SECONDS = 0.02
_FINISHED = b"\0"
_reasons: dict[str, tuple[Operator, str]] = {}
_in_copy = False


def unread_because(operator: Operator) -> str:
    """Return why the operator's rule runs on NumPy arrays in the graphs compiled so far, or ""."""
    owner, reason = _reasons.get(operator.name, (None, ""))
    return reason if owner is operator else ""


def warn_unread(operator: Operator, reason: str) -> None:
    """Warn that the operator's rule runs on NumPy arrays in graphs; once per operator."""
    if unread_because(operator):
        return
    place = of_function(operator.gradient)
    reason += f" in the rule at {place}" if place is not None and " at " not in reason else ""
    _reasons[operator.name] = (operator, reason)
    text = f"{operator.name}: MindSpore's compiler cannot read the gradient rule: {reason}"
    warnings.warn(f"{text}. It runs on NumPy arrays, without a second derivative", FallbackWarning, 3)


def tensor_like(shape: Any, dtype: Any) -> Any:
    """Return a tensor without data.

    A size of -1 or None is unknown, the shape (-2,) an unknown number of sizes.
    """
    sizes = None
    if isinstance(shape, (tuple, list)) and -2 not in shape:
        sizes = [None if size is None or size < 0 else int(size) for size in shape]
    element = dtype.element_type() if hasattr(dtype, "element_type") else dtype
    return mindspore.Tensor(shape=sizes, dtype=element)


def problem_of(function: Callable[..., Any], tensors: Sequence[Any]) -> str:
    """Return why MindSpore cannot compile a function of these tensors; "" if it can.

    It is "" too where that cannot be told: a system without ``fork``, or a copy that waits for a thread.
    """
    if _in_copy or not hasattr(os, "fork") or not Path("/proc/self/stat").exists():
        return ""
    receiver, sender = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python and JAX warn of threads, which the copy does not use
        process = os.fork()
    if process == 0:
        _compile_in_copy(function, tensors, sender)
    os.close(sender)
    try:
        return _received(receiver, process)
    finally:
        os.close(receiver)
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(process, 0)


def _compile_in_copy(function: Callable[..., Any], tensors: Sequence[Any], sender: int) -> NoReturn:
    """Compile, send the problem, and end the process without what Python does at its end."""
    global _in_copy  # noqa: PLW0603 - of the copy alone
    _in_copy = True
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        os.environ.update(_SETTINGS)
        _pynative_executor.clear_res = (
            _nothing  # called after an error, it would wait for threads of the process
        )
        os.environ["MS_DEV_SAVE_GRAPHS_PATH"] = folder()  # where the compiler leaves the graph of an error
        problem = ""
        try:
            mindspore.jit(function)(*tensors)
        except BaseException as error:  # noqa: BLE001 - whatever the compiler raises
            problem = _reason(error)
        os.write(sender, problem.encode(errors="replace")[:2000] + _FINISHED)
    finally:
        os._exit(0)


def _nothing() -> None:
    """Do nothing."""


def _received(receiver: int, process: int) -> str:
    """Return what the copy sends; "" if it ends without an answer, or waits."""
    text, deadline = b"", time.monotonic() + _RULE_SECONDS
    worked, last_work = "", time.monotonic()
    while time.monotonic() < deadline:
        if select.select([receiver], [], [], _POLL_SECONDS)[0]:
            more = os.read(receiver, 4096)
            text += more
            if not more or text.endswith(_FINISHED):
                break
        work = _work(process)
        if work != worked or not work.startswith("S"):
            worked, last_work = work, time.monotonic()
        elif time.monotonic() - last_work > _IDLE_SECONDS:
            break
    return text.removesuffix(_FINISHED).decode(errors="replace") if text.endswith(_FINISHED) else ""


def _work(process: int) -> str:
    """Return the state of a process and the processor time that it has taken."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return "gone"
    return " ".join((fields[0], *fields[11:13]))


def _reason(error: BaseException) -> str:
    """Return the first sentence of the compiler's message, and the author's line that it names.

    It is "" where the compiler itself failed, as in a copy of a process that has compiled other graphs:
    its message names no place in a source, or calls it unexpected. That says nothing of the rule.
    """
    text = str(error).strip()
    if "In file " not in text or _UNEXPECTED in text:
        return ""
    first = text.splitlines()[0].split(". ")[0].rstrip(".") if text else type(error).__name__
    places = re.findall(r"In file ([^\n,]+?):(\d+)", text)
    where = [f"{file}:{line}" for file, line in places if not file.startswith(_NOT_THE_AUTHOR_S)]
    return f"it says {first!r}{f' at {where[-1]}' if where else ''}"


_NOT_THE_AUTHOR_S = (str(Path(__file__).parents[2]), str(Path(mindspore.__file__).parent), folder())
