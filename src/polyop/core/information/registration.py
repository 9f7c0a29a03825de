"""Which information is registered for which Python function: once per function and target.

The constants of an information can differ: a kernel with other constants is another operator. For a
text such as ``"lib.so:f"`` nothing is kept: each operator of it has the information of its own.
"""

from __future__ import annotations

import dataclasses
import threading
import weakref
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any

from ..errors import InformationError
from ..origin import Origin, caller, calling_frame
from ..schema import MISSING
from .information import Information


@dataclass(slots=True)
class _Record:
    """What is registered for one function; ``owner`` keeps what cannot be held weakly."""

    by_target: dict[str, tuple[Information, Origin]] = field(default_factory=dict)
    owner: Any = None


_lock = threading.Lock()
_records: dict[Hashable, _Record] = {}


def register(
    function: Callable[..., Any] | str,
    information: Iterable[Information],
    *,
    subject: str,
) -> tuple[Information, ...]:
    """Register information for a function and return it, one per target; all of it or nothing.

    Registering what is registered already changes nothing. A function is forgotten when it
    ceases to exist.

    The same line of code may say something else when it runs again. Raises
    ``InformationError`` for another information for the same target, with both
    places, and for attribute names that differ between targets.
    """
    here = caller()
    if isinstance(function, str):
        return tuple(_taken(information, {}, here, subject).values())
    with _lock:
        key, owner = _key(function)
        record = _records.get(key)
        known = dict(record.by_target) if record is not None else {}
        if calling_frame().f_code.co_name.startswith("<"):
            # the same line of a module or a cell again: what was corrected replaces what it said before
            known = {t: (old, place) for t, (old, place) in known.items() if place != here}
        taken = _taken(information, known, here, subject)
        if record is not None:
            record.by_target = known
        elif known:
            _records[key] = _Record(known, _watch(owner, key))
        return tuple(taken.values())


def _taken(
    information: Iterable[Information],
    known: dict[str, tuple[Information, Origin]],
    here: Origin,
    subject: str,
) -> dict[str, Information]:
    """Return the information by target, what is known already as it is, and add it to ``known``."""
    taken: dict[str, Information] = {}
    for new in information:
        _check(new, known, here, subject)
        old, _ = known.setdefault(new.target, (new, here))
        kept = taken.setdefault(new.target, old if old == new else new)
        if kept != new:  # two constants in one registration
            _check(new, {new.target: (kept, here)}, here, subject, constants=True)
    return taken


def forget(function: Callable[..., Any]) -> None:
    """Forget what is registered for a function, so that a notebook's next cell can say otherwise.

    Operators that were built keep their information.
    """
    with _lock:
        _records.pop(_key(function)[0], None)


def of_decorated(function: Any) -> tuple[Any, ...] | None:
    """Return what ``custom_info_register`` attached to a function, or None."""
    found = getattr(function, "reg_info", None)
    if found is None or isinstance(function, str):
        return None
    return found if isinstance(found, tuple) else (found,)


def _check(
    new: Information,
    known: dict[str, tuple[Information, Origin]],
    here: Origin,
    subject: str,
    *,
    constants: bool = False,
) -> None:
    for old, place in known.values():
        names, saved = ([a.name for a in i.attributes] for i in (new, old))
        if old.target != new.target and names != saved:
            rule = "attr names set in registration information must be the same as previous saved one"
            raise InformationError(
                subject, rule, f"{names} vs {saved}", where=f"{here}, the saved one at {place}"
            )
    old, place = known.get(new.target, (new, here))
    if (old != new) if constants else (_without_constants(old) != _without_constants(new)):
        changed = [f for f in _COMPARED if getattr(old, f) != getattr(new, f)]
        rule = (
            f"the registration information for {new.target} must be the one registered already; "
            f"different are {', '.join(changed)}"
        )
        hint = f"use the registered one, or another function, or {forget.__module__}.forget(function)"
        raise InformationError(subject, rule, where=f"{here}, the registered one at {place}", hint=hint)


def _without_constants(information: Information) -> Information:
    """Return the information with which attributes are constants, and not their values."""
    attributes = tuple(
        a if a.value is MISSING else dataclasses.replace(a, value=None) for a in information.attributes
    )
    return dataclasses.replace(information, attributes=attributes)


_COMPARED = ("inputs", "outputs", "attributes", "rows", "fusion_type", "extra")


def _key(function: Any) -> tuple[Hashable, Any]:
    """Return what identifies a function, and the object whose life is that of the key.

    A decorated function is the function that was decorated. A bound method is a new object
    at each access: it is its function and its self.
    """
    while getattr(function, "reg_info", None) is not None and hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    owner = getattr(function, "__self__", None)
    inner = getattr(function, "__func__", None)
    if owner is not None and inner is not None:
        return (id(owner), id(inner)), owner
    return id(function), function


def _watch(owner: Any, key: Hashable) -> Any:
    """Return None when the key goes with its owner, else the owner, to be kept."""
    if owner is None:
        return None
    try:
        weakref.finalize(owner, _records.pop, key, None).atexit = False
    except TypeError:  # the type has no weak references
        return owner
    return None
