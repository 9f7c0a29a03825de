"""Python's functions and values as bytes that are the same in every process, and say what they do.

A value without a row below counts as its type: a random generator, a lock, another library's array.
"""

from __future__ import annotations

import ast
import collections
import enum
import functools
import hashlib
import types
from collections.abc import Callable, Iterator
from pathlib import PurePath
from typing import Any

import numpy as np

DEEPEST = 24
"""How many values are looked for inside of each other; further in, they count as their types."""

Parts = Iterator[bytes]


def value(given: Any) -> Parts:
    """Yield what a value is made of, functions by their code; addresses are never among it."""
    yield from _value(given, _Walk())


def loop_kernel(function: Callable[..., Any]) -> Parts:
    """Yield the text of a loop kernel, its defaults, and the numbers that it reads from around it."""
    from ..loops.frontend.source import read

    source = read(function)
    yield ast.unparse(source.tree).encode()
    yield from value(source.owner().__defaults__)
    inside = {*source.parameters}  # and what it assigns, loop variables too
    inside |= {
        n.id for n in ast.walk(source.tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    for statement in source.tree.body:
        for node in ast.walk(statement):
            if isinstance(node, (ast.Name, ast.Attribute)):
                yield from _outer(source.outer, ast.unparse(node), inside)


def _outer(outer: Callable[[str], Any], path: str, inside: set[str]) -> Parts:
    """Yield the number of a name, or of a module's attribute, that a loop kernel reads."""
    root, *names = path.split(".")
    try:
        found = None if root in inside else outer(root)
    except KeyError:  # the kernel's own, or a word of the language
        return
    for name in names:
        found = getattr(found, name, None)
    if isinstance(found, (bool, int, float, np.generic, tuple)):
        yield path.encode()
        yield from value(found)


class _Walk:
    """Which values have been met, and how deep this is."""

    def __init__(self) -> None:
        self.met: dict[int, tuple[int, Any]] = {}  # by address, with the value: an address must keep its own
        self.depth = 0

    def number(self, given: Any) -> int | None:
        """Return which value in order this is where it was met before, so that it counts once."""
        found = self.met.get(id(given))
        if found is None:
            self.met[id(given)] = (len(self.met), given)
        return None if found is None else found[0]


def _value(given: Any, walk: _Walk) -> Parts:
    """Yield a value's type, then what its row of ``_ROWS`` says."""
    kind = type(given)
    yield f"{kind.__module__}.{kind.__qualname__}".encode()
    if not isinstance(given, _UNCHANGING):  # which of these are one object is up to Python
        number = walk.number(given)
        if number is not None:
            yield b"met %d" % number
            return
    if walk.depth < DEEPEST:
        walk.depth += 1
        row = next((row for kinds, row in _ROWS if isinstance(given, kinds)), _object)
        yield from row(given, walk)
        walk.depth -= 1


def _text(given: Any, walk: _Walk) -> Parts:
    del walk
    yield repr(given).encode()


def _items(given: Any, walk: _Walk) -> Parts:
    yield b"%d" % len(given)
    for item in given:
        yield from _value(item, walk)


def _set(given: Any, walk: _Walk) -> Parts:
    # in an order that each process has
    yield from sorted(hashlib.sha256(b"\0".join(_value(item, walk))).digest() for item in given)


def _dict(given: Any, walk: _Walk) -> Parts:
    yield from _items([item for pair in given.items() for item in pair], walk)


def _array(given: Any, walk: _Walk) -> Parts:
    yield repr((given.dtype, given.shape)).encode()
    if given.dtype.hasobject:
        yield from _items(given.ravel().tolist(), walk)
    else:
        yield given.tobytes()


def _function(given: Any, walk: _Walk) -> Parts:
    yield given.__qualname__.encode()
    yield from _code(given.__code__, walk)
    cells = [cell.cell_contents for cell in given.__closure__ or () if cell != _EMPTY]
    for held in (given.__defaults__, sorted((given.__kwdefaults__ or {}).items()), cells):
        yield from _value(held, walk)
    yield from _wrapped(given, walk)


def _wrapped(given: Any, walk: _Walk) -> Parts:
    if hasattr(given, "__wrapped__"):
        yield from _value(given.__wrapped__, walk)


def _code(given: Any, walk: _Walk) -> Parts:
    yield given.co_code
    yield getattr(given, "co_exceptiontable", b"")  # Python 3.11
    yield repr((given.co_argcount, given.co_kwonlyargcount, given.co_names)).encode()
    yield from _items(given.co_consts, walk)


def _partial(given: Any, walk: _Walk) -> Parts:
    for held in (given.func, given.args, sorted(given.keywords.items())):
        yield from _value(held, walk)


def _method(given: Any, walk: _Walk) -> Parts:
    yield from _value(given.__func__, walk)
    yield from _value(given.__self__, walk)


def _builtin(given: Any, walk: _Walk) -> Parts:
    yield f"{getattr(given, '__module__', '')}.{given.__name__}".encode()
    held = getattr(given, "__self__", None)
    if held is not None and not isinstance(held, types.ModuleType):
        yield from _value(held, walk)


def _vectorize(given: Any, walk: _Walk) -> Parts:
    # not its dictionary, in which calls leave something
    for held in (given.pyfunc, given.otypes, given.signature, given.excluded, given.cache):
        yield from _value(held, walk)


def _class(given: Any, walk: _Walk) -> Parts:
    """Yield the functions and plain values of a class made in Python, and of those it derives from."""
    for one in given.__mro__:
        yield f"{one.__module__}.{one.__qualname__}".encode()
        for name, entry in sorted(vars(one).items()) if one.__flags__ & _HEAP else ():
            held = entry.fget if isinstance(entry, property) else getattr(entry, "__func__", entry)
            plain = isinstance(held, (*_PLAIN, np.ndarray)) and not name.startswith("__")
            if plain or isinstance(held, types.FunctionType):
                yield name.encode()
                yield from _value(held, walk)


def _object(given: Any, walk: _Walk) -> Parts:
    """Yield what an object of a class made in Python holds, and the class; of others, what they wrap."""
    kind = type(given)
    if kind.__flags__ & _HEAP and kind.__module__.partition(".")[0] not in _OPAQUE:
        yield from _class(kind, walk)
        names = [n for one in kind.__mro__ for n in _slots(one)]
        held = {**{n: getattr(given, n, None) for n in names}, **getattr(given, "__dict__", {})}
        yield from _dict(dict(sorted(held.items())), walk)
    elif not isinstance(given, type):
        yield from _wrapped(given, walk)


def _slots(kind: type) -> tuple[str, ...]:
    found = vars(kind).get("__slots__", ())
    return (found,) if isinstance(found, str) else tuple(found)


_EMPTY = types.CellType()
_HEAP = 1 << 9  # Py_TPFLAGS_HEAPTYPE: most of them are made in Python
_OPAQUE = ("torch", "jax", "jaxlib", "mindspore", "numpy", "threading", "weakref", "logging", "polyop")
_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(...), range, slice, np.dtype, np.generic)
_UNCHANGING = (*_PLAIN, enum.Enum, PurePath, tuple, frozenset, types.CodeType)
_ROWS: tuple[tuple[Any, Callable[[Any, _Walk], Parts]], ...] = (
    (enum.Enum, _text),
    (_PLAIN, _text),
    (PurePath, _text),
    ((tuple, list, collections.deque), _items),
    ((set, frozenset), _set),
    ((dict, types.MappingProxyType), _dict),
    (np.ndarray, _array),
    (types.FunctionType, _function),
    (types.CodeType, _code),
    (functools.partial, _partial),
    (types.MethodType, _method),
    ((types.BuiltinFunctionType, np.ufunc), _builtin),
    (np.vectorize, _vectorize),
    (type, _class),
    (types.ModuleType, lambda given, walk: _text(given.__name__, walk)),
)
