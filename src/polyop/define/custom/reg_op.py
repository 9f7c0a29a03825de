"""``CustomRegOp``, the builder of operator information, and the decorator that attaches it to a function."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

from ...core.errors import ArgumentTypeError, ArgumentValueError
from ...core.information.registration import of_decorated

_P = ParamSpec("_P")
_R = TypeVar("_R")


class CustomRegOp:
    """A builder of operator information; every method except ``get_op_info`` returns the builder.

    >>> from polyop.core.information.data_types import DataType
    >>> info = CustomRegOp("double").input(0, "x").output(0, "y")
    >>> info = info.dtype_format(DataType.F32_Default, DataType.F32_Default).target("CPU")
    >>> info.get_op_info()["inputs"]
    [{'index': 0, 'name': 'x', 'paramType': 'required'}]

    Raises ``ArgumentValueError`` for an operator name that is no text, or blank.
    """

    def __init__(self, op_name: str = "Custom") -> None:
        if not isinstance(op_name, str):
            raise ArgumentValueError("CustomRegOp", "op name value must be string", _seen(op_name))
        if not op_name.strip():
            raise ArgumentValueError("CustomRegOp", "op name is empty", repr(op_name))
        self._op_name = op_name
        self._inputs: list[dict[str, Any]] = []
        self._outputs: list[dict[str, Any]] = []
        self._attributes: list[dict[str, Any]] = []
        self._rows: list[tuple[tuple[str, ...], ...]] = []
        self._fusion_type = ""
        self._target = "UnKnown"

    def input(
        self, index: int | None = None, name: str | None = None, param_type: str = "required", **kwargs: Any
    ) -> CustomRegOp:
        """Add an input. ``param_type``: "required" (a tensor), "dynamic" (a list of them), "optional".

        Raises ``ArgumentTypeError`` when the index is no int or another value no text.
        """
        return self._tensor("input", self._inputs, index, name, param_type, kwargs)

    def output(
        self, index: int | None = None, name: str | None = None, param_type: str = "required", **kwargs: Any
    ) -> CustomRegOp:
        """Add an output, described as an input is."""
        return self._tensor("output", self._outputs, index, name, param_type, kwargs)

    def attr(
        self,
        name: str | None = None,
        param_type: str | None = None,
        value_type: str | None = None,
        default_value: str | None = None,
        **kwargs: Any,
    ) -> CustomRegOp:
        """Add an attribute. With ``value=`` it is a constant; without, calls pass it after the tensors.

        ``value_type`` is one of int, str, bool, float, double, number, all, tensor, listInt,
        listStr, listBool, listFloat, listListInt; ``default_value`` is a text, a list's items
        separated by commas.

        Raises ``ArgumentTypeError`` when one of the named values is no text.
        """
        given = {"name": name, "paramType": param_type, "type": value_type, "defaultValue": default_value}
        for key, value in given.items():
            _need(value, str, "attr", key)
        self._attributes.append(_present({**given, **copy.deepcopy(kwargs)}))
        return self

    def dtype_format(self, *args: tuple[str, ...]) -> CustomRegOp:
        """Add a row: a ``DataType`` for each input, then for each output, which must be added before it.

        Raises ``ArgumentValueError`` for another number of cells, or a cell that is no tuple of two or three
        texts. Of a dtype that does not exist the operator says so.
        """
        count = len(self._inputs) + len(self._outputs)
        if len(args) != count:
            rule = "The size of 'args' must be equal to the sum of input tensors and output tensors"
            hint = "add the inputs and outputs first"
            raise ArgumentValueError("CustomRegOp.dtype_format", rule, f"{len(args)} vs {count}", hint=hint)
        for cell in args:
            sized = isinstance(cell, tuple) and len(cell) in (2, 3)
            if not sized or not all(isinstance(part, str) for part in cell):
                rule = "dtype and format value must be tuple of two or three elements"
                raise ArgumentValueError("CustomRegOp.dtype_format", rule, _seen(cell))
        self._rows.append(args)
        return self

    def fusion_type(self, fusion_type: str) -> CustomRegOp:
        """Set the fusion type, which is stored and has no effect; raises ``ArgumentTypeError``."""
        if not isinstance(fusion_type, str):
            raise ArgumentTypeError("CustomRegOp.fusion_type", "value must be str", _seen(fusion_type))
        self._fusion_type = fusion_type
        return self

    def target(self, target: str | None = None) -> CustomRegOp:
        """Set the target: "CPU", "GPU" or "Ascend"; raises ``ArgumentTypeError`` for what is no text."""
        _need(target, str, "target", "target")
        self._target = self._target if target is None else target
        return self

    def get_op_info(self) -> dict[str, Any]:
        """Return the information as a new dictionary; changing it does not change the builder."""
        return {
            "op_name": self._op_name,
            "inputs": copy.deepcopy(self._inputs),
            "outputs": copy.deepcopy(self._outputs),
            "attr": copy.deepcopy(self._attributes),
            "fusion_type": self._fusion_type,
            "dtype_format": list(self._rows),
            "target": self._target,
        }

    def _tensor(
        self,
        kind: str,
        to: list[dict[str, Any]],
        index: Any,
        name: Any,
        param_type: Any,
        extra: dict[str, Any],
    ) -> CustomRegOp:
        _need(index, int, kind, "index")
        for key, value in (("name", name), ("paramType", param_type), *extra.items()):
            _need(value, str, kind, key)
        given = {"index": index, "name": name, "paramType": param_type, **extra}
        to.append(_present(given))
        return self


def custom_info_register(
    *reg_info: str | Mapping[str, Any],
) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Return a decorator that attaches operator information to a Python function.

    ``Custom`` registers it when it is made from the function, unless it gets its own ``reg_info``. Each
    item is what ``CustomRegOp().get_op_info()`` returns, or its JSON text; one per target. The
    information is copied, and the decorated function itself is not changed.

    >>> info = CustomRegOp().input(0, "x").output(0, "y").target("CPU").get_op_info()
    >>> @custom_info_register(info)
    ... def double(x):
    ...     return 2 * x
    >>> double.reg_info[0]["target"]
    'CPU'

    Raises ``ArgumentTypeError`` for an item that is no information, or an object that is no function.
    """
    for item in reg_info:
        if not isinstance(item, (str, Mapping, list, tuple)):
            hint = "write @custom_info_register(info)" if callable(item) else None
            rule = "the registration information must be of type dict or str"
            raise ArgumentTypeError("custom_info_register", rule, _seen(item), hint=hint)
    items = copy.deepcopy(reg_info)

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        if not callable(function):
            hint = "the information of a kernel in a library goes to Custom's reg_info"
            raise ArgumentTypeError(
                "custom_info_register", "must decorate a function", _seen(function), hint=hint
            )

        @functools.wraps(function)
        def decorated(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            return function(*args, **kwargs)

        decorated.reg_info = (*items, *(of_decorated(function) or ()))  # type: ignore[attr-defined]
        return decorated

    return decorate


def _present(given: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in given.items() if value is not None}


def _need(value: Any, kind: type, method: str, what: str) -> None:
    if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
        raise ArgumentTypeError(
            f"CustomRegOp.{method}: {what}", f"value must be {kind.__name__}", _seen(value)
        )


def _seen(value: Any) -> str:
    return f"{value!r} ({type(value).__name__})"
