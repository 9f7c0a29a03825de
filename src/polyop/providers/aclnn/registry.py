"""The aclnn operators that run on the CPU: polyop's own, and those that authors register."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Sequence
from functools import lru_cache
from types import FrameType
from typing import Any

from ...core import locks
from ...core.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    HostError,
    SchemaError,
    UnsupportedError,
)
from ...core.origin import caller, module_frame, of_function, runs_again
from ...core.schema import Schema
from ...core.texts import by_small_letters
from .row import HOW_TO_REGISTER, Function, Row
from .through_aten import row_of

_lock = locks.shared("table of aclnn operators", locks.Level.TABLE)
_registered: dict[str, Row] = {}
_frames: dict[str, FrameType] = {}
"""Name to frame, for operators that the code of a module or a notebook cell registered."""


@lru_cache(maxsize=1)
def builtin() -> dict[str, Row]:
    """Return polyop's own rows by name, with the in-place operators derived from them."""
    from .table import ROWS

    rows = [*ROWS, *(row.in_place() for row in ROWS if row.inplace)]
    return {row.name: row for row in rows}


def full_name(name: str) -> str:
    """Return the name with its prefix.

    >>> full_name("Mul"), full_name("aclnnMul")
    ('aclnnMul', 'aclnnMul')
    """
    return name if name.startswith("aclnn") else f"aclnn{name}"


def names() -> list[str]:
    """Return the names of the operators that run on the CPU without PyTorch, sorted."""
    return sorted({*builtin(), *_registered})


def known(name: str) -> bool:
    """Whether an operator has a row of polyop's or an author's, whose prototype is CANN's."""
    return full_name(name) in _registered or full_name(name) in builtin()


def find(name: str) -> Row:
    """Return the row of an operator, its name with or without the prefix.

    Raises ``UnsupportedError`` with the nearest names.
    """
    full, hints, without = full_name(name), [HOW_TO_REGISTER], None
    try:
        row = _registered.get(full) or builtin().get(full) or _of_pytorch(full)
    except HostError as problem:  # PyTorch cannot be imported
        row, without = None, problem
        hints.insert(0, "install PyTorch (pip install torch), whose operators run most that polyop has not")
    if row is not None:
        return row
    known_names = by_small_letters(names())
    near = [known_names[n] for n in difflib.get_close_matches(full.lower(), known_names, n=4, cutoff=0.7)]
    if near:
        hints.insert(0, f"the nearest names are {', '.join(near)}")
    rule = (
        "aclnn operators need CANN, which is not used here, or an implementation for the CPU: this has none"
    )
    raise UnsupportedError(full, rule, hint="; or ".join(hints)) from without


def _of_pytorch(full: str) -> Row | None:
    """Return the row by PyTorch's name, in letters of any case; None for one of polyop's own, misspelled."""
    return None if full.lower() in _builtin_by_small_letters() else row_of(full)


@lru_cache(maxsize=1)
def _builtin_by_small_letters() -> dict[str, str]:
    return by_small_letters(builtin())


def prototype(name: str) -> Schema:
    """Return the prototype of an operator; raises ``UnsupportedError``.

    >>> str(prototype("Mul"))
    'aclnnMul(Tensor self, Tensor other, Tensor(a!) out) -> ()'
    """
    return find(name).schema


def loops() -> dict[str, str]:
    """Return {operator: ufunc} for operators that are a single NumPy ufunc.

    ``aclnnAdd`` and ``aclnnSub`` are among them for an ``alpha`` of 1.

    >>> loops()["aclnnMul"]
    'multiply'
    """
    rows = {**builtin(), **_registered}
    return {name: row.ufunc for name, row in rows.items() if row.ufunc is not None}


on_replacement: list[Callable[[], None]] = []
"""Called after a registered row was replaced, so that the native core drops the old loop."""


def core_loops() -> dict[str, tuple[Any, bool]]:
    """Return {operator: (ufunc, whether the factor must be 1)} for the native core.

    The factor is the attribute before the output: ``alpha`` of ``aclnnAdd``.
    """
    import numpy as np

    return {
        name: (getattr(np, ufunc), any(True for _ in find(name).schema.attributes()))
        for name, ufunc in loops().items()
    }


def register(prototype: str, function: Callable[..., Any], *, loops: str | None = None) -> None:
    """Register an operator, which is then found by its name like any aclnn operator.

    ``prototype`` lists the arguments of the first phase, those that are written as ``Tensor(a!)``; a
    written argument whose name ends in ``Ref`` is also read. ``function`` is called with the inputs
    as arrays, and gets the array namespace if its first parameter is named ``xp``. It returns one
    value per written argument, several as a tuple. ``loops`` names a NumPy ufunc that computes the
    same.

    >>> register("aclnnTwice(Tensor x, Tensor(a!) out) -> ()", lambda x: x + x)
    >>> import numpy as np
    >>> from polyop.providers.aclnn import launch
    >>> out = np.empty(2); launch("aclnnTwice", [np.ones(2), out]); out
    array([2., 2.])
    >>> forget("Twice")

    Running the same line, module or notebook cell again replaces the operator. Raises ``SchemaError``
    for a wrong prototype, ``ArgumentTypeError`` for a function that does not take the inputs, and
    ``ArgumentValueError`` for an unknown ufunc or a name that is already registered.
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
        listed = ", ".join(row.schema.arguments[i].name for i in row.inputs)
        rule = f"the function must take the {count} inputs ({listed}) of {row.schema}: {problem}"
        raise ArgumentTypeError(row.name, rule, where=of_function(function)) from None
    add([row])


def forget(name: str) -> None:
    """Remove a registered operator; raises ``UnsupportedError`` if the name is not registered."""
    with _lock:
        _frames.pop(full_name(name), None)
        if _registered.pop(full_name(name), None) is None:
            listed = ", ".join(sorted(_registered)) or "none"
            raise UnsupportedError(full_name(name), "was not registered", hint=f"registered are {listed}")


def checked(row: Row) -> Row:
    """Return the row; raises ``SchemaError`` if its prototype cannot be an aclnn operator's."""
    schema = row.schema
    if schema.namespace or schema.overload or not schema.name.startswith("aclnn"):
        rule = "the name of a prototype must be aclnn and the operator's name, as aclnnMul"
        raise SchemaError(schema.qualified_name, rule, where=row.where)
    if schema.returns or not row.written:
        rule = "an aclnn operator writes its outputs, as (Tensor x, Tensor(a!) out) -> ()"
        raise SchemaError(schema.qualified_name, rule, str(schema), where=row.where)
    return row


def add(rows: Sequence[Row]) -> None:
    """Register all rows or none; raises ``ArgumentValueError`` for a name that is already registered."""
    frame, own = module_frame(), builtin()
    with _lock:
        for row in rows:
            old = _registered.get(row.name) or own.get(row.name)
            if old is not None and not _replaces(old, row, frame):
                origin = old.where or "polyop's own operators"
                rule = f"the name is taken by the one registered at {origin}"
                hint = (
                    "choose another name" if old.where else "aclnn names that polyop has cannot be replaced"
                )
                raise ArgumentValueError(row.name, rule, where=row.where, hint=hint)
        stale = any(row.name in _registered and _registered[row.name].ufunc for row in rows)
        _registered.update({row.name: row for row in rows})
        if frame is not None:
            _frames.update({row.name: frame for row in rows})
    if stale:
        for listener in on_replacement:
            listener()


def _replaces(old: Row, new: Row, frame: FrameType | None) -> bool:
    is_same_line = old.where is not None and old.where == new.where
    return is_same_line or runs_again(_frames.get(old.name), frame)


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

    with_namespace.__signature__ = _signature_with_namespace(function)  # type: ignore[attr-defined]
    with_namespace.__wrapped__ = function  # type: ignore[attr-defined] # for the origin of the function
    return with_namespace


def _signature_with_namespace(function: Callable[..., Any]) -> inspect.Signature:
    signature = inspect.signature(function)
    first = inspect.Parameter("xp", inspect.Parameter.POSITIONAL_ONLY)
    return signature.replace(parameters=[first, *signature.parameters.values()])
