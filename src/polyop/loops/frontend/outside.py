"""Resolve what a kernel reads from outside: numbers, arrays and functions of its module or of its closure.

A kernel is compiled when it is called, for one set of dtypes after another. All of them have the values that
the names had when the kernel was defined, which is its first use: otherwise one program would mix two times,
and its digest would be that of neither. A later value is not read; a call after a change gives a warning.
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Iterator
from types import CellType, FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from ...core import locks
from .records import is_record

MAX_NUMBERS = 256
"""A larger array is a tensor: each number of a table is a statement of the compiled code."""


MISSING = object()
"""The value of a name that has none."""


class Change(NamedTuple):
    """A name whose value is another one than at the definition."""

    path: str
    old: Any
    new: Any


class Outside:
    """The values of names, by the function that reads them: one for a kernel with all of its helpers.

    It keeps helpers alive, and not the kernel.
    """

    def __init__(self) -> None:
        self._known: weakref.WeakKeyDictionary[FunctionType, dict[str, Any]] = weakref.WeakKeyDictionary()
        self._copies: dict[int, tuple[Any, Any]] = {}  # by address: the value, which keeps it, and its copy
        self._warned: set[str] = set()
        self._lock = locks.own("values of names of a kernel", locks.Level.TABLE)
        self.is_fixed = False

    def value(self, function: FunctionType, path: str) -> Any:
        """Return what ``name`` or ``module.name`` was in a function when it was first read.

        Raises ``KeyError`` for a name that has no value.
        """
        with self._lock:
            known = self._known.setdefault(function, {})
            if path not in known:
                owner, _, name = path.rpartition(".")
                now = _attribute(self.value(function, owner), name) if owner else _bound(function, name)
                known[path] = self._kept(now)
            return known[path]

    def release(self) -> None:
        """Forget all values, because the kernel was refused; the next reading is another definition."""
        with self._lock:
            self._known.clear()
            self._copies.clear()
            self.is_fixed = False

    def changes(self) -> Iterator[Change]:
        """Yield the names whose values have changed, each of them once."""
        for function, path, old in self._data():
            new = _now(function, path)
            if path not in self._warned and not _same(old, new):
                self._warned.add(path)
                yield Change(path, old, new)

    def watched(self) -> tuple[tuple[Any, str, Any], ...]:
        """Return where values are found now: a dict and a key, or a cell and a name; and the value.

        Those that a warning has named are left out, and the constants of ``math`` and NumPy.
        """
        found = []
        for function, path, old in self._data():
            place = None if path in self._warned else _place(function, path)
            if place is not None:
                where, name, now = place
                found.append((where, name, now if _same(old, now) else old))  # a change is still to be named
        return (*found, *self._modules())

    def _modules(self) -> Iterator[tuple[Any, str, Any]]:
        """Yield where modules are found now: behind another one of that name all numbers are others."""
        for function, path, old in self._rows():
            place = _place(function, path) if isinstance(old, ModuleType) and not _is_constant(old) else None
            if place is not None:
                yield place

    def _data(self) -> list[tuple[FunctionType, str, Any]]:
        """Return what was read: all but modules, and what is part of a value that was read too."""
        return [row for row in self._rows() if not isinstance(row[2], ModuleType)]

    def _rows(self) -> list[tuple[FunctionType, str, Any]]:
        with self._lock:
            return [(f, path, old) for f, known in self._known.items() for path, old in known.items()]

    def _kept(self, value: Any) -> Any:
        """Return a value that nobody changes: a copy of one that somebody could.

        An array that may be written stays as it is, because it is refused.
        """
        if isinstance(value, np.ndarray) and (not is_frozen(value) or value.size > MAX_NUMBERS):
            return value
        if not isinstance(value, (np.ndarray, list)) and not is_record(value):
            return value
        if id(value) not in self._copies:
            kept = copy.copy(value)
            if isinstance(kept, np.ndarray):
                kept.setflags(write=False)
            self._copies[id(value)] = value, kept
        return self._copies[id(value)][1]


def is_frozen(value: Any) -> bool:
    """Whether no name leads to memory of an array that may be written."""
    while isinstance(value, np.ndarray):
        if value.flags.writeable:
            return False
        value = value.base
    return value is None or isinstance(value, bytes)


def described(value: Any) -> str:
    """Return a value as a warning shows it."""
    if isinstance(value, FunctionType):
        return f"the function of line {value.__code__.co_firstlineno}"
    if isinstance(value, np.ndarray):
        return f"array({np.array2string(value, separator=', ', threshold=8)})"
    return repr(value.item() if isinstance(value, np.generic) else value)


def _cell(function: FunctionType, name: str) -> CellType | None:
    free = function.__code__.co_freevars
    return (function.__closure__ or ())[free.index(name)] if name in free else None


def _bound(function: FunctionType, name: str) -> Any:
    """Return the value of a name now: of the closure or the module. Raises ``KeyError``."""
    cell = _cell(function, name)
    if cell is None:
        return function.__globals__[name]
    try:
        return cell.cell_contents
    except ValueError:  # the cell is still empty
        raise KeyError(name) from None


def _attribute(owner: Any, name: str) -> Any:
    value = getattr(owner, name, MISSING)
    if value is MISSING:
        raise KeyError(name)
    return value


def _now(function: FunctionType, path: str) -> Any:
    root, *names = path.split(".")
    try:
        value = _bound(function, root)
        for name in names:
            value = _attribute(value, name)
    except KeyError:
        return MISSING
    return value


def _place(function: FunctionType, path: str) -> tuple[Any, str, Any] | None:
    """Return where the value of a path is found; None for a part of a value, and for what a module makes."""
    owner, _, name = path.rpartition(".")
    if not owner:
        value = _now(function, name)
        cell = _cell(function, name)
        return None if value is MISSING else (cell or function.__globals__, name, value)
    module = _now(function, owner)
    if not isinstance(module, ModuleType) or _is_constant(module):
        return None
    names = vars(module)
    return (names, name, names[name]) if name in names else None


def _is_constant(module: ModuleType) -> bool:
    return module.__name__.partition(".")[0] in ("math", "numpy")


def _same(old: Any, new: Any) -> bool:
    """Whether two values are the same number, the same numbers, or one object."""
    if old is new:
        return True
    if type(old) is not type(new) or isinstance(old, (FunctionType, type)):
        return False
    if isinstance(old, np.ndarray):
        alike = (old.dtype, old.shape) == (new.dtype, new.shape)
        return alike and bool(old.tobytes() == new.tobytes())
    if isinstance(old, (tuple, list)):
        return len(old) == len(new) and all(map(_same, old, new))
    if isinstance(old, (bool, int, float, complex, str, np.generic)) or is_record(old):
        return repr(old) == repr(new)  # tells -0.0 from 0.0, and not one nan from another
    return True  # what no kernel reads the value of
