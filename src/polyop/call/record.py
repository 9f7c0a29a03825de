"""Record the calls of a real program: ``POLYOP_RECORD=calls.json python train.py``.

``%p`` in the path is the id of the process, so that several processes write a file each.
Each call of an operator goes through :func:`_called`, which times the native call below it. What a part of
an operator takes, as ``<name>__backward``, has rows of its own: plans, by which the native core runs a
gradient without Python, are not made. A call inside a compiled program, of XLA or PyTorch, is seen where its
kernel is launched from Python, or not at all.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from typing import Any

from .. import _core
from ..core import locks
from ..core.errors import ArgumentValueError
from . import tracing

VARIABLE = "POLYOP_RECORD"
FORMAT = 1
"""Goes up when the layout of the file changes."""
MAX_TIMES = 1001
"""Of how many calls, the last ones, the median is taken."""


class _Row:
    """The calls of one operator with the same specs and attributes.

    The first call does what is done once: it derives a gradient, or has JAX trace the operator. So its time
    is taken to be the median of the others. Without others it is that of the launch in it, ``alone``.
    """

    __slots__ = ("count", "described", "first", "last", "total")

    def __init__(self, described: dict[str, Any]) -> None:
        self.described, self.count, self.total, self.first = described, 0, 0.0, 0.0
        self.last: deque[float] = deque(maxlen=MAX_TIMES)

    def add(self, seconds: float, alone: float) -> None:
        self.count += 1
        if self.count == 1:
            self.first = alone
            return
        self.total += seconds
        self.last.append(seconds)

    def as_data(self) -> dict[str, Any]:
        import statistics

        median = statistics.median(self.last) if self.last else self.first
        return {**self.described, "count": self.count, "seconds": self.total + median, "median": median}


_rows: dict[Any, _Row] = {}
_failed: Counter[str] = Counter()
"""What went wrong with calls that could not be recorded, and how often."""
_state = threading.local()
_lock = locks.shared("table of recorded calls", locks.Level.TABLE)


def path() -> str:
    """Return the file that this process records to, "" for none."""
    return os.environ.get(VARIABLE, "").replace("%p", str(os.getpid()))


def start(kind: type) -> None:
    """Let every call of the class ``kind`` be recorded, and the file be written when the process ends.

    Raises ``ArgumentValueError`` at once if that file cannot be written.
    """
    import atexit

    _check_writable()
    original: Any = kind.__call__

    def __call__(self: Any, /, *args: Any, **kwargs: Any) -> Any:  # noqa: N807 - it becomes that method
        if tracing.torch is not None and tracing.torch.compiler.is_compiling():
            return original(self, *args, **kwargs)
        return _called(self, _native_call, args, kwargs)

    methods: dict[str, Any] = {"__call__": __call__, "plan_gradient": _no_plan}
    methods |= {name: _method(getattr(_core.Call, name)) for name in ("launch", "fast")}
    methods |= {name: _timed_apart(getattr(kind, name)) for name in ("prepare", "_prepare")}
    for name, method in methods.items():
        setattr(kind, name, method)
    atexit.register(write)


def _check_writable() -> None:
    """Raise ``ArgumentValueError`` unless a file can be written in the place of the one to record to."""
    from ..binary.trust import make_private
    from ..build import atomic

    target = os.path.abspath(path())  # noqa: PTH100 - as write() does
    try:
        if os.path.isdir(target):  # noqa: PTH112
            raise IsADirectoryError(0, "it is a folder")
        make_private(os.path.dirname(target))  # noqa: PTH120
        atomic.probe(target)
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        hint = "name a file in a folder that this user may write in, or unset the variable"
        raise ArgumentValueError(
            VARIABLE, "must be a file that can be written", f"{path()!r}: {reason}", hint=hint
        ) from None


_native_call: Any = _core.Call.__call__


def _no_plan(self: Any, *ignored: Any) -> None:
    """Make no plan: the native core would run the next call without Python."""
    del self, ignored


def _timed_apart(prepare: Any) -> Any:
    """Return a method that infers the outputs, chooses a kernel or compiles it; its seconds are summed up."""

    def prepared(*args: Any) -> Any:
        before, started = _prepared(), time.perf_counter()
        try:
            return prepare(*args)
        finally:
            _state.prepared = before + time.perf_counter() - started  # with those that it called

    return prepared


def _prepared() -> float:
    """Return the seconds that preparing calls has taken in this thread."""
    seconds: float = _state.__dict__.get("prepared", 0.0)
    return seconds


def _method(native: Any) -> Callable[..., Any]:
    def method(self: Any, /, *args: Any) -> Any:
        return _called(self, native, args, {})

    return method


def _called(bound: Any, native: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Make a call and record it, unless it is inside a call of the same operator."""
    inside: list[Any] = _state.__dict__.setdefault("inside", [])
    if any(one is bound for one in inside):
        result, _, _state.launched = _timed(native, bound, args, kwargs)
        return result
    _ = bound.operator  # a loop kernel is read by the compiler at its first use
    inside.append(bound)
    _state.launched = None
    try:
        result, seconds, alone = _timed(native, bound, args, kwargs)
    finally:
        inside.pop()
    if result is not NotImplemented:
        try:
            _note(bound, args, kwargs, seconds, alone if _state.launched is None else _state.launched)
        except Exception as problem:  # noqa: BLE001 - whatever it is, the call has succeeded
            _failed[f"{bound.name}: {type(problem).__name__}: {problem}"] += 1
    return result


def _timed(
    native: Any, bound: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, float, float]:
    """Return the result of a native call, its seconds, and those without what prepared it."""
    before, started = _prepared(), time.perf_counter()
    result = native(bound, *args, **kwargs)
    seconds = time.perf_counter() - started
    return result, seconds, seconds - (_prepared() - before)


def _note(bound: Any, args: tuple[Any, ...], kwargs: dict[str, Any], seconds: float, alone: float) -> None:
    from ..core.arguments import bind
    from .host import host_of

    arguments = bind(bound.operator.schema, args, kwargs, bound.operator.origin)
    flat = [x for value in arguments for x in (value if isinstance(value, (list, tuple)) else (value,))]
    host = next((host for host in map(host_of, flat) if host is not None), None)
    values = [
        [_describe(host, x) for x in value] if isinstance(value, (list, tuple)) else _describe(host, value)
        for value in arguments
    ]
    traced = any("Tracer" in type(x).__name__ or "FakeTensor" in type(x).__name__ for x in flat)
    key = (bound.name, None if host is None else host.name, traced, repr(values))
    with _lock:
        if key not in _rows:
            rows = list(zip(bound.operator.schema.arguments, values, strict=True))
            _rows[key] = _Row(
                {
                    "operator": bound.name,
                    "part_of": bound.operator.part_of,
                    "host": key[1],
                    "traced": traced,
                    "tensors": {a.name: value for a, value in rows if a.type.is_tensor},
                    "attributes": {a.name: value for a, value in rows if not a.type.is_tensor},
                }
            )
        _rows[key].add(seconds, alone)


def _describe(host: Any, value: Any) -> Any:
    """Return a tensor as plain data; any other value as it is, or as text."""
    if host is None or not hasattr(value, "shape"):
        return value if isinstance(value, (bool, int, float, str, type(None))) else str(value)
    spec = host.spec(value)
    strides = getattr(value, "strides", None) or getattr(value, "stride", None)
    strides = strides() if callable(strides) else strides
    item = spec.dtype.itemsize if host.name == "numpy" else 1
    return {
        "dtype": spec.dtype.name,
        "shape": [size if type(size) is int else str(size) for size in spec.shape],
        "strides": None if strides is None else [stride // item for stride in strides],
        "device": spec.device,
    }


def write() -> None:
    """Write what was recorded so far, the calls that took the most time first; an old file is replaced.

    Without calls nothing is written.
    """
    import json

    from ..build import atomic

    with _lock:
        rows = sorted((row.as_data() for row in _rows.values()), key=lambda row: -row["seconds"])
    if _failed:
        said = f"calls that are not recorded: {sum(_failed.values())}; the first: {next(iter(_failed))}"
        sys.stderr.write(f"polyop: {VARIABLE}: {said}\n")
    if not rows:
        return
    text = json.dumps({"format": FORMAT, "calls": rows}, indent=1)
    try:
        atomic.write_text(os.path.abspath(path()), f"{text}\n")  # noqa: PTH100 - as the file does
    except OSError as problem:
        sys.stderr.write(f"polyop: {VARIABLE}={path()} cannot be written: {problem}\n")
