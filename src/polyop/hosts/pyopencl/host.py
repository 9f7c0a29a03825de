"""The PyOpenCL host: operators on arrays of ``pyopencl.array``, on the queue of the arrays."""

from __future__ import annotations

import functools
from typing import Any

import pyopencl.array as cl_array

from ...call.host import map_tensors
from ...call.operator import Operator
from ...call.rule import Rule, apply_rule, check_gradients, no_gradient
from ...core.errors import GradientError
from ...core.spec import Spec
from . import arrays, strided
from .namespace import NAMESPACE
from .run import place_of, run


class PyOpenCLHost:
    """Arrays of ``pyopencl.array``."""

    name = "pyopencl"

    def owns(self, value: Any) -> bool:
        """Whether ``value`` is an array of PyOpenCL."""
        return isinstance(value, cl_array.Array)

    def start(self) -> None:
        """Do nothing: PyOpenCL keeps no table of operators."""

    def state(self, bound: Any) -> str:
        """Return whether the operator has a kernel for devices of OpenCL."""
        there = {kernel.device for kernel in bound.operator.kernels_for(arrays.DEVICE)}
        if there & {arrays.DEVICE, "any"}:
            return "present; on the queue of the arrays"
        return "present; no kernel runs on OpenCL: call it on x.get()"

    def spec(self, tensor: Any) -> Spec:
        """Return shape, dtype and device; raises ``ArgumentTypeError`` for an array over no buffer."""
        return arrays.spec(tensor)

    def call(self, bound: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """Put the operator into the queue of its arrays, and return its outputs at once.

        Raises what :func:`run` raises.
        """
        return run(self, bound, arguments)

    def vjp(self, bound: Any, arguments: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any]:
        """Return the outputs, and the function from output gradients to input gradients."""
        operator: Operator = bound.operator
        if operator.gradient is None:
            raise no_gradient(operator)
        if isinstance(operator.gradient, Rule) and operator.gradient.is_recorded:
            rule = "is a C++ module, whose gradient is recorded on the CPU alone"
            raise GradientError(operator.name, rule, where=operator.origin, hint="call op.vjp on x.get()")
        outputs = self.call(bound, arguments)
        dense = functools.partial(strided.for_function, place_of(operator, arguments).queue)

        def pullback(grads: tuple[Any, ...]) -> tuple[Any, ...]:
            inputs = map_tensors(operator, arguments, lambda name, value, argument: dense(value))
            input_grads = apply_rule(operator, inputs, tuple(map(dense, outputs)), tuple(map(dense, grads)))
            check_gradients(operator, arguments, input_grads)
            return input_grads

        return outputs, pullback

    def zeros(self, spec: Spec, like: Any) -> Any:
        """Return an array of zeros, on the queue of ``like``."""
        return cl_array.zeros(like.queue, spec.shape, spec.dtype.numpy, allocator=like.allocator)

    def copy(self, tensor: Any) -> Any:
        """Return a dense copy."""
        return strided.ordered_dense(tensor.queue, tensor)

    def namespace(self) -> Any:
        """Return PyOpenCL's functions under the array API's names."""
        return NAMESPACE


HOST = PyOpenCLHost()
