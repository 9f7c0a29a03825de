"""``Parameter`` and ``ParameterTuple``: tensors that a ``Cell`` registers and ``grad`` finds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from ..core.errors import ArgumentTypeError, ArgumentValueError
from .interpose import plain_attributes, unlike_torch
from .tensor import Tensor, data_of

DEFAULT_NAME = "Parameter"
_NUMBERS = {int: torch.int32, float: torch.float32}


class Parameter(Tensor):
    """A tensor that is trained, made of the same data as a ``Tensor`` or of a Python number.

    A float becomes Float32, an int Int32. A parameter without a name gets the name of the attribute
    of the ``Cell`` that holds it.

    >>> Parameter(2.0, name="scale")
    Parameter (name=scale, shape=(), dtype=Float32, requires_grad=True)

    Raises ``ArgumentTypeError`` for a bool and for data that a ``Tensor`` refuses.
    """

    _is_param = True  # torch.nn.Module registers tensors that have it
    _name = DEFAULT_NAME

    def __new__(
        cls,
        default_input: Any,
        name: str | None = None,
        requires_grad: bool = True,
        layerwise_parallel: bool = False,
        parallel_optimizer: bool = True,
    ) -> Any:
        """Return the parameter."""
        del layerwise_parallel, parallel_optimizer  # no effect on one device
        if isinstance(default_input, bool):
            raise ArgumentTypeError("Parameter", "the data cannot be a bool", repr(default_input))
        data = data_of(default_input, _NUMBERS.get(type(default_input)))
        smooth = data.is_floating_point() or data.is_complex()
        parameter = torch.Tensor._make_subclass(cls, data, requires_grad and smooth)  # noqa: SLF001
        if name is not None:
            parameter.name = name
        return parameter

    @property
    def name(self) -> str:
        """The name: the constructor's, or that of the cell's attribute that holds it."""
        return self._name

    @name.setter
    def name(self, value: str) -> None:
        self._name = value

    def __str__(self) -> str:
        return repr(self)

    def _described(self) -> str:
        parts = f"name={self.name}, shape={tuple(self.shape)}, dtype={self.dtype}"
        return f"Parameter ({parts}, requires_grad={self.requires_grad})"

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self, self._name, self.requires_grad)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> Any:
        return type(self), (self.value().detach(), self._name, self.requires_grad)

    @unlike_torch
    def clone(self, init: str = "same") -> Any:
        """Return a parameter with the same values, or with "zeros" or "ones"."""
        return ParameterTuple([self]).clone("", init)[0]

    def value(self) -> Any:
        """Return the value as a ``Tensor``; gradients flow through it."""
        return self.view_as(self)

    def set_data(self, data: Any, slice_shape: bool = False) -> Any:
        """Write new values and return the parameter.

        Values of another dtype are converted. Raises ``ArgumentValueError`` for another shape, unless
        ``slice_shape`` is true.
        """
        with plain_attributes(), torch.no_grad():
            new = data if isinstance(data, torch.Tensor) else data_of(data, None)
            if tuple(new.shape) == tuple(self.shape):
                self.copy_(new)
                return self
            if not slice_shape:
                rule = f"set_data needs data of shape {tuple(self.shape)}"
                raise ArgumentValueError(f"Parameter {self._name}", rule, tuple(new.shape))
            self.data = new.to(self.dtype, copy=True)
        return self


class ParameterTuple(tuple):  # type: ignore[type-arg]
    """A tuple of parameters; raises ``ArgumentTypeError`` for anything else."""

    __slots__ = ()

    def __new__(cls, iterable: Iterable[Any]) -> Any:
        """Return the tuple."""
        parameters = tuple(iterable)
        for i, item in enumerate(parameters):
            if not isinstance(item, Parameter):
                raise ArgumentTypeError(f"ParameterTuple[{i}]", "must be a Parameter", type(item).__name__)
        return super().__new__(cls, parameters)

    def clone(self, prefix: str, init: str = "same") -> Any:
        """Return copies named ``prefix.name``, with the same values, or with "zeros" or "ones"."""
        fill = {"zeros": torch.zeros_like, "ones": torch.ones_like}.get(init, torch.clone)
        return ParameterTuple(
            Parameter(fill(p.detach()), f"{prefix}.{p.name}" if prefix else p.name, p.requires_grad)
            for p in self
        )
