"""A loaded C++ operator module: its functions as attributes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..core.arguments import attribute, bind
from ..core.errors import ArgumentValueError
from ..core.origin import Origin
from ..kernels.module.kernel import plain_call
from ..kernels.module.library import ModuleFunction, open_module
from .module_operator import ModuleOperator


class UnknownFunctionError(AttributeError):
    """A module has no function of this name."""


class PlainFunction:
    """A function without tensor arguments, or whose result is no tensor: called as it is, not traced."""

    def __init__(self, function: ModuleFunction, like: Callable[[], Any]) -> None:
        self.function, self.like = function, like
        self.__name__, self.__doc__ = function.name, function.doc or None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return what the function does; raises ``ArgumentTypeError``, ``KernelError``."""
        signature = self.function.signature
        schema = signature.schema
        if schema.tensor_positions:
            rule = "takes tensors and returns something else: return tensors to make it an operator"
            raise ArgumentValueError(schema.qualified_name, rule)
        given = bind(schema, args, kwargs)
        values = [
            attribute(argument, value, schema.qualified_name)
            for argument, value in zip(schema.arguments, given, strict=True)
        ]
        return plain_call(self.function.address, signature, values, self.like())

    def __repr__(self) -> str:
        """Return the signature."""
        return f"<polyop function {self.function.signature.schema.qualified_name}>"


def numpy_like() -> Any:
    """Return an example of the tensors that functions without tensor arguments make: NumPy's."""
    return np.empty(0, np.float32)


class OperatorModule:
    """The functions of a C++ module; those over tensors are operators for every host.

    ``path`` is the library. An unknown name raises ``AttributeError`` with the names there are.
    """

    def __init__(
        self,
        name: str,
        path: Path,
        *,
        device: str = "cpu",
        infer: Mapping[str, Any] | None = None,
        origin: Origin | None = None,
        like: Callable[[], Any] = numpy_like,
    ) -> None:
        """Open the library at ``path``, which must be the module ``name``.

        Raises ``LibraryError``; ``ArgumentValueError`` for an infer rule of a function there is not.
        """
        self.__name__, self.path = name, path
        functions = open_module(path, name, built=True)
        rules = dict(infer or {})
        unknown = set(rules) - {function.name for function in functions}
        if unknown:
            names = ", ".join(function.name for function in functions)
            raise ArgumentValueError(f"module {name}: infer", f"must name its functions: {names}", min(unknown))
        self._functions: dict[str, Any] = {}
        for function in functions:
            self._functions[function.name] = (
                PlainFunction(function, like)
                if function.signature.is_plain
                else ModuleOperator(function, path, device=device, infer=rules.get(function.name), origin=origin)
            )

    def __getattr__(self, name: str) -> Any:
        functions = self.__dict__.get("_functions", {})
        if name in functions:
            return functions[name]
        if name.startswith("__"):
            raise AttributeError(name)
        known = ", ".join(functions)
        text = f"Custom op '{name}' is neither in func_module nor in so_module: {self.__name__} has {known}"
        raise UnknownFunctionError(text)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._functions]

    def __iter__(self) -> Iterator[Any]:
        """Yield the functions."""
        return iter(self._functions.values())

    def __repr__(self) -> str:
        """Return name, library and functions."""
        return f"<polyop module {self.__name__} of {self.path}: {', '.join(self._functions)}>"

    def retire(self) -> None:
        """Give up the operators' names to a module that was built again."""
        from ..core import registry

        for operator in self:
            if not isinstance(operator, ModuleOperator):
                continue
            recorded: Any = operator.operator.gradient
            for one in (operator, recorded.saving, recorded.backward):
                if one is not None and registry.named(one.name) is one:
                    registry.discard(one)
                    one.retire()


