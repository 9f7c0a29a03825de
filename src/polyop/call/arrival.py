"""Tells when a framework has been imported: operators that were defined before get their names in it then.

Python announces no imports. An entry of ``sys.meta_path`` sees that one begins; that it has ended is
seen by the loader, whose ``exec_module`` is followed.
"""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Callable
from typing import Any


class Arrival:
    """Calls a function once, right after the first import of a module, and is gone.

    ``done(name)`` runs in the thread that imports, when the module's code has run without an error. What
    it raises is a ``RuntimeWarning``: the import is not polyop's, and must not fail for it. Looking for
    the module without importing it (``importlib.util.find_spec``) changes nothing.
    """

    def __init__(self, name: str, done: Callable[[str], object]) -> None:
        """Keep what to wait for; :meth:`wait` begins."""
        self._name, self._done = name, done

    def wait(self) -> None:
        """Wait, in front of what is in ``sys.meta_path`` now."""
        sys.meta_path.insert(0, self)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Return what the finders behind this one do; None for other modules."""
        finders: list[Any] = sys.meta_path
        if name != self._name or self not in finders:
            return None
        for finder in finders[finders.index(self) + 1 :]:
            spec = finder.find_spec(name, path, target) if hasattr(finder, "find_spec") else None
            if spec is not None:
                self._follow(spec.loader)
                return spec
        return None

    def _follow(self, loader: Any) -> None:
        run = getattr(loader, "exec_module", None)
        if run is None or isinstance(loader, type):
            return  # a folder without code, or Python's own: no framework
        own = "exec_module" in getattr(loader, "__dict__", {})  # somebody else follows it, too

        def exec_module(module: Any) -> None:
            if own:
                loader.exec_module = run
            else:
                vars(loader).pop("exec_module", None)
            run(module)
            if module.__name__ == self._name:
                self._arrived(module)

        with contextlib.suppress(AttributeError):  # a loader that takes none: found at the first call
            loader.exec_module = exec_module

    def _arrived(self, module: Any) -> None:
        if self not in sys.meta_path:
            return
        # a new list: taken out of the old one, another thread's search would step over what is behind
        sys.meta_path = [finder for finder in sys.meta_path if finder is not self]
        # its code has run. Without this, a thread that imports it holding a lock would wait for this one,
        # and this one for the lock
        module.__spec__._initializing = False  # noqa: SLF001
        try:
            self._done(self._name)
        except Exception as problem:  # noqa: BLE001 - whatever it is, the import has gone well
            text = f"polyop: its operators are not in {self._name} yet: {type(problem).__name__}: {problem}"
            with contextlib.suppress(Warning):  # where warnings are errors; it is said again by a call
                warnings.warn(text, RuntimeWarning, stacklevel=2)
