"""The host of arrays that speak DLPack and belong to no framework that polyop knows.

There is one for each library of arrays. It views the arrays through DLPack and calls NumPy's host.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from ..call.foreign import flatten, text_values, unflatten
from ..call.host import load, map_tensors
from ..call.operator import Operator
from ..core.dtypes import dtype
from ..core.errors import ArgumentTypeError, GradientError, HostError, UnsupportedError
from ..core.schema import Argument
from ..core.spec import Spec

Run = Callable[..., "list[Any]"]
Refuse = Callable[..., NoReturn]

_DEVICES = {2: "CUDA", 4: "OpenCL", 7: "Vulkan", 8: "Metal", 10: "ROCm", 14: "oneAPI", 15: "WebGPU"}
_READABLE = (1, 3, 11, 13)  # the CPU, and the memory that CUDA and ROCm share with it
_HINT = "copy it to the CPU first, and call the operator on np.from_dlpack(copy)"
_GRADIENT_HINT = "call op.vjp on NumPy arrays: np.from_dlpack(x)"
_SHARED: dict[str, Any] = {"copy": False} if np.lib.NumpyVersion(np.__version__) >= "2.1.0" else {}


def _mlx_array(array: Any) -> Any:
    mlx = sys.modules["mlx.core"]
    name = "bool_" if array.dtype == np.bool_ else array.dtype.name
    return mlx.array(array, dtype=getattr(mlx, name))  # without a dtype, float64 would become float32


def _mlx_recorded(run: Run, tensors: list[Any], refuse: Refuse) -> Any:
    function = sys.modules["mlx.core"].custom_function(run)
    function.vjp(refuse)
    function.jvp(refuse)
    return function(*tensors)


def _tensorflow_recorded(run: Run, tensors: list[Any], refuse: Refuse) -> Any:
    return sys.modules["tensorflow"].custom_gradient(lambda *given: (run(*given), refuse))(*tensors)


_MAKERS: dict[str, Callable[[Any], Any]] = {
    "tensorflow": lambda array: sys.modules["tensorflow"].experimental.dlpack.from_dlpack(array.__dlpack__()),
    "mlx": _mlx_array,
}
"""By library, what makes its array of NumPy's, where that is not called ``from_dlpack``."""
_RECORDED: dict[str, Callable[[Run, list[Any], Refuse], Any]] = {
    "mlx": _mlx_recorded,
    "tensorflow": _tensorflow_recorded,
}
"""By library that differentiates, what makes a gradient through a call an error: it would be zero."""
_NAMESPACES = {"mlx": "mlx.core", "tensorflow": "tensorflow.experimental.numpy"}
"""By library, the module of its functions, where that is not its top module."""


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
        array = tensor if isinstance(tensor, np.ndarray) else _view(tensor, "array")
        return Spec(tuple(array.shape), dtype(array.dtype))

    def call(self, bound: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """Run the operator on views of the arrays; outputs are arrays of the same library.

        What the schema writes is written in the argument's own memory. Raises ``ArgumentTypeError`` for an
        array that NumPy cannot view, ``HostError`` where the library makes no array of NumPy's.
        """
        operator: Operator = bound.operator
        recorded = _RECORDED.get(self.name)
        if recorded is None or operator.schema.mutates:
            return self._run(bound, arguments)

        def run(*tensors: Any) -> list[Any]:
            return list(self._run(bound, unflatten(bound.schema, present, tensors)))

        def refuse(*_: Any) -> NoReturn:
            rule = f"has no gradient on arrays of {self.name}"
            raise GradientError(bound.name, rule, where=operator.origin, hint=_GRADIENT_HINT)

        present = text_values(bound.schema, arguments)
        return tuple(recorded(run, list(flatten(bound.schema, arguments)), refuse))

    def _run(self, bound: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        operator: Operator = bound.operator
        originals: list[tuple[Any, Any]] = []

        def view(name: str, value: Any, argument: Argument) -> Any:
            subject = f"{operator.name}: argument {name}"
            array = _view(value, subject, operator.origin, shared=argument.type.writes)
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
        rule = f"has no vjp on arrays of {self.name}, which polyop does not differentiate"
        raise UnsupportedError(bound.name, rule, where=bound.operator.origin, hint=_GRADIENT_HINT)

    def zeros(self, spec: Spec, like: Any) -> Any:
        """Return an array of zeros."""
        return self._maker(None, like)(np.zeros(spec.shape, spec.dtype.numpy))

    def copy(self, tensor: Any) -> Any:
        """Return a copy."""
        return self._maker(None, tensor)(np.array(_view(tensor, "array")))

    def namespace(self) -> Any:
        """Return the library's module, whose functions have the names of the array API in most libraries.

        Raises ``HostError`` if the classes of its arrays are in a module that cannot be imported.
        """
        name = _NAMESPACES.get(self.name, self.name)
        try:
            return importlib.import_module(name)
        except ImportError:
            rule = "has functions for its arrays only if its module can be imported"
            raise HostError(
                self.name, rule, f"no module {name}", hint="use NumPy's: np.from_dlpack(x)"
            ) from None

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
            hint = "call it on np.from_dlpack(x), or polyop.call.host.register a host of the library"
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


def _view(value: Any, subject: str, where: Any = None, *, shared: bool = False) -> Any:
    """Return a NumPy array over the same memory; with ``shared`` never over a copy that DLPack made."""
    device, number = value.__dlpack_device__()
    if int(device) not in _READABLE:
        seen = f"an array on {_DEVICES.get(int(device), f'device type {int(device)}')}:{number}"
        raise ArgumentTypeError(subject, "must be on the CPU", seen, where=where, hint=_HINT)
    try:
        return np.from_dlpack(value, **_SHARED) if shared else np.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError, ValueError) as problem:
        rule = "must be an array that NumPy can read through DLPack"
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        dtype = getattr(value, "dtype", None)
        seen = f"a {kind}{f' of {dtype}' if dtype is not None else ''}: {problem}"
        raise ArgumentTypeError(subject, rule, seen, where=where) from None
