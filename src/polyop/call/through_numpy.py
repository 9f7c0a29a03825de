"""Run a call of a framework with tensors on the CPU: the NumPy host runs on views of their memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.errors import HostError
from .host import Host, load, map_tensors, specs
from .operator import Operator


def run_through_numpy(
    host: Host,
    bound: Any,
    arguments: tuple[Any, ...],
    as_array: Callable[[Operator, str, Any], Any],
    as_tensor: Callable[[Any, str], Any],
) -> tuple[Any, ...]:
    """Run an operator and return its outputs as tensors; an argument that it writes is returned itself.

    ``as_array`` gets the operator, the argument's name and its tensor, and returns a view of the tensor's
    memory. ``as_tensor`` gets a new array and the operator's name. The caller has checked the target.
    """
    operator: Operator = bound.operator
    specs(host, operator, arguments)  # raises for a value without a spec
    owners: dict[int, Any] = {}  # id of an array that is written: its tensor

    def array(name: str, value: Any, argument: Any) -> Any:
        view = as_array(operator, name, value)
        if argument.type.writes:
            owners[id(view)] = value
        return view

    arrays = map_tensors(operator, arguments, array)
    numpy = load("numpy")
    assert numpy is not None
    outputs = numpy.call(bound, arrays)
    return tuple(owners[id(x)] if id(x) in owners else as_tensor(x, bound.name) for x in outputs)


def check_on_cpu(operator: Operator, tensors: str) -> None:
    """Raise ``HostError`` for an operator that is bound to another device than the CPU's ``tensors``."""
    if operator.target not in (None, "cpu"):
        rule = f"is bound to {operator.target}, and {tensors} on the CPU"
        raise HostError(operator.name, rule, where=operator.origin)
