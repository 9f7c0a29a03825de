"""Functions that are written at run time, as files that MindSpore's graph compiler can read."""

from __future__ import annotations

import functools
import itertools
import linecache
import tempfile
from pathlib import Path
from typing import Any

_numbers = itertools.count()


@functools.cache
def _folder() -> Any:
    return tempfile.TemporaryDirectory(prefix="polyop_mindspore_")


def function(name: str, text: str, **names: Any) -> Any:
    """Return the function of a text with ``{n}`` wherever a name must be told from all others.

    ``names`` are what it reads from outside, each followed by ``{n}`` in the text: the compiler
    remembers what a name means by the names of the module and the function alone.
    """
    number = next(_numbers)
    own = {f"{key}{number}": value for key, value in names.items()}
    lines = [f"def make({', '.join(own)}):"]
    lines += ["    " + line for line in text.replace("{n}", str(number)).splitlines()]
    lines += [f"    return {name}{number}", ""]
    path = Path(_folder().name) / f"{name}{number}.py"
    source = "\n".join(lines)
    path.write_text(source)
    # read from here, even where a forked process has removed the folder when it ended
    linecache.cache[str(path)] = (len(source), None, source.splitlines(keepends=True), str(path))
    scope: dict[str, Any] = {"__name__": __name__}
    exec(compile(source, str(path), "exec"), scope)  # noqa: S102 - polyop's own text
    return scope["make"](**own)


def call_of(bound: Any) -> Any:
    """Return a function that calls an operator in a graph, and keeps it alive."""
    names = ", ".join(argument.name for argument in bound.schema.arguments)
    return function("inner", f"def inner{{n}}({names}):\n    return bound{{n}}({names})", bound=bound)
