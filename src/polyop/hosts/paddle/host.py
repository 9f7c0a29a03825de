"""The Paddle host: the protocol ``Host``, implemented with the files beside this one."""

from __future__ import annotations

from typing import Any

import paddle

from ...call.foreign import written_tensors
from ...call.through_numpy import check_on_cpu, run_through_numpy
from ...core.errors import HostError
from ...core.spec import Spec
from ...core.untraced import Paused
from . import gradient, tensors, traced
from .namespace import NAMESPACE

OLDEST = (3, 3)
"""The first version of Paddle that this was tested with."""


class PaddleHost:
    """Paddle's tensors on the CPU, and values of the programs that it traces."""

    name = "paddle"

    def __init__(self) -> None:
        """Raise ``HostError`` for a Paddle that is too old."""
        version = str(paddle.__version__)
        numbers = tuple(int(part) if part.isdigit() else 0 for part in version.split(".")[:2])
        if numbers < OLDEST and numbers != (0, 0):  # 0.0.0 is a build of a development branch
            raise HostError("Paddle", f"must be {'.'.join(map(str, OLDEST))} or later", version)

    def owns(self, value: Any) -> bool:
        """Whether ``value`` is a tensor, or a value of a traced program."""
        return isinstance(value, (paddle.Tensor, paddle.pir.Value))

    def spec(self, tensor: Any) -> Spec:
        """Return shape, dtype and device type; an unknown size of a traced program is -1."""
        return tensors.spec(tensor)

    def call(self, bound: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """Run the operator, record its gradient if Paddle needs one, or put it into a traced program."""
        if not paddle.in_dynamic_mode():
            return traced.call(bound, arguments, self.run)
        with Paused():
            return self._eager(bound, arguments)

    def _eager(self, bound: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        if paddle.is_grad_enabled() and any(map(tensors.needs_gradient, tensors.tensors_in(arguments))):
            return gradient.call(bound, arguments, self.run)
        return self.run(bound, arguments)

    def run(self, bound: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """Run the operator without recording a gradient."""
        check_on_cpu(bound.operator, "Paddle's tensors are taken")
        outputs = run_through_numpy(self, bound, arguments, tensors.array, tensors.tensor)
        for written in written_tensors(bound.schema, arguments):
            written._bump_inplace_version()  # noqa: SLF001 - has no public name
        return outputs

    def vjp(self, bound: Any, arguments: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any]:
        """Return the outputs, and the function from output gradients to input gradients."""
        return gradient.vjp(bound, arguments, self.run)

    def zeros(self, spec: Spec, like: Any) -> Any:
        """Return a tensor of zeros."""
        del like
        return paddle.zeros(list(spec.shape), spec.dtype.name)

    def copy(self, tensor: Any) -> Any:
        """Return a copy."""
        return tensor.clone()

    def start(self) -> None:
        """Have ``to_static`` call operators as they are: it rewrites or interprets other functions."""
        traced.start()

    def state(self, bound: Any) -> str:
        """Return how calls are made: all of them in the same way."""
        del bound
        return "present; through DLPack and NumPy, on the CPU; no vmap, which Paddle does not have"

    def namespace(self) -> Any:
        """Return Paddle's functions under the array API's names."""
        return NAMESPACE


HOST = PaddleHost()
