"""Check at an operator's definition that an author's function can be called as polyop will call it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .errors import ArgumentTypeError
from .origin import of_function
from .schema import Schema


def check_takes(
    role: str,
    function: Callable[..., Any],
    names: Sequence[str],
    schema: Schema,
    where: Any,
    keywords: Iterable[str] = (),
) -> None:
    """Raise ``ArgumentTypeError`` unless a function can be called with these positions and keywords.

    ``role`` is what the function is of the operator: ``"the kernel"``, ``"infer"``, ``"gradient"``. One whose
    parameters Python does not know is accepted, and of a wrapper the wrapper's own parameters count.
    """
    try:
        signature = inspect.signature(function, follow_wrapped=False)
    except (TypeError, ValueError):
        return  # a builtin function without a signature
    try:
        signature.bind(*names, **dict.fromkeys(keywords))
    except TypeError as problem:
        called = ", ".join([*names, *(f"{name}=..." for name in keywords)])
        rule = f"{role} is called with ({called}), which the function does not take ({problem})"
        name = getattr(function, "__name__", type(function).__name__)
        seen = f"{name}{signature.replace(return_annotation=signature.empty)}"
        parameters = ", ".join([*names, *keywords])
        hint = f"the operator is {schema}: give the function the parameters ({parameters})"
        subject = schema.qualified_name
        place = of_function(function) or where
        raise ArgumentTypeError(subject, rule, seen, where=place, hint=hint) from None


def checked_reference(reference: Any, schema: Schema, where: Any) -> Any:
    """Return ``reference=``, of a function of ``@kernel`` its Python: not compiled code against itself.

    Raises ``ArgumentTypeError`` unless it is None or takes the operator's arguments.
    """
    if reference is None:
        return None
    function = getattr(reference, "python", reference)
    if not callable(function):
        rule = "reference must be a function of the operator's arguments"
        raise ArgumentTypeError(schema.qualified_name, rule, repr(reference), where=where)
    names = [argument.name for argument in schema.arguments]
    positions, keywords = schema.split(names)
    check_takes("reference", function, positions, schema, where, keywords)
    return function
