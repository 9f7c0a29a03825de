"""The operators of this process, by qualified name.

An operator that an author named stays registered (``_named``). One whose name polyop chose (a ``Custom``,
a part) is registered for as long as it exists (``_generated``). A loop kernel has reserved its name since
its definition (``_declared``), and is registered when it is first used. A rule makes further operators,
its *parts*, as ``f__backward``; :func:`obtain` makes one when it is needed, and their names are reserved.

A definition holds ``locks.define`` from its look-up of a name until the operator is whole. Look-ups take that
lock too, so they find an operator when it is whole, or not yet.
"""

from __future__ import annotations

import itertools
import re
import weakref
from collections.abc import Iterator
from types import FrameType
from typing import Any

from ..core import locks
from ..core.errors import SchemaError
from ..core.origin import module_frame, runs_again
from .operator import Operator
from .rule import Rule

_ROW = r"(none|[a-z]+\d*_\d+)"  # a dtype and a number of dimensions
PARTS = {
    "backward": "backward",
    "tangent": "tangent",
    "batched": "batched",
    "saving": rf"saving_(without_\d+(_\d+)*__)?{_ROW}(__{_ROW})*",
    "placed": "placed",
}
"""Suffixes after ``<name>__`` of the operators that a rule makes: a pattern for each ``Rule.part_kinds``."""

_objects: weakref.WeakSet[Any] = weakref.WeakSet()
_lock = locks.shared("table of operators", locks.Level.TABLE)
_named: dict[str, Any] = {}
_generated: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()
_declared: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()
_frames: dict[str, FrameType] = {}
_numbers: dict[tuple[str, str], itertools.count[int]] = {}


def note(bound: Any) -> None:
    """Add an object to those of :func:`objects`."""
    with _lock:
        _objects.add(bound)


def objects() -> list[Any]:
    """Return all operator objects of this process, also those without a name of their own."""
    with _lock:
        return list(_objects)


def add_generated(bound: Any) -> None:
    """Register an operator whose name polyop chose, for as long as it exists."""
    with locks.define, _lock:
        _generated[bound.operator.name] = bound


def declare(kernel: Any) -> None:
    """Reserve the name of a loop kernel, which is registered when it is first used.

    The last definition of a module has the name. Raises ``SchemaError`` for a name that the author chose
    and another module has.
    """
    with locks.define, _lock:
        for other in (_named.get(kernel.name), _declared.get(kernel.name)):
            if kernel.named and other is not None and other.defined_in != kernel.defined_in:
                raise _taken(kernel.name, other, kernel.origin)
        _declared[kernel.name] = kernel


def has_name(kernel: Any) -> bool:
    """Whether a declared loop kernel may be registered under the name that it reserved."""
    with locks.define, _lock:
        old = _named.get(kernel.name)
        return _declared.get(kernel.name) is kernel and (old is None or _is_redefinition(old, kernel))


def other_module(kernel: Any) -> Any:
    """Return the operator of another module that has the name which a loop kernel reserved, or None."""
    with locks.define:
        other = _named.get(kernel.name) or _declared.get(kernel.name)
    return None if other is None or other.defined_in == kernel.defined_in else other


def _is_redefinition(old: Any, new: Any) -> bool:
    """Whether the new operator is the last definition of a loop kernel, and the old one is an earlier."""
    is_last = _declared.get(new.name) is new
    return is_last and type(old) is type(new) and old.defined_in == new.defined_in


def _taken(name: str, other: Any, where: Any) -> SchemaError:
    rule = f"the name is taken by the operator defined at {other.origin}"
    return SchemaError(name, rule, where=where, hint="choose another name or namespace")


def add(bound: Any) -> Any:
    """Register a bound operator under its name; return the one it replaces, or None.

    Running a module or a notebook cell again replaces an operator. Any other second definition raises
    ``SchemaError`` that names both places.
    """
    new: Operator = bound.operator
    frame = module_frame()
    with locks.define, _lock:
        old = _named.get(new.name)
        if old is not None and not (runs_again(_frames.get(new.name), frame) or _is_redefinition(old, bound)):
            raise _taken(new.name, old, new.origin)
        declared = _declared.get(new.name)
        if declared is not None and declared.named and declared.defined_in != bound.defined_in:
            raise _taken(new.name, declared, new.origin)
        _check_parts(new)
        _named[new.name] = bound
        if frame is not None:
            _frames[new.name] = frame
        return old


def _check_parts(new: Operator) -> None:
    """Raise ``SchemaError`` if an author's name is also the name of a part of another operator."""
    hint = "choose another name"
    owner = _owner(new.name)
    if owner is not None:
        rule = f"the name belongs to what polyop derives of {owner.name}, defined at {owner.operator.origin}"
        raise SchemaError(new.name, rule, where=new.origin, hint=hint)
    prefix = f"{new.name}__"
    for name, other in _named.items():
        if name.startswith(prefix) and _derives(new, name.removeprefix(prefix)):
            rule = f"polyop derives an operator {name} of it, and another of that name is defined at "
            raise SchemaError(new.name, f"{rule}{other.operator.origin}", where=new.origin, hint=hint)


def unique(namespace: str, name: str) -> str:
    """Return ``name``, with a number appended if it, or the name of a part of it, is in use."""
    with locks.define, _lock:
        numbers = _numbers.setdefault((namespace, name), itertools.count(1))
        candidates = (name if number == 1 else f"{name}_{number}" for number in numbers)
        return next(c for c in candidates if _is_free(f"{namespace}::{c}"))


def _is_free(name: str) -> bool:
    parts = f"{name}__"
    return (
        _known(name) is None
        and name not in _declared
        and _owner(name) is None
        and not any(other.startswith(parts) for other in (*_named, *_generated))
    )


def discard(bound: Any) -> None:
    """Remove an operator."""
    name = bound.operator.name  # before the lock, which a loop kernel takes when it makes its operator here
    with locks.define, _lock:
        if _named.get(name) is bound:
            del _named[name]


def named(name: str) -> Any:
    """Return the operator that an author called ``name``, or None."""
    with locks.define:
        return _named.get(name)


def known(name: str) -> Any:
    """Return the operator called ``name``, or None. This makes no parts: see :func:`obtain`."""
    with locks.define:
        return _known(name)


def _known(name: str) -> Any:
    return _named.get(name) or _generated.get(name)


def _defined(name: str) -> Any:
    """Return the operator of this name, or the loop kernel that gets the name at its first use, or None."""
    kernel = _declared.get(name)
    return kernel if kernel is not None and has_name(kernel) else _known(name)


def obtain(name: str) -> Any:
    """Return the operator called ``name``, or None; a part of another operator is made now.

    That runs the other operator's rules, which register the parts.
    """
    with locks.define:
        return _defined(name) or _derived(name)


def _derived(name: str) -> Any:
    """Return the part of another operator with this name, made now; None if there is no such part."""
    parts = (_part(_defined(owner), rest) for owner, rest in _splits(name) if _defined(owner) is not None)
    return next((part for part in parts if part is not None), None)


def _part(owner: Any, suffix: str) -> Any:
    """Return the operator ``<owner>__<suffix>``, where ``suffix`` can be that of a part of a part."""
    for rule in _deriving(owner.operator):
        part = rule.part(suffix)
        if part is not None:
            return part
    for head, rest in _splits(suffix):
        part = _part(owner, head)
        if part is not None:
            return _part(part, rest)
    return None


def _splits(name: str) -> Iterator[tuple[str, str]]:
    """Yield the text before and after each ``__`` of a name, the last ``__`` first."""
    end = name.rfind("__")
    while end > 0:
        yield name[:end], name[end + 2 :]
        end = name.rfind("__", 0, end)


def _deriving(operator: Operator) -> list[Rule]:
    """Return the rules of an operator that make parts: ``rule.part(suffix)``."""
    return [rule for rule in operator.rules if isinstance(rule, Rule) and rule.part_kinds]


def _derives(operator: Operator, suffix: str) -> bool:
    """Whether ``<name>__<suffix>`` is a part of an operator, or a part of a part."""
    own = [PARTS[kind] for rule in _deriving(operator) for kind in rule.part_kinds]
    return (
        bool(own) and re.fullmatch(f"({'|'.join(own)})(__({'|'.join(PARTS.values())}))*", suffix) is not None
    )


def _owner(name: str) -> Any:
    """Return the operator of which ``name`` is a part, made or not yet; else None."""
    owners = ((_known(owner), rest) for owner, rest in _splits(name))
    return next((o for o, rest in owners if o is not None and _derives(o.operator, rest)), None)


def find(name: str) -> Any:
    """Return the operator called ``name``; raises ``LookupError`` with the nearest names."""
    operator = obtain(name)
    if operator is not None:
        return operator
    import difflib

    names = [bound.name for bound in operators()]
    near = difflib.get_close_matches(name, names) or names[:8]
    raise LookupError(f"no operator {name!r}; there are {', '.join(near) or 'none'}")


def operators() -> tuple[Any, ...]:
    """Return all registered operators that are not part of another, by name."""
    with locks.define, _lock:
        by_name = {**dict(_generated.items()), **_named}
    return tuple(by_name[name] for name in sorted(by_name) if not by_name[name].operator.part_of)
