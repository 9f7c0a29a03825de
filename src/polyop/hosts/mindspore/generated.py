"""Functions generated at run time, with a source file that MindSpore's graph compiler can read.

The compiler does not look at bytecode: it reads the file and line at which a function is defined.
"""

from __future__ import annotations

import functools
import itertools
import linecache
import math
import tempfile
from pathlib import Path
from typing import Any

_numbers = itertools.count()


@functools.cache
def _folder() -> Any:
    return tempfile.TemporaryDirectory(prefix="polyop_mindspore_")


def folder() -> str:
    """Return the folder of the source files; it goes with the process."""
    return str(_folder().name)


def literal(value: Any) -> str:
    """Return a constant as text that MindSpore's compiler reads.

    >>> literal(2.0), literal(float("-inf"))
    ('2.0', 'float("-inf")')
    """
    return repr(value) if not isinstance(value, float) or math.isfinite(value) else f'float("{value}")'


def make_function(name: str, text: str, **outside: Any) -> Any:
    """Return the function ``name`` that a text defines; ``{n}`` in the text becomes a unique number.

    ``outside`` has the values that the function reads from outside. In the text each of their names is
    followed by ``{n}``, and so is the function's own name: the compiler caches the meaning of a name
    by the names of module and function only.
    """
    number = next(_numbers)
    closure = {f"{key}{number}": value for key, value in outside.items()}
    lines = [f"def make({', '.join(closure)}):"]
    lines += ["    " + line for line in text.replace("{n}", str(number)).splitlines()]
    lines += [f"    return {name}{number}", ""]
    path = Path(folder()) / f"{name}{number}.py"
    source = "\n".join(lines)
    path.write_text(source)
    # in memory as well: a forked process that ends removes the folder
    linecache.cache[str(path)] = (len(source), None, source.splitlines(keepends=True), str(path))
    scope: dict[str, Any] = {"__name__": __name__}
    exec(compile(source, str(path), "exec"), scope)  # noqa: S102 - polyop's own text
    return scope["make"](**closure)


def calling_function(bound: Any) -> Any:
    """Return a function that calls an operator in a graph, and keeps the operator alive."""
    names = ", ".join(argument.name for argument in bound.schema.arguments)
    return make_function("inner", f"def inner{{n}}({names}):\n    return bound{{n}}({names})", bound=bound)
