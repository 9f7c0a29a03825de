"""The registry of information for Python functions: one information per function and target.

A second registration must be equal, except for the values of constants: a kernel with other constants is
another operator. For a text such as ``"lib.so:f"`` nothing is registered; each of its operators has its own
information.
"""

from __future__ import annotations

import dataclasses
import warnings
import weakref
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any

from ...core import locks
from ..errors import FallbackWarning, InformationError
from ..origin import Origin, caller, module_frame
from ..schema import MISSING
from .information import Information


@dataclass(slots=True)
class _Record:
    """The information of one function, by target, with the place of its registration.

    ``owner`` keeps the function alive if it cannot be referenced weakly, so that its id is not reused.
    """

    by_target: dict[str, tuple[Information, Origin]] = field(default_factory=dict)
    owner: Any = None


_lock = locks.shared("table of operator information", locks.Level.TABLE)
_records: dict[Hashable, _Record] = {}


def register(
    function: Callable[..., Any] | str,
    information: Iterable[Information],
    *,
    subject: str,
    keep_first: bool = False,
) -> tuple[Information, ...]:
    """Register information for a function, all of it or none, and return it: one per target.

    Registering equal information again changes nothing. When the function is collected, its information is
    removed. The same line of a module or notebook cell may register other information when it runs again.

    Raises ``InformationError``, with both places, for other information for the same target, and for
    attribute names that differ between targets. With ``keep_first`` other information for the same target of
    a function gives a ``FallbackWarning``, and the registered one is returned, as MindSpore takes it.
    """
    here = caller()
    if isinstance(function, str):
        return tuple(_merge(information, {}, here, subject).values())
    information = tuple(information)
    with _lock:
        key, owner = _key(function)
        record = _records.get(key)
        by_target = dict(record.by_target) if record is not None else {}
        if module_frame() is not None:
            # the same line of a module or a cell runs again, perhaps corrected: replace its registrations
            by_target = {t: (old, place) for t, (old, place) in by_target.items() if place != here}
        if keep_first:
            information = tuple(_first(new, by_target, here, subject) for new in information)
        registered = _merge(information, by_target, here, subject)
        if record is not None:
            record.by_target = by_target
        elif by_target:
            _records[key] = _Record(by_target, _watch(owner, key))
        return tuple(registered.values())


def _first(
    new: Information, by_target: dict[str, tuple[Information, Origin]], here: Origin, subject: str
) -> Information:
    """Return the information that is registered for the target of ``new``, with a warning if it differs."""
    old, place = by_target.get(new.target, (new, here))
    if _without_constants(old) == _without_constants(new):
        return new
    differing = ", ".join(_differing(old, new))
    text = (
        f"{subject}: the registration information for {new.target} at {here} is ignored, as in MindSpore: "
        f"the function keeps the one registered first, at {place}; these parts differ: {differing}"
    )
    warnings.warn(text, FallbackWarning, stacklevel=4)
    return old


def _differing(old: Information, new: Information) -> list[str]:
    return [part for part in _COMPARED if getattr(old, part) != getattr(new, part)]


def _merge(
    information: Iterable[Information],
    by_target: dict[str, tuple[Information, Origin]],
    here: Origin,
    subject: str,
) -> dict[str, Information]:
    """Check new information against ``by_target`` and add it there; return the new information by target.

    For information that is registered already, the registered object is returned.
    """
    registered: dict[str, Information] = {}
    for new in information:
        _check(new, by_target, here, subject)
        old, _ = by_target.setdefault(new.target, (new, here))
        first = registered.setdefault(new.target, old if old == new else new)
        if first != new:  # one registration with two values of a constant
            _check(new, {new.target: (first, here)}, here, subject, constants=True)
    return registered


def forget(function: Callable[..., Any]) -> None:
    """Remove the information of a function, so that other information can be registered, as in a notebook.

    Operators that were built keep their information.
    """
    with _lock:
        _records.pop(_key(function)[0], None)


def of_decorated(function: Any) -> tuple[Any, ...] | None:
    """Return the information that ``custom_info_register`` attached to a function, or None."""
    attached = getattr(function, "reg_info", None)
    if attached is None or isinstance(function, str):
        return None
    return attached if isinstance(attached, tuple) else (attached,)


def _check(
    new: Information,
    by_target: dict[str, tuple[Information, Origin]],
    here: Origin,
    subject: str,
    *,
    constants: bool = False,
) -> None:
    """Check new information against registered information; with ``constants`` the constants count too."""
    for old, place in by_target.values():
        names, old_names = ([a.name for a in i.attributes] for i in (new, old))
        if old.target != new.target and names != old_names:
            rule = "attr names set in registration information must be the same as previous saved one"
            raise InformationError(
                subject, rule, f"{names} vs {old_names}", where=f"{here}, the saved one at {place}"
            )
    old, place = by_target.get(new.target, (new, here))
    if (old != new) if constants else (_without_constants(old) != _without_constants(new)):
        rule = (
            f"the registration information for {new.target} must be the one registered already; "
            f"these parts differ: {', '.join(_differing(old, new))}"
        )
        hint = f"use the registered one, or another function, or {forget.__module__}.forget(function)"
        raise InformationError(subject, rule, where=f"{here}, the registered one at {place}", hint=hint)


def _without_constants(information: Information) -> Information:
    """Return the information without the values of its constants, but still marked as constants."""
    attributes = tuple(
        a if a.value is MISSING else dataclasses.replace(a, value=None) for a in information.attributes
    )
    return dataclasses.replace(information, attributes=attributes)


_COMPARED = ("inputs", "outputs", "attributes", "rows", "fusion_type", "extra")


def _key(function: Any) -> tuple[Hashable, Any]:
    """Return what identifies a function, and the object with whose lifetime the key is valid.

    A decorated function counts as the function that was decorated. A bound method is a new object at each
    access, so its function and its ``self`` identify it.
    """
    while getattr(function, "reg_info", None) is not None and hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    owner = getattr(function, "__self__", None)
    inner = getattr(function, "__func__", None)
    if owner is not None and inner is not None:
        return (id(owner), id(inner)), owner
    return id(function), function


def _watch(owner: Any, key: Hashable) -> Any:
    """Remove the record of a key when its owner is collected. Return the owner if that is not possible."""
    if owner is None:
        return None
    try:
        weakref.finalize(owner, _records.pop, key, None).atexit = False
    except TypeError:  # the type has no weak references
        return owner
    return None
