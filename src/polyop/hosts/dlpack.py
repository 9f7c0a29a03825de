"""The host of arrays that speak DLPack and belong to no framework that polyop knows.

There is one for each library of arrays. It views the arrays through DLPack and calls NumPy's host.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ..call.host import load, map_tensors
from ..call.operator import Operator
from ..core.dtypes import dtype
from ..core.errors import ArgumentTypeError, HostError, UnsupportedError
from ..core.schema import Argument
from ..core.spec import Spec

_DEVICES = {2: "CUDA", 4: "OpenCL", 7: "Vulkan", 8: "Metal", 10: "ROCm", 14: "oneAPI", 15: "WebGPU"}
_READABLE = (1, 3, 11, 13)  # the CPU, and the memory that CUDA and ROCm share with it
_HINT = "copy it to the CPU first, and call the operator on np.from_dlpack(copy)"
_SHARED: dict[str, Any] = {"copy": False} if np.lib.NumpyVersion(np.__version__) >= "2.1.0" else {}
_MAKERS: dict[str, Callable[[Any], Any]] = {
    "tensorflow": lambda array: sys.modules["tensorflow"].experimental.dlpack.from_dlpack(array.__dlpack__()),
    "mlx": lambda array: sys.modules["mlx.core"].array(array),  # noqa: PLW0108 - when it is imported
}
"""By library, what makes its array of NumPy's, where that is not called ``from_dlpack``."""


class DlpackHost:
    """The arrays of one library, which is called ``name``."""

    def __init__(self, name: str) -> None:
        self.name = name

    def owns(self, value: Any) -> bool:
        """Return True: the host is looked up by the class of the value."""
        del value
        return True

    def start(self) -> None:
        """Do nothing: there is no table of operators."""

    def state(self, bound: Any) -> str:
        """Return how a call is made."""
        del bound
        return "present; through DLPack and NumPy, on the CPU, without gradients"

    def spec(self, tensor: Any) -> Spec:
        """Return shape and dtype; raises ``ArgumentTypeError`` for an array that NumPy cannot view."""
        array = tensor if isinstance(tensor, np.ndarray) else _view(tensor)
        return Spec(tuple(array.shape), dtype(array.dtype))

    def call(self, bound: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """Run the operator on views of the arrays; outputs are arrays of the same library.

        What the schema writes is written in the argument's own memory. Raises ``ArgumentTypeError`` for an
        array that NumPy cannot view, ``HostError`` where the library makes no array of NumPy's.
        """
        operator: Operator = bound.operator
        originals: list[tuple[Any, Any]] = []

        def view(name: str, value: Any, argument: Argument) -> Any:
            try:
                array = _view(value, shared=argument.type.writes)
            except ArgumentTypeError as problem:
                subject = f"{operator.name}: argument {name}"
                raise ArgumentTypeError(subject, str(problem), where=operator.origin) from None
            originals.append((array, value))
            return array

        arrays = map_tensors(operator, arguments, view)
        new = operator.schema.fresh or operator.schema.returns_list
        make = self._maker(operator, originals[0][1]) if new else _no_output
        numpy = load("numpy")
        assert numpy is not None
        outputs = numpy.call(bound, arrays)
        return tuple(self._array(operator, make, output, originals) for output in outputs)

    def vjp(self, bound: Any, arguments: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any]:
        """Raise ``UnsupportedError``: arrays of this kind record no gradients."""
        del arguments
        rule = f"has no vjp on arrays of {self.name}, which have no gradients"
        hint = "call op.vjp on NumPy arrays: np.from_dlpack(x)"
        raise UnsupportedError(bound.name, rule, where=bound.operator.origin, hint=hint)

    def zeros(self, spec: Spec, like: Any) -> Any:
        """Return an array of zeros."""
        return self._maker(None, like)(np.zeros(spec.shape, spec.dtype.numpy))

    def copy(self, tensor: Any) -> Any:
        """Return a copy."""
        return self._maker(None, tensor)(np.array(_view(tensor)))

    def namespace(self) -> Any:
        """Return the library's module: its functions, if it follows the array API."""
        return sys.modules[self.name]

    def _maker(self, operator: Operator | None, like: Any) -> Callable[[Any], Any]:
        """Return the function that makes an array of the library; raises ``HostError`` if none is known."""
        if self.name in _MAKERS:
            return _MAKERS[self.name]
        find = getattr(like, "__array_namespace__", None)
        module = sys.modules.get(self.name) if find is None else find()
        make: Callable[[Any], Any] | None = getattr(module, "from_dlpack", None)
        if make is None:
            kind = f"{type(like).__module__}.{type(like).__qualname__}"
            rule = f"returns arrays of its arguments' kind, and {kind} has no from_dlpack that makes them"
            hint = "call it on np.from_dlpack(x), or register a host: docs/internals/add-a-host.md"
            where = operator.origin if operator else None
            raise HostError(operator.name if operator else self.name, rule, where=where, hint=hint)
        return make

    def _array(
        self, operator: Operator, make: Callable[[Any], Any], output: Any, originals: list[tuple[Any, Any]]
    ) -> Any:
        for array, value in originals:
            if array is output:  # it was written in place
                return value
        try:
            return make(output)
        except Exception as problem:  # noqa: BLE001 - each library has errors of its own
            rule = f"the output is {output.dtype.name}, of which {self.name} makes no array: {problem}"
            hint = "call it on np.from_dlpack(x)"
            raise HostError(operator.name, rule, where=operator.origin, hint=hint) from None


def _no_output(array: Any) -> Any:
    raise AssertionError(f"an output that no argument is: {array}")


def _view(value: Any, *, shared: bool = False) -> Any:
    """Return a NumPy array over the same memory; with ``shared`` never over a copy that DLPack made."""
    device, number = value.__dlpack_device__()
    if int(device) not in _READABLE:
        seen = f"an array on {_DEVICES.get(int(device), f'device type {int(device)}')}:{number}"
        raise ArgumentTypeError("array", "must be on the CPU", seen, hint=_HINT)
    try:
        return np.from_dlpack(value, **_SHARED) if shared else np.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError, ValueError) as problem:
        rule = "must be one that NumPy can view through DLPack"
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        raise ArgumentTypeError("array", rule, f"{kind} ({problem})") from None
