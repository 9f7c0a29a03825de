"""``@kernel``: the decorator that makes an operator of a loop nest."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..call.host import host_of
from ..core.errors import ArgumentTypeError
from ..core.origin import of_function
from ..loops.ir.schedule import Schedule
from .kernel_operator import KernelOperator, check_name
from .kernel_options import check_attrs, compile_attrs_of


def kernel(
    fn: Callable[..., Any] | None = None,
    reg_info: Any = None,
    compile_attrs: Mapping[str, Any] | None = None,
    *,
    name: str | None = None,
    schedule: Schedule | None = None,
    derived_schedules: Mapping[str, Schedule] | None = None,
    deterministic: str | None = None,
) -> Any:
    """Return the loop nest as an operator: called with the tensors of any framework, it runs compiled.

    It differentiates, batches and compiles as what :func:`polyop.operator` returns. Parameters that the loops
    index are tensors. All others are attributes, of the type of their annotation, else of their default; so
    are the fields of a NamedTuple or dataclass. A tensor with the annotation ``"Tensor | None"`` may be left
    out. ``if b is None`` and ``mode == "mean"`` are decided when the kernel is compiled.
    ``f.python(*arrays)`` runs it as plain Python over NumPy arrays: the definition of what it means.

    ``name``           ``"namespace::name"``; else the module, with ``_`` for dots, and the function's name.
    ``reg_info``       operator information, as ``custom_info_register`` takes it; for ``Custom``.
    ``compile_attrs``  options: ``precise`` (libm's functions instead of polyop's own), ``debug`` (every
                       index is checked), ``tape`` (what a call keeps for its derived gradient: "auto",
                       "all" temporaries or "none"), ``tape_bytes`` (the largest size of that, and of the
                       gradient's tapes, in bytes). Names that only MindSpore's schedulers know have no
                       effect.
    ``schedule``       what the loops become, partly or wholly: a :class:`polyop.Schedule`. The compiler
                       chooses the rest. ``polyop explain`` prints what was chosen in this form.
    ``derived_schedules``  those of derived kernels, by the end of their names: ``{"backward": ...}`` is for
                       the gradient, "backward__batched" for its batch.
    ``deterministic``  "batch": a row has the same bits alone and in a batch of any size, on any number of
                       threads of a CPU; derived kernels too. One thread then computes each sum, and the C
                       compiler fuses nothing. ``polyop explain`` says where this holds anyway.

    >>> import numpy as np
    >>> @kernel
    ... def times(x, factor: float = 2.0):
    ...     y = output_tensor(x.shape, x.dtype)
    ...     for i in range(x.shape[0]):
    ...         y[i] = x[i] * factor
    ...     return y
    >>> times.python(np.ones(2, np.float32))
    array([2., 2.], dtype=float32)

    The last definition of a name in a module replaces the one before. ``Custom(f, func_type="hybrid")`` and
    ``operator(schema, f)`` make another operator of the same loops. A function that is marked already keeps
    its options, except those given here. Neither the function nor its module is changed.

    Raises ``ArgumentTypeError`` and ``ArgumentValueError``; the first call raises ``SchemaError`` if an
    attribute has no type, ``ScheduleError`` if a step of the schedule is not legal, and what the loop
    compiler refuses.
    """
    if name is not None:
        check_name(name)
    keywords = {"schedule": schedule, "derived_schedules": derived_schedules, "deterministic": deterministic}
    marker = python_kernel(reg_info=reg_info, compile_attrs=_merged(compile_attrs, keywords))

    def decorate(function: Callable[..., Any]) -> Any:
        return KernelOperator(marker(function), name)

    return decorate if fn is None else decorate(fn)


def _merged(compile_attrs: Mapping[str, Any] | None, keywords: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return ``compile_attrs`` with the keywords that are given."""
    given = {name: value for name, value in keywords.items() if value is not None}
    check_attrs(given, "kernel")
    return {**(compile_attrs or {}), **given} if given else compile_attrs


def python_kernel(
    fn: Callable[..., Any] | None = None,
    reg_info: Any = None,
    compile_attrs: Mapping[str, Any] | None = None,
) -> Any:
    """Return the function, marked as a loop kernel; called on NumPy arrays it runs as plain Python.

    This is MindSpore's ``ops.kernel``. ``Custom(fn, func_type="hybrid")`` and ``operator(schema, fn)``
    compile it. The function itself refuses the tensors of frameworks, because its results would be NumPy's.
    Arguments and errors are those of :func:`kernel`.
    """
    if compile_attrs is not None and not isinstance(compile_attrs, Mapping):
        rule = "The input 'compile_attrs' of @kernel must be a dict"
        raise ArgumentTypeError("kernel", rule, type(compile_attrs).__name__)
    check_attrs(compile_attrs or {}, "kernel")
    if reg_info is not None and not isinstance(reg_info, (str, Mapping, tuple)):
        rule = "The input 'reg_info' of @kernel must be a str, dict or tuple"
        raise ArgumentTypeError("kernel", rule, type(reg_info).__name__)

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        if not callable(function):
            rule = "must decorate a function"
            raise ArgumentTypeError("kernel", rule, type(function).__name__)
        from ..loops.frontend.plain import plain

        given = compile_attrs_of(function)
        function = getattr(function, "python", function)  # of an operator of @kernel

        run = plain(function)

        @functools.wraps(function)
        def decorated(*args: Any, **kwargs: Any) -> Any:
            _refuse_tensors(function, (*args, *kwargs.values()))
            return run(*args, **kwargs)

        decorated.compile_attrs = {**given, **(compile_attrs or {})}  # type: ignore[attr-defined]
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
            rule = "as plain Python it runs over NumPy arrays"
            hint = (
                f"to compile it and to have its gradient, decorate it with @polyop.kernel and call {name}; "
                f'or make an operator once, op = polyop.Custom({name}, func_type="hybrid"), and call op'
            )
            seen, where = f"a tensor of {host.name}", of_function(function)
            raise ArgumentTypeError(f"the loop kernel {name}", rule, seen, where=where, hint=hint)
