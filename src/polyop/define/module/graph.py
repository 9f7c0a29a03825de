"""Operators of graph mode in a module: their names, and in which mode they can be called."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from typing import Any, NoReturn, TypeAlias

import numpy as np

from ...kernels.module.function_table import ModuleFunction
from ..op_def.op_def import OperatorDef
from .operator import ModuleOperator

Functions: TypeAlias = dict[str, ModuleFunction]

PREFIX = "Custom_"
"""MindSpore's prefix of the names of custom operators in a graph; the library exports them with it."""


class ModeError(RuntimeError):
    """An operator of graph mode that is called in PyNative mode."""


class UnknownFunctionError(AttributeError):
    """A module has no function of this name, or none in the current mode."""


class GraphOnly:
    """Stands in PyNative mode for an operator that has only graph mode; a call raises ``ModeError``."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise ``ModeError``."""
        del args, kwargs
        raise ModeError(
            f"{self.name} does not support PyNative mode: it is registered with REG_GRAPH_MODE_OP alone. "
            f"Bind a function with m.def() as well, or switch to GRAPH_MODE"
        )


class GraphOperator(ModuleOperator):
    """An operator of graph mode. It takes numbers for tensors that op_def lists under type_cast."""

    casts: frozenset[str] = frozenset()
    disabled = False
    """Whether op_def disables the function; the operator then has only its name with MindSpore's prefix."""

    def as_schema_arguments(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments of a call, with numbers converted to tensors."""
        if self.casts:
            names = [argument.name for argument in self.schema.arguments]
            like = next((value for value in (*args, *kwargs.values()) if hasattr(value, "dtype")), None)
            args = (
                tuple(
                    _tensor(value, like) if name in self.casts else value
                    for name, value in zip(names, args, strict=False)
                )
                + args[len(names) :]
            )
            kwargs = {
                name: _tensor(value, like) if name in self.casts else value for name, value in kwargs.items()
            }
        return super().as_schema_arguments(args, kwargs)


def _tensor(value: Any, like: Any) -> Any:
    """Return a number as a tensor of the framework of ``like``: int64, float32 or bool, as in MindSpore."""
    if not isinstance(value, (bool, int, float)):
        return value
    kind = "bool" if isinstance(value, bool) else "int64" if isinstance(value, int) else "float32"
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(like, torch.Tensor):
        return torch.tensor(value, dtype=getattr(torch, kind), device=like.device)
    return np.asarray(value, kind)


def divide(
    functions: Sequence[ModuleFunction],
) -> tuple[dict[str, ModuleFunction], dict[str, ModuleFunction]]:
    """Return the functions that ``m.def`` bound, and the operators of graph mode, by name.

    An operator is ``module::name``; beside a function of that name it keeps MindSpore's prefix.
    A function of no arguments beside an operator is what REG_GRAPH_MODE_OP binds in its place.
    """
    graph = {f.name[len(PREFIX) :]: f for f in functions if f.name.startswith(PREFIX)}
    plain = {f.name: f for f in functions if not f.name.startswith(PREFIX)}
    for name in list(plain):
        if name in graph and not plain[name].signature.parameters:
            del plain[name]
    return plain, {
        name: function if name in plain else _named(function, name) for name, function in graph.items()
    }


def _named(function: ModuleFunction, name: str) -> ModuleFunction:
    schema = dataclasses.replace(function.signature.schema, name=name)
    return dataclasses.replace(
        function, name=name, signature=dataclasses.replace(function.signature, schema=schema)
    )


def apply(definitions: Sequence[OperatorDef], operators: dict[str, GraphOperator]) -> None:
    """Set the properties of operators that op_def has and their library has not."""
    numbers = {"int", "float", "bool", "number"}
    for one in definitions:
        if one.function in operators:
            operator = operators[one.function]
            tensors = [a for a in one.arguments if a.dtype == "tensor"]
            operator.casts = frozenset(a.name for a in tensors if numbers & set(a.casts))
            operator.disabled = one.function_disabled


def choose(
    module: str, name: str, graph_mode: bool | None, plain: dict[str, Any], operators: dict[str, Any]
) -> Any:
    """Return the value of ``module.name`` in a mode; None means outside of MindSpore-style scripts.

    Raises ``UnknownFunctionError`` (an ``AttributeError``) for a name that the mode does not have.
    """
    if name.startswith(PREFIX) and name[len(PREFIX) :] in operators:
        return operators[name[len(PREFIX) :]]
    graph = {called: one for called, one in operators.items() if not one.disabled}
    if operators and graph_mode is True:
        if name in graph:
            return graph[name]
        if name in plain:
            text = (
                "does not support GRAPH mode. Please register it for GRAPH mode or switch to PYNATIVE mode."
            )
            raise UnknownFunctionError(f"Custom op '{name}' {text}")
    elif name in plain:
        return plain[name]
    elif name in graph:
        return GraphOnly(f"{module}.{name}") if graph_mode is False else graph[name]
    known = ", ".join(dict.fromkeys((*plain, *graph)))
    text = f"Custom op '{name}' is neither in func_module nor in so_module: {module} has {known}"
    raise UnknownFunctionError(text)
