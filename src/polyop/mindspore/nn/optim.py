"""Optimizers: a call takes one gradient per parameter, in order, and updates the parameters."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

from ...core.errors import ArgumentTypeError, ArgumentValueError, UnsupportedError
from ..cell import Cell
from ..interpose import plain_attributes
from ..parameter import Parameter, ParameterTuple


class Optimizer(Cell):
    """The base class. ``weight_decay * value`` is added to a gradient; the sum is divided by ``loss_scale``.

    As in MindSpore, parameters with "beta" or "gamma" in their name do not decay. A learning rate is a
    number, a list with the rate of each step (the last one stays), or a function of the step.
    """

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
                scaled = gradient
                if self.weight_decay and _may_decay(parameter):
                    scaled = scaled + self.weight_decay * parameter
                self.update(i, parameter, scaled / self.loss_scale if self.loss_scale != 1.0 else scaled)
        return True

    def update(self, number: int, parameter: Any, gradient: Any) -> None:
        """Write a parameter's new value. Every optimizer defines it."""
        raise NotImplementedError

    def rate(self) -> float:
        """Return the learning rate of this step; a function is called with the number of earlier steps."""
        value, step = self.learning_rate, self.steps - 1
        if isinstance(value, (list, tuple)):
            return float(value[min(step, len(value) - 1)])
        return float(value(step) if callable(value) else value)


def _may_decay(parameter: Any) -> bool:
    return "beta" not in parameter.name and "gamma" not in parameter.name


class Momentum(Optimizer):
    """``v = momentum * v + g``, then ``p -= rate * v``.

    Raises ``UnsupportedError`` for ``use_nesterov``, which MindSpore ignores on the CPU.
    """

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
        if use_nesterov:
            rule = "use_nesterov has no effect in MindSpore on the CPU"
            raise UnsupportedError("nn.Momentum", rule, hint="nn.SGD(params, rate, momentum, nesterov=True)")
        self.momentum, self.nesterov, self.dampening = momentum, False, 0.0

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
    """``Momentum`` with ``dampening``; ``nesterov`` is ``p -= rate * (g + momentum * v)``."""

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
        super().__init__(params, learning_rate, momentum, weight_decay, loss_scale)
        self.dampening, self.nesterov = dampening, nesterov


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

    def moments(self, number: int, gradient: Any) -> tuple[Any, Any]:
        """Return the running means of a parameter's gradient and of its square, with this step."""
        first, second = self.state.get(number, (torch.zeros_like(gradient), torch.zeros_like(gradient)))
        first = self.beta1 * first + (1 - self.beta1) * gradient
        second = self.beta2 * second + (1 - self.beta2) * gradient * gradient
        self.state[number] = first, second
        return first, second

    def update(self, number: int, parameter: Any, gradient: Any) -> None:
        """Write a parameter's new value."""
        first, second = self.moments(number, gradient)
        rate = self.rate() * math.sqrt(1 - self.beta2**self.steps) / (1 - self.beta1**self.steps)
        step = self.beta1 * first + (1 - self.beta1) * gradient if self.nesterov else first
        parameter.sub_(rate * step / (second.sqrt() + self.eps))
