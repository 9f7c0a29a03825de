"""``@kernel``: mark a loop nest for the compiler; it stays a Python function over NumPy arrays."""

from __future__ import annotations

import difflib
import functools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..call.host import host_of
from ..core.errors import ArgumentTypeError, ArgumentValueError
from ..core.origin import of_function

COMPILE_ATTRS = ("precise", "debug", "tape", "tape_bytes")
TAPES = ("auto", "all", "none")


def kernel(
    fn: Callable[..., Any] | None = None,
    reg_info: Any = None,
    compile_attrs: Mapping[str, Any] | None = None,
) -> Any:
    """Return the function, marked as a loop kernel; called on NumPy arrays it runs as plain Python.

    ``Custom(fn, func_type="hybrid")`` and ``operator(schema, fn)`` compile it, for the tensors of every
    framework. The function itself refuses the tensors of frameworks, because its results would be NumPy's.

    ``reg_info``       operator information, as ``custom_info_register`` takes it.
    ``compile_attrs``  options: ``precise`` (libm's functions instead of polyop's own), ``debug`` (every
                       index is checked), ``tape`` (what a call keeps for its derived gradient: "auto",
                       "all" temporaries or "none"), ``tape_bytes`` (the largest size of that, and of the
                       gradient's tapes, in bytes). Names that only MindSpore's schedulers know have no
                       effect.

    >>> import numpy as np
    >>> @kernel
    ... def double(x):
    ...     y = output_tensor(x.shape, x.dtype)
    ...     for i in range(x.shape[0]):
    ...         y[i] = x[i] * 2
    ...     return y
    >>> double(np.ones(2, np.float32))
    array([2., 2.], dtype=float32)

    A function that is marked already keeps its options, except those given here. Neither the function
    nor its module is changed. Raises ``ArgumentTypeError`` and ``ArgumentValueError``.
    """
    if compile_attrs is not None and not isinstance(compile_attrs, Mapping):
        rule = "The input 'compile_attrs' of @kernel must be a dict"
        raise ArgumentTypeError("kernel", rule, type(compile_attrs).__name__)
    _check_attrs(compile_attrs or {}, "kernel")
    if reg_info is not None and not isinstance(reg_info, (str, Mapping, tuple)):
        rule = "The input 'reg_info' of @kernel must be a str, dict or tuple"
        raise ArgumentTypeError("kernel", rule, type(reg_info).__name__)

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        if not callable(function):
            rule = "must decorate a function"
            raise ArgumentTypeError("kernel", rule, type(function).__name__)
        from ..loops.frontend.plain import plain

        run = plain(function)

        @functools.wraps(function)
        def decorated(*args: Any, **kwargs: Any) -> Any:
            _refuse_tensors(function, (*args, *kwargs.values()))
            return run(*args, **kwargs)

        decorated.compile_attrs = {**_compile_attrs(function), **(compile_attrs or {})}  # type: ignore[attr-defined]
        items = () if reg_info is None else reg_info if isinstance(reg_info, tuple) else (reg_info,)
        if items:
            decorated.reg_info = items  # type: ignore[attr-defined]
        return decorated

    return decorate if fn is None else decorate(fn)


def _refuse_tensors(function: Callable[..., Any], arguments: Sequence[Any]) -> None:
    """Raise ``ArgumentTypeError`` for a framework's tensor: the result would be a NumPy array."""
    for value in arguments:
        host = host_of(value)
        if host is not None and host.name != "numpy":
            name = function.__name__
            rule = "called directly, it runs as plain Python over NumPy arrays; it is not yet an operator"
            hint = (
                f'make an operator once, op = polyop.Custom({name}, func_type="hybrid") or '
                f"polyop.operator(schema, {name}), and call op: it is compiled, and has a gradient"
            )
            seen, where = f"a tensor of {host.name}", of_function(function)
            raise ArgumentTypeError(f"the loop kernel {name}", rule, seen, where=where, hint=hint)


def options(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the options of a loop kernel from a function's ``compile_attrs``; the defaults without any.

    Raises ``ArgumentTypeError`` and ``ArgumentValueError`` for options that ``@kernel`` would refuse.
    """
    given = _compile_attrs(function)
    words = {word: bool(given.get(word)) for word in ("precise", "debug")}
    return {**words, "tape": given.get("tape", "auto"), "tape_bytes": given.get("tape_bytes")}


def _compile_attrs(function: Callable[..., Any]) -> dict[str, Any]:
    given = getattr(function, "compile_attrs", {})
    subject = f"kernel {getattr(function, '__name__', function)}"
    if isinstance(given, str):  # MindSpore's own @kernel keeps JSON
        try:
            given = json.loads(given)
        except (ValueError, RecursionError) as problem:
            raise ArgumentTypeError(
                subject, f"'compile_attrs' must be valid JSON: {problem}", repr(given)
            ) from None
    if not isinstance(given, Mapping):
        rule = "'compile_attrs' must be a dict, or its JSON text"
        raise ArgumentTypeError(subject, rule, repr(given))
    _check_attrs(given, subject)
    return dict(given)


def _check_attrs(given: Mapping[str, Any], subject: str) -> None:
    for name in given:
        if not isinstance(name, str):
            raise ArgumentTypeError(subject, "The keys of 'compile_attrs' must be of type str", repr(name))
        near = difflib.get_close_matches(name, COMPILE_ATTRS, 1, 0.6)
        if near and name not in COMPILE_ATTRS:
            rule = "'compile_attrs' has no such option"
            raise ArgumentValueError(subject, rule, repr(name), hint=f"did you mean {near[0]!r}?")
    for name in ("precise", "debug"):
        if not isinstance(given.get(name, False), bool):
            raise ArgumentTypeError(subject, f"{name!r} must be True or False", repr(given[name]))
    tape = given.get("tape", "auto")
    if not isinstance(tape, str) or tape not in TAPES:
        raise ArgumentValueError(subject, f"'tape' must be one of {list(TAPES)}", repr(tape))
    limit = given.get("tape_bytes")
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 0):
        rule = "'tape_bytes' must be a number of bytes, or None for no limit"
        kind = ArgumentValueError if isinstance(limit, int) else ArgumentTypeError
        raise kind(subject, rule, repr(limit))
