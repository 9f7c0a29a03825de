"""The JAX host: the protocol ``Host``, implemented with the files beside this one."""

from __future__ import annotations

import atexit
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...call.foreign import flatten
from ...call.host import find_host, specs
from ...call.operator import Operator
from ...call.rule import no_gradient
from ...core.errors import GradientError, HostError
from ...core.spec import Spec
from . import convert_arguments, not_offered, planned, tensors
from .emit import refusal
from .primitive import call
from .site import Site, site_of

OLDEST = (0, 7)
"""The first version of JAX that this was tested with."""


class JaxHost:
    """JAX arrays and tracers; calls become one XLA custom call each."""

    name = "jax"

    def start(self) -> None:
        """Register the errors for what has no rule; JAX keeps no table of operators."""
        not_offered.refuse()

    def state(self, bound: Any) -> str:
        """Return whether calls go to the native handler; if not, jaxlib's reason."""
        del bound
        reason = refusal()
        if not reason:
            return "present, with the native handler"
        return f"present; fallback: every call goes through Python, as jaxlib says: {reason}"

    def owns(self, value: Any) -> bool:
        """Whether ``value`` is an array, or a tracer of one."""
        return isinstance(value, jax.Array)

    def spec(self, tensor: Any) -> Spec:
        """Return shape (symbolic while exporting), dtype and device type."""
        return tensors.spec(tensor)

    def call(self, bound: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """Run the operator, or put it into the program that is being traced.

        Returns the schema's outputs. JAX's arrays cannot be written, so each argument that the
        schema writes is returned as a new array; one that the schema does not return comes last.
        """
        token = bound.plan_token()
        site, arguments = self._site(bound, arguments)
        outputs = site.pack_outputs(call(site, site.flatten(arguments)))
        planned.plan(bound, token, site, arguments)
        return outputs

    def _site(self, bound: Any, given: tuple[Any, ...]) -> tuple[Site, tuple[Any, ...]]:
        """Return the site of a call, and its arguments with JAX's arrays as all tensors."""
        if jax.__version_info__ < OLDEST:
            raise HostError("JAX", f"must be {'.'.join(map(str, OLDEST))} or later", jax.__version__)
        arguments = convert_arguments.converted(bound.operator, given)
        if bound.operator.target is not None:
            _check_device(bound.operator, arguments)
        if bound.is_module:  # the specs tell which arguments its C++ function writes
            bound.refine_schema(specs(self, bound.operator, arguments))
            if arguments is not given:
                find_host(bound.operator, given)  # raises if it writes what was converted
        return site_of(bound, arguments), arguments

    def vjp(self, bound: Any, arguments: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any]:
        """Return the outputs, and the function from output gradients to input gradients.

        NumPy arrays and numbers beside JAX's arrays are constants: their gradients are None.
        """
        if bound.operator.gradient is None:
            raise no_gradient(bound.operator)
        site, converted = self._site(bound, arguments)
        flat = site.flatten(converted)
        own = map(self.owns, site.flatten(arguments))
        smooth = [i for i, is_own in enumerate(own) if is_own and tensors.is_smooth(flat[i])]

        def run(*differentiated: Any) -> tuple[Any, ...]:
            inputs = list(flat)
            for i, value in zip(smooth, differentiated, strict=True):
                inputs[i] = value
            return call(site, inputs)

        outputs, pull = jax.vjp(run, *(flat[i] for i in smooth))

        def pullback(grads: Sequence[Any]) -> tuple[Any, ...]:
            cotangents = [
                _cotangent(bound.operator, i, grad, output)
                for i, (grad, output) in enumerate(zip(tensors.conjugated(grads), outputs, strict=True))
            ]
            input_grads: list[Any] = [None] * len(flat)
            for i, grad in zip(smooth, tensors.conjugated(pull(tuple(cotangents))), strict=True):
                input_grads[i] = grad
            return site.by_argument(input_grads)

        return site.pack_outputs(outputs), pullback

    def zeros(self, spec: Spec, like: Any) -> Any:
        """Return an array of zeros."""
        del like
        return jnp.zeros(spec.shape, spec.dtype.numpy)

    def copy(self, tensor: Any) -> Any:
        """Return the array itself: JAX's arrays cannot be changed."""
        return tensor

    def namespace(self) -> Any:
        """Return JAX's functions under the array API's names."""
        return jnp

    def pull_back(self, function: Any, inputs: Any, grads: Any) -> tuple[Any, ...]:
        """Return the gradients of ``function`` at the inputs; they can be differentiated again."""
        _, pull = jax.vjp(function, *inputs)
        return tuple(pull(tuple(grads)))

    def alive(self, values: Any) -> list[Any]:
        """Return the values: JAX has no transforms that end early."""
        return list(values)


def _check_device(operator: Operator, arguments: tuple[Any, ...]) -> None:
    for value in flatten(operator.schema, arguments):
        device = tensors.spec(value).device
        if device != operator.target:
            rule = f"is bound to {operator.target}, where the arrays are on {device}"
            hint = "jax.device_put takes arrays to another device"
            raise HostError(operator.name, rule, where=operator.origin, hint=hint)


def _cotangent(operator: Operator, number: int, grad: Any, output: Any) -> Any:
    """Return the output gradient that ``jax.vjp`` expects for an output; zeros for None."""
    if not tensors.is_smooth(output):
        return np.zeros(output.shape, jax.dtypes.float0)
    if grad is not None and jnp.shape(grad) != output.shape:
        subject = f"{operator.name}: gradient of output {number}"
        rule = f"must have the output's shape {output.shape}"
        raise GradientError(subject, rule, jnp.shape(grad), where=operator.origin)
    return jnp.zeros(output.shape, output.dtype) if grad is None else jnp.asarray(grad, output.dtype)


HOST = JaxHost()

# Programs that still run must end before polyop's core is closed. call.foreign has registered the
# closing already, and atexit calls the last function that was registered first.
atexit.register(jax.effects_barrier)
