"""What was used last, and no more of it: attributes that keep changing must not grow memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Recent(Generic[Value]):
    """Values by key; of more than ``most`` the one that was not used for the longest time goes."""

    def __init__(self, most: int = 128) -> None:
        """Take how many are kept: a compiled program is more than a megabyte."""
        self.most = most
        self._kept: OrderedDict[Hashable, Value] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """Return how many are kept."""
        return len(self._kept)

    def get(self, key: Hashable) -> Value | None:
        """Return the value of a key, or None."""
        found = self._kept.get(key)
        if found is not None:
            try:  # noqa: SIM105 - in each call, and quicker than contextlib.suppress
                self._kept.move_to_end(key)
            except KeyError:  # another thread has taken it out
                pass
        return found

    def put(self, key: Hashable, value: Value) -> Value:
        """Keep a value; return it."""
        with self._lock:
            self._kept[key] = value
            while len(self._kept) > self.most:
                self._kept.popitem(last=False)
        return value
