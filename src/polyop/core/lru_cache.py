"""A cache of bounded size, which removes the least recently used entry.

``functools.lru_cache`` has no way to look a key up without computing its value. The bound is
needed because attributes that keep changing must not make memory grow.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

from . import locks

_lock = locks.shared("caches of call sites and programs", locks.Level.TABLE)
Value = TypeVar("Value")


class LruCache(Generic[Value]):
    """At most ``capacity`` values by key; the least recently used one is removed first."""

    def __init__(self, capacity: int = 128) -> None:
        """Make an empty cache. The default is small, as a compiled program takes over a megabyte."""
        self.capacity = capacity
        self._values: OrderedDict[Hashable, Value] = OrderedDict()

    def __len__(self) -> int:
        """Return the number of values."""
        return len(self._values)

    def get(self, key: Hashable) -> Value | None:
        """Return the value of a key, or None."""
        value = self._values.get(key)
        if value is not None:
            try:  # noqa: SIM105 - in every call, and faster than contextlib.suppress
                self._values.move_to_end(key)
            except KeyError:  # another thread has removed it
                pass
        return value

    def put(self, key: Hashable, value: Value) -> Value:
        """Store a value and return it."""
        with _lock:
            self._values[key] = value
            while len(self._values) > self.capacity:
                self._values.popitem(last=False)
        return value

    def clear(self) -> None:
        """Remove all values."""
        with _lock:
            self._values.clear()
