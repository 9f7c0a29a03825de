"""The MindSpore host: the protocol ``Host``, implemented with the files beside this one."""

from __future__ import annotations

from typing import Any

import mindspore
import numpy as np
from mindspore import ops
from mindspore._c_expression import TensorPy

from ...call.through_numpy import check_on_cpu, run_through_numpy
from ...core.errors import HostError
from ...core.spec import Spec
from . import callbacks, gradient, symbols, tensors, vmap
from .namespace import NAMESPACE

OLDEST = (2, 7)
"""The first version of MindSpore that this was tested with."""


class MindSporeHost:
    """MindSpore's tensors and parameters, on the CPU."""

    name = "mindspore"

    def __init__(self) -> None:
        """Set up tensors, callbacks and vmap; raises ``HostError`` for a MindSpore that does not work."""
        version = str(getattr(mindspore, "__version__", "0"))
        numbers = tuple(int(part) if part.isdigit() else 0 for part in version.split(".")[:2])
        if numbers < OLDEST or not hasattr(mindspore.Tensor, "data_ptr"):
            raise HostError("MindSpore", f"must be {'.'.join(map(str, OLDEST))} or later", version)
        if int(np.__version__.split(".")[0]) >= 2:
            _check_numpy(version)
        tensors.start()
        callbacks.start()
        vmap.start()

    def owns(self, value: Any) -> bool:
        """Whether ``value`` is a tensor or a parameter, or stands for one while a rule is recorded."""
        return isinstance(value, (TensorPy, symbols.Symbol))

    def spec(self, tensor: Any) -> Spec:
        """Return shape, dtype and device type."""
        return tensor.spec if isinstance(tensor, symbols.Symbol) else tensors.spec(tensor)

    def call(self, bound: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """Run the operator on tensors of any layout; record its gradient if MindSpore needs one."""
        callbacks.check()
        recording = symbols.current()
        if recording is not None:
            return recording.call(bound, arguments)
        if tensors.tracing() is not None:
            from .graph import call_traced

            return call_traced(bound, arguments)
        if tensors.EXECUTOR.requires_grad() and (
            bound.schema.mutates or any(tensors.require_grad(arguments))
        ):
            return gradient.call(bound, arguments, self.run)
        return self.run(bound, arguments)

    def run(self, bound: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """Run the operator without recording a gradient."""
        check_on_cpu(bound.operator, "MindSpore's tensors are")
        return run_through_numpy(self, bound, arguments, tensors.array, tensors.tensor)

    def vjp(self, bound: Any, arguments: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any]:
        """Return the outputs, and the function from output gradients to input gradients."""
        callbacks.check()
        if bound.operator.gradient is None:
            raise gradient.no_rule(bound.operator)
        return gradient.vjp(bound, arguments, self.run)

    def graph(self, bound: Any) -> Any:
        """Return the method that MindSpore's compiler reads in place of a call of the operator."""
        from .graph import method

        return method(bound)

    def zeros(self, spec: Spec, like: Any) -> Any:
        """Return a tensor of zeros."""
        del like
        return tensors.tensor(np.zeros(spec.shape, spec.dtype.numpy), "zeros")

    def copy(self, tensor: Any) -> Any:
        """Return a copy."""
        return tensor.copy()

    def start(self) -> None:
        """Do nothing: MindSpore keeps no table of operators by name."""

    def state(self, bound: Any) -> str:
        """Return that MindSpore is present, and whether graphs run the gradient rule on NumPy arrays."""
        from .explained import fallback

        text = fallback(bound)
        return f"present; {text}" if text else "present"

    def namespace(self) -> Any:
        """Return MindSpore's functions under NumPy's names."""
        return NAMESPACE

    def pull_back(self, function: Any, inputs: Any, grads: Any) -> tuple[Any, ...]:
        """Return the gradients of ``function`` at the inputs; they can be differentiated again."""
        recording = symbols.current()
        if recording is not None:
            return recording.pull_back(function, inputs, grads)
        gradient = ops.GradOperation(get_all=True, sens_param=True)(function)
        # copies: MindSpore loses the gradient of an input on which another one depends
        return tuple(gradient(*(x.copy() for x in inputs), tuple(grads)))

    def alive(self, values: Any) -> list[Any]:
        """Return the tensors: MindSpore's transforms leave no wrappers."""
        return list(values)


def _check_numpy(version: str) -> None:
    try:
        array = (TensorPy.from_numpy(np.zeros(1, np.float32)) + 1).asnumpy()
        array.sum()
    except (ImportError, RuntimeError, SystemError, TypeError) as problem:
        rule = f"{version} was built for NumPy 1 and cannot be used beside NumPy {np.__version__}"
        hint = "pip install 'numpy<2'"
        raise HostError("MindSpore", rule, hint=hint) from problem


HOST = MindSporeHost()
