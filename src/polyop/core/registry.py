"""The operators of this process, by qualified name."""

from __future__ import annotations

import itertools
import threading
import weakref
from types import FrameType
from typing import Any

from .errors import SchemaError
from .operator import Operator
from .origin import calling_frame

_lock = threading.Lock()
_named: dict[str, Any] = {}
_derived: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()
_frames: dict[str, FrameType] = {}
_numbers: dict[tuple[str, str], itertools.count[int]] = {}


def add_derived(bound: Any) -> None:
    """Register an operator whose name polyop made up (``Custom``), for as long as it exists."""
    with _lock:
        _derived[bound.operator.name] = bound


def add(bound: Any) -> Any:
    """Register a bound operator under its name; return the one it replaces, or None.

    Only running a module or a notebook cell again replaces an operator. Any other second
    definition raises ``SchemaError`` that names both places.
    """
    new: Operator = bound.operator
    frame = calling_frame()
    with _lock:
        old = _named.get(new.name)
        if old is not None and not _runs_again(new.name, frame):
            rule = f"the name is taken by the operator defined at {old.operator.origin}"
            raise SchemaError(new.name, rule, where=new.origin, hint="choose another name or namespace")
        _named[new.name] = bound
        if _is_module(frame):
            _frames[new.name] = frame
        return old


def _runs_again(name: str, frame: FrameType) -> bool:
    # A cell that is run again and a module that is reloaded have another frame over the same
    # globals. A loop has one frame, and a function has a name: both mean to have two operators.
    old = _frames.get(name)
    return old is not None and old is not frame and old.f_globals is frame.f_globals and _is_module(frame)


def _is_module(frame: FrameType) -> bool:
    return frame.f_code.co_name.startswith("<")


def unique(namespace: str, name: str) -> str:
    """Return ``name``, with a number appended from the second time on."""
    with _lock:
        numbers = _numbers.setdefault((namespace, name), itertools.count(1))
        for number in numbers:
            candidate = name if number == 1 else f"{name}_{number}"
            if known(f"{namespace}::{candidate}") is None:
                return candidate
    raise AssertionError


def discard(bound: Any) -> None:
    """Take an operator out again."""
    with _lock:
        name = bound.operator.name
        if _named.get(name) is bound:
            del _named[name]


def named(name: str) -> Any:
    """Return the operator that an author called ``name``, or None."""
    return _named.get(name)


def known(name: str) -> Any:
    """Return the operator called ``name``, or None; one that is derived of another is made now."""
    found = _named.get(name) or _derived.get(name)
    whole, _, suffix = name.rpartition("__")
    if found is not None or not whole:
        return found
    owner = known(whole)
    if owner is None:
        return None
    rules = (owner.operator.gradient, owner.operator.jvp, owner.operator.batch)
    parts = (rule.part(suffix) for rule in rules if hasattr(rule, "part"))
    return next((part for part in parts if part is not None), None)


def find(name: str) -> Any:
    """Return the operator called ``name``; raises ``LookupError`` with the nearest names."""
    found = known(name)
    if found is not None:
        return found
    import difflib

    names = [bound.name for bound in operators()]
    near = difflib.get_close_matches(name, names) or names[:8]
    raise LookupError(f"no operator {name!r}; there are {', '.join(near) or 'none'}")


def operators() -> tuple[Any, ...]:
    """Return all registered operators that are not part of another, by name."""
    with _lock:
        together = {**dict(_derived.items()), **_named}
    return tuple(together[name] for name in sorted(together) if not together[name].operator.part_of)
