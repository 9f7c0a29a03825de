"""Run a function right after a framework has been imported.

Operators that were defined before the import get their names in the framework then. Python has no
event for an import. An entry of ``sys.meta_path`` sees it begin. To see it end, the entry wraps the
``exec_module`` of the module's loader.
"""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Callable
from typing import Any


class Arrival:
    """Calls a function once, right after the first import of a module, then removes itself.

    ``callback(name)`` runs in the importing thread, when the module's code has run without an error.
    An exception in it becomes a ``RuntimeWarning``: the user's import must not fail because of polyop.
    Looking for the module without importing it (``importlib.util.find_spec``) does not count.
    """

    def __init__(self, name: str, callback: Callable[[str], object]) -> None:
        """Store the module's name and the callback; :meth:`wait` starts to watch."""
        self._name, self._callback = name, callback

    def wait(self) -> None:
        """Watch imports, as the first entry of ``sys.meta_path``."""
        sys.meta_path.insert(0, self)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Return the spec that the finders after this one give; None for other modules."""
        finders: list[Any] = sys.meta_path
        if name != self._name or self not in finders:
            return None
        for finder in finders[finders.index(self) + 1 :]:
            spec = finder.find_spec(name, path, target) if hasattr(finder, "find_spec") else None
            if spec is not None:
                self._wrap(spec.loader)
                return spec
        return None

    def _wrap(self, loader: Any) -> None:
        """Have the loader's next ``exec_module`` report that it has ended; it is restored before it runs."""
        run = getattr(loader, "exec_module", None)
        if run is None or isinstance(loader, type):
            return  # a folder without code, or a built-in module: no framework
        is_wrapped = "exec_module" in getattr(loader, "__dict__", {})  # another package watches it, too

        def exec_module(module: Any) -> None:
            if is_wrapped:
                loader.exec_module = run
            else:
                vars(loader).pop("exec_module", None)
            run(module)
            if module.__name__ == self._name:
                self._arrived(module)

        with contextlib.suppress(AttributeError):  # a loader with slots: the first call starts the host
            loader.exec_module = exec_module

    def _arrived(self, module: Any) -> None:
        if self not in sys.meta_path:
            return
        # A new list: removing it from the old one would make another thread's loop over it skip an entry.
        sys.meta_path = [finder for finder in sys.meta_path if finder is not self]
        # The module's code has run, so the import has ended. While this flag is set, another thread that
        # imports the module waits for this thread; if it holds a lock that the callback needs, both hang.
        module.__spec__._initializing = False  # noqa: SLF001
        try:
            self._callback(self._name)
        except Exception as problem:  # noqa: BLE001 - the import itself has succeeded
            text = f"polyop: its operators are not in {self._name} yet: {type(problem).__name__}: {problem}"
            with contextlib.suppress(Warning):  # where warnings are errors; the first call reports it again
                warnings.warn(text, RuntimeWarning, stacklevel=2)
