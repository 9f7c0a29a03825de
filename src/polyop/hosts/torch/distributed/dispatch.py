"""The rule by which ``torch.ops`` runs an operator on DTensors, below autograd: gradients use it too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.autograd.forward_ad
from torch.distributed.tensor import DTensor

from ....call.bound import BoundOperator
from ....call.foreign import flatten
from ....call.prepare import normalise
from ....core.arguments import bind
from ....core.untraced import untraced
from ....sharding.rule import AxisStrategy
from .. import tensors
from .division import Division, divide

_MAX_SHAPES = 1024  # calls of different shapes that an operator remembers


class Divisions:
    """The divisions of an operator's calls, by what decides them."""

    def __init__(
        self, bound: BoundOperator, overload: Any, usable: Callable[[AxisStrategy], bool] | None = None
    ) -> None:
        """Take the operator and its overload; ``usable`` says which strategies may be chosen, None all."""
        self.bound, self.overload, self.usable = bound, overload, usable
        self.known: dict[Any, Division] = {}

    def __call__(self, arguments: tuple[Any, ...]) -> Division:
        """Return how a call is run; raises ``HostError`` if it cannot be."""
        key = _key(arguments)
        division = None if key is None else self.known.get(key)
        if division is None:
            division = divide(self.bound, self.overload, arguments, self.usable)
            if key is not None:
                if len(self.known) >= _MAX_SHAPES:
                    self.known.clear()
                self.known[key] = division
        return division


def direct_of(bound: BoundOperator, divisions: Divisions) -> Callable[..., Any]:
    """Return the function that runs a call past PyTorch's dispatcher.

    It returns ``NotImplemented`` unless all tensors are DTensors, and nothing but values is wanted.
    """
    operator, schema = bound.operator, bound.schema
    only_tensors = len(schema.tensor_positions) == len(schema.arguments)
    forward_ad, level = torch.autograd.forward_ad, torch._C._functorch.peek_interpreter_stack

    def direct(arguments: tuple[Any, ...]) -> Any:
        inputs = list(flatten(schema, arguments))
        if not inputs or not all(type(x) is DTensor for x in inputs):
            return NotImplemented
        if torch.is_grad_enabled() and any(x.requires_grad for x in inputs):
            return NotImplemented
        if torch._C._len_torch_dispatch_stack() or torch._C._len_torch_function_stack():
            return NotImplemented
        if forward_ad._current_level >= 0 or level() is not None:
            return NotImplemented
        if not only_tensors:
            arguments = tensors.for_torch(schema, normalise(operator, arguments))
        return tensors.as_outputs(divisions(arguments)(arguments))

    return direct


def rule_of(bound: BoundOperator, divisions: Divisions) -> Callable[..., Any]:
    """Return the function that PyTorch calls with the arguments of a call that has a DTensor."""
    schema = bound.schema

    @untraced
    def dispatch(cls: Any, func: Any, types: Any, args: Any, kwargs: Any = None) -> Any:
        del cls, func, types
        arguments = bind(schema, args, kwargs or {})
        return divisions(arguments)(arguments)

    return dispatch


def _key(arguments: tuple[Any, ...]) -> Any:
    """Return what decides how a call is divided; None if it cannot be remembered."""
    key = tuple(map(_part, arguments))
    try:
        hash(key)
    except TypeError:  # symbolic sizes, while a compiler traces
        return None
    return key


def _part(value: Any) -> Any:
    if isinstance(value, DTensor):
        spec = value._spec
        return id(spec.mesh), spec  # equal meshes may have other process groups
    if isinstance(value, torch.Tensor):
        return value.dtype, value.shape
    if isinstance(value, (list, tuple)):
        return tuple(map(_part, value))
    # repr, because 0.0 and -0.0 are equal
    return type(value), repr(value) if isinstance(value, (float, complex)) else value
