"""Optimizers: a call takes one gradient per parameter, in order, and updates the parameters."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

from ...core.errors import ArgumentTypeError, ArgumentValueError
from ..cell import Cell
from ..interpose import plain_attributes
from ..parameter import Parameter, ParameterTuple


class Optimizer(Cell):
    """The base class. A gradient is divided by ``loss_scale``; then ``weight_decay * value`` is added."""

    _is_captured = False  # an update is never captured as a graph

    def __init__(
        self, learning_rate: Any, parameters: Any, weight_decay: float = 0.0, loss_scale: float = 1.0
    ) -> None:
        super().__init__(auto_prefix=False)
        listed = list(parameters)
        if not listed or not all(isinstance(p, Parameter) for p in listed):
            raise ArgumentTypeError(
                type(self).__name__, "params must be a list of Parameter", repr(parameters)
            )
        # in __dict__, because __setattr__ would register parameters that another cell owns
        self.__dict__["_updated"] = ParameterTuple(listed)
        self.learning_rate, self.weight_decay, self.loss_scale = learning_rate, weight_decay, loss_scale
        self.steps = 0
        self.state: dict[int, Any] = {}

    @property
    def parameters(self) -> ParameterTuple:  # a property, as in MindSpore
        """The parameters that are updated."""
        updated: ParameterTuple = self.__dict__["_updated"]
        return updated

    def get_parameters(self, expand: bool = True) -> Iterator[Parameter]:
        """Yield the parameters that are updated."""
        del expand
        yield from self.parameters

    def construct(self, gradients: Any) -> bool:
        """Update the parameters; raises ``ArgumentValueError`` for a wrong number of gradients."""
        listed, parameters = list(gradients), self.parameters
        if len(listed) != len(parameters):
            rule = f"needs one gradient for each of {len(parameters)} parameters"
            raise ArgumentValueError(type(self).__name__, rule, str(len(listed)))
        self.steps += 1
        with torch.no_grad(), plain_attributes():
            for i, (parameter, gradient) in enumerate(zip(parameters, listed, strict=True)):
                scaled = gradient / self.loss_scale if self.loss_scale != 1.0 else gradient
                if self.weight_decay:
                    scaled = scaled + self.weight_decay * parameter
                self.update(i, parameter, scaled)
        return True

    def update(self, number: int, parameter: Any, gradient: Any) -> None:
        """Write a parameter's new value. Every optimizer defines it."""
        raise NotImplementedError

    def rate(self) -> float:
        """Return the learning rate of this step; a function is called with the number of earlier steps."""
        value = self.learning_rate
        return float(value(self.steps - 1) if callable(value) else value)


class Momentum(Optimizer):
    """``v = momentum * v + g``, then ``p -= rate * v``; Nesterov's ``p -= rate * (g + momentum * v)``."""

    def __init__(
        self,
        params: Any,
        learning_rate: Any,
        momentum: float,
        weight_decay: float = 0.0,
        loss_scale: float = 1.0,
        use_nesterov: bool = False,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self.momentum, self.nesterov, self.dampening = momentum, use_nesterov, 0.0

    def update(self, number: int, parameter: Any, gradient: Any) -> None:
        """Write a parameter's new value."""
        step = gradient
        if self.momentum:
            old = self.state.get(number)
            # dampening does not apply to the first step
            dampened = gradient if old is None else gradient * (1 - self.dampening)
            velocity = dampened.clone() if old is None else self.momentum * old + dampened
            self.state[number] = velocity
            step = gradient + self.momentum * velocity if self.nesterov else velocity
        parameter.sub_(self.rate() * step)


class SGD(Momentum):
    """``p -= rate * g``, with ``momentum`` as ``Momentum`` has it and ``dampening``."""

    def __init__(
        self,
        params: Any,
        learning_rate: Any = 0.1,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        loss_scale: float = 1.0,
    ) -> None:
        super().__init__(params, learning_rate, momentum, weight_decay, loss_scale, nesterov)
        self.dampening = dampening


class Adam(Optimizer):
    """Adam. As in MindSpore, ``eps`` is added to the root of the second moment before bias correction."""

    def __init__(
        self,
        params: Any,
        learning_rate: Any = 1e-3,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-8,
        use_locking: bool = False,
        use_nesterov: bool = False,
        weight_decay: float = 0.0,
        loss_scale: float = 1.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        del use_locking  # nothing else writes the parameters
        self.beta1, self.beta2, self.eps, self.nesterov = beta1, beta2, eps, use_nesterov

    def update(self, number: int, parameter: Any, gradient: Any) -> None:
        """Write a parameter's new value."""
        first, second = self.state.get(number, (torch.zeros_like(gradient), torch.zeros_like(gradient)))
        first = self.beta1 * first + (1 - self.beta1) * gradient
        second = self.beta2 * second + (1 - self.beta2) * gradient * gradient
        self.state[number] = first, second
        rate = self.rate() * math.sqrt(1 - self.beta2**self.steps) / (1 - self.beta1**self.steps)
        step = self.beta1 * first + (1 - self.beta1) * gradient if self.nesterov else first
        parameter.sub_(rate * step / (second.sqrt() + self.eps))
