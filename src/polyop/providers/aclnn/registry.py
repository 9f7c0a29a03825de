"""Which aclnn operators there are on the CPU: polyop's own, and those that authors register."""

from __future__ import annotations

import difflib
import inspect
import threading
from collections.abc import Callable, Sequence
from functools import lru_cache
from types import FrameType
from typing import Any

from ...core.errors import ArgumentTypeError, ArgumentValueError, SchemaError, UnsupportedError
from ...core.origin import caller, calling_frame, of_function
from ...core.schema import Schema
from .row import Function, Row

HOW = (
    "register it: polyop.register_aclnn(prototype, function), "
    "or polyop.register_aclnn_library(path, prototypes)"
)

_lock = threading.Lock()
_registered: dict[str, Row] = {}
_frames: dict[str, FrameType] = {}
"""Of names that a module or a notebook cell has registered, the frame that did."""


@lru_cache(maxsize=1)
def builtin() -> dict[str, Row]:
    """Return polyop's own rows by name, the derived in-place ones included."""
    from .tables import activation, comparison, elementwise, indexing, linear, normalisation, reduction, shape

    tables = (elementwise, comparison, reduction, linear, activation, normalisation, indexing, shape)
    rows = [row for table in tables for row in table.ROWS]
    rows += [row.in_place() for row in rows if row.inplace]
    return {row.name: row for row in rows}


def full_name(name: str) -> str:
    """Return the name with its prefix.

    >>> full_name("Mul"), full_name("aclnnMul")
    ('aclnnMul', 'aclnnMul')
    """
    return name if name.startswith("aclnn") else f"aclnn{name}"


def names() -> list[str]:
    """Return the names of all operators that run on the CPU, sorted."""
    return sorted({*builtin(), *_registered})


def known(name: str) -> bool:
    """Whether an operator has a row."""
    return full_name(name) in _registered or full_name(name) in builtin()


def find(name: str) -> Row:
    """Return the row of an operator, its name with or without the prefix.

    Raises ``UnsupportedError`` with the nearest names.
    """
    full = full_name(name)
    row = _registered.get(full) or builtin().get(full)
    if row is not None:
        return row
    folded = {known.lower(): known for known in names()}
    near = [folded[n] for n in difflib.get_close_matches(full.lower(), folded, n=4, cutoff=0.7)]
    hint = f"the nearest names are {', '.join(near)}; or {HOW}" if near else HOW
    rule = (
        "aclnn operators need CANN, which is not used here, or an implementation for the CPU: this has none"
    )
    raise UnsupportedError(full, rule, hint=hint)


def prototype(name: str) -> Schema:
    """Return the prototype of an operator; raises ``UnsupportedError``.

    >>> str(prototype("Mul"))
    'aclnnMul(Tensor self, Tensor other, Tensor(a!) out) -> ()'
    """
    return find(name).schema


def function(name: str) -> Function:
    """Return the array function of an operator: of the namespace and the inputs, without outputs."""
    return find(name).function


def loops() -> dict[str, str]:
    """Return the NumPy ufunc of each operator that is nothing else: name to name.

    ``aclnnAdd`` and ``aclnnSub`` are among them for an ``alpha`` of 1.

    >>> loops()["aclnnMul"]
    'multiply'
    """
    rows = {**builtin(), **_registered}
    return {name: row.ufunc for name, row in rows.items() if row.ufunc is not None}


on_replacement: list[Callable[[], None]] = []
"""Called after a registered row was replaced: the native core must not go on with the old loop."""


def core_loops() -> dict[str, tuple[Any, bool]]:
    """Return ``loops`` as the native core takes them: the ufunc, and whether a factor must be 1.

    The factor is the attribute before the output: ``alpha`` of ``aclnnAdd``.
    """
    import numpy as np

    return {
        name: (getattr(np, ufunc), any(True for _ in find(name).schema.attributes()))
        for name, ufunc in loops().items()
    }


def register(prototype: str, function: Callable[..., Any], *, loops: str | None = None) -> None:
    """Register an operator of one's own, to be found by its name wherever aclnn operators are.

    ``prototype`` lists the arguments as the first phase has them, written ones as
    ``Tensor(a!)``; one of these is read, too, when its name ends in ``Ref``. ``function`` is
    called with the inputs as arrays (a first parameter ``xp`` gets the array namespace) and
    returns one value for each written argument, a tuple of several. ``loops`` names the NumPy
    ufunc that the function is.

    >>> register("aclnnTwice(Tensor x, Tensor(a!) out) -> ()", lambda x: x + x)
    >>> import numpy as np
    >>> from polyop.providers.aclnn import launch
    >>> out = np.empty(2); launch("aclnnTwice", [np.ones(2), out]); out
    array([2., 2.])
    >>> forget("Twice")

    Running the same line, the module or the notebook cell again replaces it. Raises
    ``SchemaError`` for a prototype that is none, ``ArgumentTypeError`` for a function that does
    not take the inputs, and ``ArgumentValueError`` for a name that is taken, with both places,
    or an unknown ufunc.
    """
    row = checked(Row(prototype, _with_namespace(function), ufunc=loops, where=caller()))
    if loops is not None:
        import numpy as np

        if not isinstance(getattr(np, loops, None), np.ufunc):
            raise ArgumentValueError(
                row.name, "loops must name a ufunc of NumPy", repr(loops), where=row.where
            )
    count = len(row.inputs)
    try:
        inspect.signature(row.function).bind(*range(count + 1))
    except TypeError as problem:
        given = ", ".join(row.schema.arguments[i].name for i in row.inputs)
        rule = f"the function must take the {count} inputs ({given}) of {row.schema}: {problem}"
        raise ArgumentTypeError(row.name, rule, where=of_function(function)) from None
    add([row])


def forget(name: str) -> None:
    """Forget an operator that was registered; raises ``UnsupportedError`` when none was."""
    with _lock:
        _frames.pop(full_name(name), None)
        if _registered.pop(full_name(name), None) is None:
            listed = ", ".join(sorted(_registered)) or "none"
            raise UnsupportedError(full_name(name), "was not registered", hint=f"registered are {listed}")


def checked(row: Row) -> Row:
    """Return the row; raises ``SchemaError`` for a prototype that no aclnn operator can have."""
    schema = row.schema
    if schema.namespace or schema.overload or not schema.name.startswith("aclnn"):
        rule = "the name of a prototype must be aclnn and the operator's name, as aclnnMul"
        raise SchemaError(schema.qualified_name, rule, where=row.where)
    if schema.returns or not row.written:
        rule = "an aclnn operator writes its outputs, as (Tensor x, Tensor(a!) out) -> ()"
        raise SchemaError(schema.qualified_name, rule, str(schema), where=row.where)
    return row


def add(rows: Sequence[Row]) -> None:
    """Register rows, all or none; raises ``ArgumentValueError`` for a name that is taken."""
    frame = calling_frame()
    with _lock:
        for row in rows:
            old = _registered.get(row.name) or builtin().get(row.name)
            if old is not None and not _runs_again(old, row, frame):
                place = old.where or "polyop's own operators"
                rule = f"the name is taken by the one registered at {place}"
                hint = (
                    "choose another name" if old.where else "aclnn names that polyop has cannot be replaced"
                )
                raise ArgumentValueError(row.name, rule, where=row.where, hint=hint)
        stale = any(row.name in _registered and _registered[row.name].ufunc for row in rows)
        _registered.update({row.name: row for row in rows})
        if _is_module(frame):
            _frames.update({row.name: frame for row in rows})
    if stale:
        for listener in on_replacement:
            listener()


def _runs_again(old: Row, new: Row, frame: FrameType) -> bool:
    # a cell that is run again and a module that is reloaded have another frame over the same globals
    if old.where is not None and old.where == new.where:
        return True
    before = _frames.get(old.name)
    again = before is not None and before is not frame and before.f_globals is frame.f_globals
    return again and _is_module(frame)


def _is_module(frame: FrameType) -> bool:
    return frame.f_code.co_name.startswith("<")


def _with_namespace(function: Callable[..., Any]) -> Function:
    if not callable(function):
        raise ArgumentTypeError(
            "register", "'function' must be a function of arrays", type(function).__name__
        )
    try:
        first = next(iter(inspect.signature(function).parameters), None)
    except ValueError:  # built-in functions and ufuncs have no signature
        first = None
        return lambda xp, *arguments: function(*arguments)
    if first == "xp":
        return function

    def with_namespace(xp: Any, *arguments: Any) -> Any:
        del xp
        return function(*arguments)

    with_namespace.__signature__ = _extended(function)  # type: ignore[attr-defined]
    with_namespace.__wrapped__ = function  # type: ignore[attr-defined] # where it is written
    return with_namespace


def _extended(function: Callable[..., Any]) -> inspect.Signature:
    signature = inspect.signature(function)
    first = inspect.Parameter("xp", inspect.Parameter.POSITIONAL_ONLY)
    return signature.replace(parameters=[first, *signature.parameters.values()])
