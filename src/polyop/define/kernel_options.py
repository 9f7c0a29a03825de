"""The options of a loop kernel: ``compile_attrs`` of ``@kernel``, or of MindSpore's decorator as JSON."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Mapping
from typing import Any

from ..call.registry import PARTS
from ..core.errors import ArgumentTypeError, ArgumentValueError
from ..loops.ir.schedule import NOTHING, Schedule

COMPILE_ATTRS = ("precise", "debug", "tape", "tape_bytes", "schedule", "derived_schedules", "deterministic")
TAPES = ("auto", "all", "none")


def options(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the options of a loop kernel from a function's ``compile_attrs``; the defaults without any.

    Raises ``ArgumentTypeError`` and ``ArgumentValueError`` for options that ``@kernel`` would refuse.
    """
    given = compile_attrs_of(function)
    words = {word: bool(given.get(word)) for word in ("precise", "debug")}
    taped = {"tape": given.get("tape", "auto"), "tape_bytes": given.get("tape_bytes")}
    derived = tuple(sorted(given.get("derived_schedules", {}).items()))
    schedule = given.get("schedule", NOTHING)
    if given.get("deterministic") is not None and not schedule.is_deterministic:
        schedule = schedule.deterministic()
    return {**words, **taped, "schedule": schedule, "derived_schedules": derived}


def compile_attrs_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Return a function's ``compile_attrs`` as a dict. Raises what :func:`options` raises."""
    given = getattr(function, "compile_attrs", {})
    subject = f"kernel {getattr(function, '__name__', function)}"
    if isinstance(given, str):  # MindSpore's own @kernel keeps JSON
        try:
            given = json.loads(given)
        except (ValueError, RecursionError) as problem:
            raise ArgumentTypeError(
                subject, f"'compile_attrs' must be valid JSON: {problem}", repr(given)
            ) from None
    if not isinstance(given, Mapping):
        rule = "'compile_attrs' must be a dict, or its JSON text"
        raise ArgumentTypeError(subject, rule, repr(given))
    check_attrs(given, subject)
    return dict(given)


def check_attrs(given: Mapping[str, Any], subject: str) -> None:
    """Raise ``ArgumentTypeError`` or ``ArgumentValueError`` for options that do not exist or do not fit."""
    for name in given:
        if not isinstance(name, str):
            raise ArgumentTypeError(subject, "The keys of 'compile_attrs' must be of type str", repr(name))
        near = difflib.get_close_matches(name, COMPILE_ATTRS, 1, 0.6)
        if near and name not in COMPILE_ATTRS:
            rule = "'compile_attrs' has no such option"
            raise ArgumentValueError(subject, rule, repr(name), hint=f"did you mean {near[0]!r}?")
    for name in ("precise", "debug"):
        if not isinstance(given.get(name, False), bool):
            raise ArgumentTypeError(subject, f"{name!r} must be True or False", repr(given[name]))
    _check_schedules(given, subject)
    if given.get("deterministic") not in (None, "batch"):
        rule = "'deterministic' must be \"batch\": a row has the same bits in a batch of any size"
        raise ArgumentValueError(subject, rule, repr(given["deterministic"]))
    tape = given.get("tape", "auto")
    if not isinstance(tape, str) or tape not in TAPES:
        raise ArgumentValueError(subject, f"'tape' must be one of {list(TAPES)}", repr(tape))
    limit = given.get("tape_bytes")
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 0):
        rule = "'tape_bytes' must be a number of bytes, or None for no limit"
        kind = ArgumentValueError if isinstance(limit, int) else ArgumentTypeError
        raise kind(subject, rule, repr(limit))


def _check_schedules(given: Mapping[str, Any], subject: str) -> None:
    """Raise ``ArgumentTypeError`` or ``ArgumentValueError`` for schedules that do not fit."""
    steps = given.get("schedule", NOTHING)
    if not isinstance(steps, Schedule):
        rule = "'schedule' must be a polyop.Schedule"
        hint = 'as in schedule=polyop.Schedule().parallel("i")'
        raise ArgumentTypeError(subject, rule, type(steps).__name__, hint=hint)
    derived = given.get("derived_schedules", {})
    if not isinstance(derived, Mapping) or not all(isinstance(s, Schedule) for s in derived.values()):
        rule = "'derived_schedules' must be a dict of polyop.Schedule by derived kernel"
        hint = 'as in derived_schedules={"backward": polyop.Schedule().parallel("i")}'
        raise ArgumentTypeError(subject, rule, repr(derived), hint=hint)
    for name in derived:
        if not isinstance(name, str) or not {*name.split("__")} <= {*PARTS}:
            rule = "the keys of 'derived_schedules' must be derived kernels"
            hint = f"they are {', '.join(PARTS)}, or several joined by __, as in backward__batched"
            raise ArgumentValueError(subject, rule, repr(name), hint=hint)
