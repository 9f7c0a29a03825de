"""Serialise Python functions and values to bytes that identify them, the same in every process.

There are no addresses in the bytes. ``_ROWS`` at the end has a function for each kind of value. A value
of any other kind (a random generator, a lock, another library's array) is represented by its type alone.
"""

from __future__ import annotations

import ast
import collections
import contextlib
import dataclasses
import enum
import functools
import hashlib
import types
from collections.abc import Callable, Iterator
from pathlib import PurePath
from typing import Any

import numpy as np

from ..core.errors import PolyopError
from ..core.origin import Origin

MAX_DEPTH = 24
"""The depth to which values inside values are followed; deeper ones are represented by their types."""

MAX_NESTED = 3
"""The same for objects of polyop in a rule: an author's function is not deeper than that."""

Parts = Iterator[bytes]
_CONSTANTS = (bool, int, float, complex, np.generic, tuple, list)


def value(item: Any) -> Parts:
    """Yield the bytes of a value; a function is represented by its code, defaults and closure."""
    yield from _value(item, _Walk())


def rule(item: Any) -> Parts:
    """Yield the bytes of a rule: also of the functions and constants of its module that it reads by name.

    Of a rule that polyop made from an author's function, these are the bytes of that function.
    """
    yield from _value(item, _Walk(rules=True))


def rules_of(operator: Any) -> tuple[Any, ...]:
    """Return what decides a compiled program beside the schema, the fixed values and the kernels."""
    return (operator.infer, *operator.rules, str(operator.dims), operator.autocast)


def loop_kernel(function: Callable[..., Any]) -> Parts:
    """Yield the source of a loop kernel, its defaults, and what it reads from outside: constants and helpers.

    These are the values of the definition, as in its compiled code.
    """
    from ..loops.frontend.parse import outline
    from ..loops.frontend.source import read

    with contextlib.suppress(PolyopError):  # its use says what is wrong
        outline(function)
    yield from _loops(read(function), ())


def _loops(source: Any, callers: tuple[Any, ...]) -> Parts:
    """Yield the same of a kernel, or of a helper; ``callers`` are the functions that it is a helper of."""
    yield ast.unparse(source.tree).encode()
    yield from value(tuple(source.defaults.items()) if source.records else source.function().__defaults__)
    inside = {*source.parameters}  # the names of the kernel: also those that it assigns, as loop variables
    inside |= {
        n.id for n in ast.walk(source.tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    for statement in source.tree.body:
        for node in ast.walk(statement):
            if isinstance(node, (ast.Name, ast.Attribute)):
                yield from _outer(source, ast.unparse(node), inside, (*callers, source.function()))


def _outer(source: Any, path: str, inside: set[str], callers: tuple[Any, ...]) -> Parts:
    """Yield what is behind a global name, or a module's attribute, that a loop kernel reads."""
    from ..loops.frontend.desugar.makers import is_maker
    from ..loops.frontend.language import is_word
    from ..loops.frontend.records import is_record

    if path.partition(".")[0] in inside or is_word(path):
        return
    try:
        constant = source.outer(path)
    except KeyError:  # a word of the language, or no name
        return
    if isinstance(constant, (*_CONSTANTS, np.ndarray)) or is_record(constant):
        yield path.encode()
        yield from value(constant)
    elif is_maker(constant):
        yield path.encode()
        yield constant.__name__.encode()
    elif isinstance(constant, types.FunctionType) and constant not in callers:
        yield path.encode()
        yield from _loops(source.helper(constant), callers)


def globals_of(function: Callable[..., Any]) -> Parts:
    """Yield the numbers and tuples of its module that a function reads by name: a compiler fixes them."""
    for name in function.__code__.co_names:
        constant = function.__globals__.get(name)
        if isinstance(constant, _CONSTANTS):
            yield name.encode()
            yield from value(constant)


class _Walk:
    """The values visited so far, and the depth of the current one. ``rules``: see :func:`rule`."""

    def __init__(self, rules: bool = False) -> None:
        self.rules = rules
        # by address; the value is kept alive, so that no other one gets its address
        self.visited: dict[int, tuple[int, Any]] = {}
        self.depth = self.nested = 0

    def number(self, item: Any) -> int | None:
        """Return the number of a value that was visited before, None for a new one (which gets a number)."""
        entry = self.visited.get(id(item))
        if entry is None:
            self.visited[id(item)] = (len(self.visited), item)
        return None if entry is None else entry[0]


def _value(item: Any, walk: _Walk) -> Parts:
    """Yield a value's type, then the bytes from its row of ``_ROWS``."""
    kind = type(item)
    yield f"{kind.__module__}.{kind.__qualname__}".encode()
    if not isinstance(
        item, _UNCHANGING
    ):  # equal immutable values may or may not be one object: it does not matter
        number = walk.number(item)
        if number is not None:
            yield b"met %d" % number
            return
    if walk.depth < MAX_DEPTH:
        walk.depth += 1
        row = next((row for kinds, row in _ROWS if isinstance(item, kinds)), _object)
        yield from row(item, walk)
        walk.depth -= 1


def _text(item: Any, walk: _Walk) -> Parts:
    del walk
    yield repr(item).encode()


def _items(item: Any, walk: _Walk) -> Parts:
    yield b"%d" % len(item)
    for entry in item:
        yield from _value(entry, walk)


def _set(item: Any, walk: _Walk) -> Parts:
    # sorted by digest: the order of a set differs between processes
    yield from sorted(hashlib.sha256(b"\0".join(_value(entry, walk))).digest() for entry in item)


def _dict(item: Any, walk: _Walk) -> Parts:
    yield from _items([entry for pair in item.items() for entry in pair], walk)


def _array(item: Any, walk: _Walk) -> Parts:
    yield repr((item.dtype, item.shape)).encode()
    if item.dtype.hasobject:
        yield from _items(item.ravel().tolist(), walk)
    else:
        yield item.tobytes()


def _function(item: Any, walk: _Walk) -> Parts:
    yield item.__qualname__.encode()
    yield from _code(item.__code__, walk)
    cells = [cell.cell_contents for cell in item.__closure__ or () if cell != _EMPTY]
    for part in (item.__defaults__, sorted((item.__kwdefaults__ or {}).items()), cells):
        yield from _value(part, walk)
    yield from _wrapped(item, walk)
    if walk.rules and _package(item) not in _OPAQUE:
        for name in sorted(_names(item.__code__)):
            part = item.__globals__.get(name)
            own = isinstance(part, types.FunctionType) and part.__globals__ is item.__globals__
            if own or isinstance(part, _CONSTANTS) or _package(type(part)) == "polyop":
                yield name.encode()
                yield from _value(part, walk)


def _names(code: types.CodeType) -> set[str]:
    """Return the names that a function reads, and those that the functions inside it read."""
    inner = [part for part in code.co_consts if isinstance(part, types.CodeType)]
    return {*code.co_names}.union(*map(_names, inner))


def _package(item: Any) -> str:
    return (item.__module__ or "").partition(".")[0]


def _wrapped(item: Any, walk: _Walk) -> Parts:
    if hasattr(item, "__wrapped__"):
        yield from _value(item.__wrapped__, walk)


def _code(item: Any, walk: _Walk) -> Parts:
    yield item.co_code
    yield getattr(item, "co_exceptiontable", b"")  # Python 3.11
    yield repr((item.co_argcount, item.co_kwonlyargcount, item.co_names)).encode()
    yield from _items(item.co_consts, walk)


def _partial(item: Any, walk: _Walk) -> Parts:
    for part in (item.func, item.args, sorted(item.keywords.items())):
        yield from _value(part, walk)


def _method(item: Any, walk: _Walk) -> Parts:
    yield from _value(item.__func__, walk)
    yield from _value(item.__self__, walk)


def _builtin(item: Any, walk: _Walk) -> Parts:
    yield f"{getattr(item, '__module__', '')}.{item.__name__}".encode()
    part = getattr(item, "__self__", None)
    if part is not None and not isinstance(part, types.ModuleType):
        yield from _value(part, walk)


def _vectorize(item: Any, walk: _Walk) -> Parts:
    # not its __dict__: calls cache results there
    for part in (item.pyfunc, item.otypes, item.signature, item.excluded, item.cache):
        yield from _value(part, walk)


def _class(item: Any, walk: _Walk) -> Parts:
    """Yield the functions and plain values of a Python class and its base classes."""
    for one in item.__mro__:
        yield f"{one.__module__}.{one.__qualname__}".encode()
        for name, entry in sorted(vars(one).items()) if one.__flags__ & _HEAP else ():
            part = entry.fget if isinstance(entry, property) else getattr(entry, "__func__", entry)
            plain = isinstance(part, (*_PLAIN, np.ndarray)) and not name.startswith("__")
            if plain or isinstance(part, types.FunctionType):
                yield name.encode()
                yield from _value(part, walk)


def _object(item: Any, walk: _Walk) -> Parts:
    """Yield the class and the attributes of an object of a Python class; of others, what they wrap."""
    kind = type(item)
    if walk.rules and _package(kind) == "polyop":
        yield from _of_polyop(item, walk)
    elif kind.__flags__ & _HEAP and _package(kind) not in _OPAQUE:
        yield from _class(kind, walk)
        names = [n for one in kind.__mro__ for n in _slots(one)]
        attributes = {**{n: getattr(item, n, None) for n in names}, **getattr(item, "__dict__", {})}
        yield from _dict(dict(sorted(attributes.items())), walk)
    elif not isinstance(item, type):
        yield from _wrapped(item, walk)


def _of_polyop(item: Any, walk: _Walk) -> Parts:
    """Yield what an object of polyop was made from: functions of the author, values, a kernel's content."""
    given = getattr(item, "__dict__", {})
    operator = given.get("operator", item)
    if isinstance(item, Origin):  # a line number, which an edit above it changes
        return
    if hasattr(type(item), "content"):
        yield from item.content()
    elif "compile_attrs" in given:  # a loop kernel: its operator, made at the first use, is made of this
        yield from loop_kernel(item.python)
        yield from _value(item.compile_attrs, walk)
    elif hasattr(operator, "kernels") and hasattr(operator, "schema"):
        yield from _operator(operator, walk, called=operator is not item)
    elif walk.nested < MAX_NESTED:
        walk.nested += 1
        if dataclasses.is_dataclass(item):
            yield from _dict({f.name: getattr(item, f.name, None) for f in dataclasses.fields(item)}, walk)
        else:  # neither numbers, of which some are addresses, nor what calls leave behind a _
            public = {n: p for n, p in given.items() if not n.startswith("_")}
            yield from _dict(
                {n: p for n, p in public.items() if isinstance(p, (str, tuple)) or callable(p)}, walk
            )
        walk.nested -= 1


def _operator(item: Any, walk: _Walk, called: bool) -> Parts:
    """Yield what decides an operator that a rule calls; of one that was met (rules in a cycle) its number.

    ``called``: a rule reads what is called, which holds the operator and may be one of several.
    """
    number = walk.number(item) if called else None
    if number is not None:
        yield b"met %d" % number
        return
    yield str(item.schema).encode()
    for kernel in item.kernels:
        yield from kernel.content()
    yield from _value((sorted(item.attributes.items()), item.target, rules_of(item)), walk)


def _slots(kind: type) -> tuple[str, ...]:
    slots = vars(kind).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


_EMPTY = types.CellType()
_HEAP = 1 << 9  # Py_TPFLAGS_HEAPTYPE: set for classes that are defined in Python
_OPAQUE = (
    "torch", "jax", "jaxlib", "mindspore", "numpy", "numba", "threading", "weakref", "logging", "polyop",
)  # fmt: skip
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
    (types.ModuleType, lambda item, walk: _text(item.__name__, walk)),
)
