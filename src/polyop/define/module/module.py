"""A loaded C++ operator module: its functions as attributes."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...core.arguments import attribute, bind
from ...core.errors import ArgumentValueError
from ...core.origin import Origin
from ...kernels.module.function_table import ModuleFunction, open_module
from ...kernels.module.kernel import plain_call
from ..op_def.op_def import OperatorDef
from .dims import read_all
from .graph import GraphOperator, UnknownFunctionError, apply, choose, divide
from .operator import ModuleOperator

__all__ = ["OperatorModule", "PlainFunction", "UnknownFunctionError", "numpy_like"]


class PlainFunction:
    """A function without tensor arguments, or without tensor results: no operator, so it is not traced."""

    def __init__(self, function: ModuleFunction, like: Callable[[], Any]) -> None:
        self.function, self.like = function, like
        self.__name__, self.__doc__ = function.name, function.doc or None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the result of the function; raises ``ArgumentTypeError``, ``KernelError``."""
        signature = self.function.signature
        schema = signature.schema
        if schema.tensor_positions:
            rule = "takes tensors and returns something else: return tensors to make it an operator"
            raise ArgumentValueError(schema.qualified_name, rule)
        bound = bind(schema, args, kwargs)
        values = [
            attribute(argument, value, schema.qualified_name)
            for argument, value in zip(schema.arguments, bound, strict=True)
        ]
        return plain_call(self.function.address, signature, values, self.like())

    def __repr__(self) -> str:
        """Return the signature."""
        return f"<polyop function {self.function.signature.schema.qualified_name}>"


def numpy_like() -> Any:
    """Return a NumPy array: functions without tensor arguments make tensors of its framework."""
    return np.empty(0, np.float32)


class OperatorModule:
    """The functions of a C++ module; those over tensors are operators for every host.

    ``path`` is the library. An unknown name raises ``AttributeError`` with all names. ``graph_mode`` tells
    whether a MindSpore-style script is in graph mode, which has only the operators registered for it.
    Without it the module has all functions and operators.
    """

    def __init__(
        self,
        name: str,
        path: Path,
        *,
        device: str = "cpu",
        infer: Mapping[str, Any] | None = None,
        dims: Mapping[str, Any] | None = None,
        origin: Origin | None = None,
        like: Callable[[], Any] = numpy_like,
        graph_mode: Callable[[], bool] | None = None,
        definitions: Sequence[OperatorDef] = (),
    ) -> None:
        """Open the library at ``path``, which must be the module ``name``.

        ``definitions`` are the operators of op_def. Raises ``LibraryError``, and ``ArgumentValueError``
        for an infer rule of an unknown function; for ``dims`` as :func:`~polyop.define.module.dims.read_all`.
        """
        self.__name__, self.path, self.graph_mode = name, path, graph_mode
        functions, operators = divide(open_module(path, name))
        rules = _checked_rules(infer or {}, (*functions, *operators), name)
        over_tensors = {
            called: function.signature.schema
            for called, function in (*functions.items(), *operators.items())
            if not function.signature.is_plain
        }
        notations = read_all(f"module {name}: dims", dims, over_tensors, rules, origin)
        options: dict[str, Any] = {"device": device, "origin": origin}
        self._functions: dict[str, Any] = {
            called: PlainFunction(function, like)
            if function.signature.is_plain
            else ModuleOperator(
                function, path, infer=rules.get(called), dims=notations.get(called), **options
            )
            for called, function in functions.items()
        }
        self._operators = {
            called: GraphOperator(
                function, path, infer=rules.get(called), dims=notations.get(called), **options
            )
            for called, function in operators.items()
        }
        apply(definitions, self._operators)
        connect()

    @property
    def has_modes(self) -> bool:
        """Whether what a name means depends on the mode."""
        return self.graph_mode is not None and bool(self._operators)

    def in_mode(self, graph_mode: Callable[[], bool] | None) -> OperatorModule:
        """Return the module with another ``graph_mode``; the operators are the same objects."""
        if graph_mode is self.graph_mode:
            return self
        other = copy.copy(self)
        other.graph_mode = graph_mode
        return other

    def __getattr__(self, name: str) -> Any:
        parts = self.__dict__
        if "_operators" not in parts or name.startswith("__"):
            raise AttributeError(name)
        mode = None if self.graph_mode is None else self.graph_mode()
        return choose(self.__name__, name, mode, self._functions, self._operators)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._functions, *self._operators]

    def __iter__(self) -> Iterator[Any]:
        """Yield the functions."""
        return iter((*self._functions.values(), *self._operators.values()))

    def __repr__(self) -> str:
        """Return name, library and functions."""
        names = ", ".join(dict.fromkeys((*self._functions, *self._operators)))
        return f"<polyop module {self.__name__} of {self.path}: {names}>"

    def retire(self) -> None:
        """Release the operators' names, for a module that was built again."""
        from ...call import registry

        for operator in self:
            if not isinstance(operator, ModuleOperator):
                continue
            recorded: Any = operator.operator.gradient
            for one in (operator, recorded.saving_part, recorded.backward):
                if one is not None and registry.named(one.name) is one:
                    registry.discard(one)
                    one.retire()


def connect() -> None:
    """Connect the native core with the aclnn provider, which runs launches of modules."""
    from ...providers.aclnn import run

    run.connect()


def _checked_rules(infer: Mapping[str, Any], functions: Sequence[str], name: str) -> dict[str, Any]:
    """Return the infer rules of a module; raises ``ArgumentValueError`` for one of an unknown function."""
    unknown = set(infer) - set(functions)
    if unknown:
        rule = f"must name its functions: {', '.join(functions)}"
        raise ArgumentValueError(f"module {name}: infer", rule, min(unknown))
    return dict(infer)
