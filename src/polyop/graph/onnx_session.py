"""The functions that csrc/hosts/onnx.cc calls for ONNX Runtime's sessions.

    rows      when the library is registered: the operators
    text      when a node's kernel is made: the text of its call
    results   for input specs that the native core has not seen: the output specs

A returned ``str`` is the text of an error, anything else is the result. Therefore ``text`` returns its text
in a tuple.
"""

from __future__ import annotations

import atexit
import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from .. import _core
from ..call import registry
from ..call.foreign import call_text, parse_call_text, unflatten
from ..call.operator import Operator
from ..call.prepare import normalise, prepare
from ..core.dtypes import DTYPES
from ..core.errors import HostError
from ..core.spec import Spec
from .onnx_attributes import arguments_of, names, refusal

_F = TypeVar("_F", bound=Callable[..., Any])
_ROWS = {dtype: row for row, dtype in enumerate(DTYPES)}


def node_type(operator: Operator) -> tuple[str, str]:
    """Return the domain and the type of an operator's nodes: namespace and name of the schema."""
    schema = operator.schema
    return schema.namespace, f"{schema.name}.{schema.overload}" if schema.overload else schema.name


def _errors_as_text(function: _F) -> _F:
    @functools.wraps(function)
    def wrapper(*args: Any) -> Any:
        try:
            return function(*args)
        except Exception as problem:  # noqa: BLE001 - the session shows the text
            return f"{type(problem).__name__}: {problem}"

    return wrapper  # type: ignore[return-value]


def rows() -> list[tuple[str, str, str, tuple[str, ...]]]:
    """Return domain, type, name and attributes of each operator that ONNX can hold, by domain."""
    operators = [bound.operator for bound in registry.operators() if refusal(bound.operator) is None]
    return sorted((*node_type(operator), operator.name, names(operator)) for operator in operators)


@_errors_as_text
def text(name: str, node_attributes: dict[str, Any], inputs: int) -> tuple[str]:
    """Return the text of the call that a node makes; see :mod:`polyop.call.foreign`."""
    bound = registry.obtain(name)
    if bound is None:
        raise HostError(name, "the operator no longer exists, and a model calls it", hint="keep the operator")
    return (call_text(bound, arguments_of(bound.operator, node_attributes, inputs)),)


@_errors_as_text
def results(
    call: str, tensors: Sequence[tuple[tuple[int, ...], int]]
) -> tuple[list[tuple[tuple[int, ...], int]], bool]:
    """Return shape and dtype (its row) of each result, and whether they are the same for equal specs."""
    bound, attributes = parse_call_text(call)
    operator: Operator = bound.operator
    specs = [Spec(shape, DTYPES[row]) for shape, row in tensors]
    prepared = prepare(
        operator, normalise(operator, unflatten(operator.schema, attributes, specs)), infer=True
    )
    outputs = [(tuple(map(int, spec.shape)), _ROWS[spec.dtype]) for spec in prepared.outputs]
    return outputs, prepared.repeatable


_core.start_onnx(_errors_as_text(rows), text, results)
atexit.register(_core.stop_onnx)
