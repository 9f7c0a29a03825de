"""The NumPy host: operators on arrays, through the native call or a Python kernel."""

from __future__ import annotations

import sys
import types
from typing import Any, Final

import numpy as np

from .. import _core
from ..call.conversion import way_to_numbers
from ..call.host import map_tensors, specs, with_aliases
from ..call.operator import Operator
from ..call.overlap import Layout, check_apart, check_overlap
from ..call.prepare import normalise
from ..call.rule import Rule, apply_rule, check_gradients, no_gradient
from ..core.dtypes import dtype
from ..core.errors import ArgumentTypeError, ArgumentValueError, HostError
from ..core.schema import Argument
from ..core.spec import Spec
from ..kernels.python import PythonKernel, TensorKernel

_PLAIN: Final = ("C", "A", "E")
"""What np.require makes: dense, aligned, of no subclass: ``x * x`` of an ``np.matrix`` is another product."""


class NumpyHost:
    """NumPy arrays, and NumPy scalars as 0-d arrays."""

    name = "numpy"

    def owns(self, value: Any) -> bool:
        """Whether ``value`` is an array or a NumPy scalar."""
        return isinstance(value, (np.ndarray, np.generic))

    def start(self) -> None:
        """Do nothing: NumPy keeps no table of operators, so there is nothing to register."""

    def state(self, bound: Any) -> str:
        """Return that NumPy is present: all calls are made in the same way."""
        del bound
        return "present"

    def spec(self, tensor: Any) -> Spec:
        """Return shape and dtype; raises ``ArgumentTypeError`` for masked arrays and unknown dtypes."""
        masked = sys.modules.get("numpy.ma")  # NumPy imports it when it is first used, which takes a while
        if masked is not None and isinstance(tensor, masked.MaskedArray):
            rule, hint = "must have no mask, which a kernel cannot see", "convert it: .filled(0)"
            raise ArgumentTypeError("tensor", rule, "a masked array", hint=hint)
        try:
            return Spec(tuple(tensor.shape), dtype(tensor.dtype))
        except ArgumentTypeError as problem:
            way = way_to_numbers(tensor.dtype)
            raise ArgumentTypeError("dtype", problem.rule, tensor.dtype, hint=way) from None

    def call(self, bound: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """Run the operator on arrays of any layout, alignment and byte order.

        An argument that the schema writes must be a writeable array; what was written is
        copied back when the array itself was not dense.
        """
        if bound.is_module and not bound.prepared():  # its first call shows which arguments it writes
            bound.refine_schema(normalise(bound.operator, specs(self, bound.operator, arguments)))
        operator: Operator = bound.operator
        if operator.target not in (None, "cpu"):
            rule = f"is bound to {operator.target}, where NumPy arrays are on the CPU"
            raise HostError(operator.name, rule, where=operator.origin)
        copies: list[tuple[Any, Any]] = []  # (argument that is not dense, its dense copy)
        written: list[tuple[str, Any]] = []

        specs(self, operator, arguments)  # raises for a value without a spec

        def dense(name: str, value: Any, argument: Argument) -> Any:
            if bound.is_module and not argument.type.writes:
                return _where_it_lies(value)
            array = np.require(value, dtype(value.dtype).numpy, _PLAIN)
            if argument.type.writes:
                _check_writeable(operator, name, value)
                written.append((name, value))
                if array is not value:
                    check_overlap(operator, name, value.shape, value.strides, value.itemsize)
                    copies.append((value, array))
            return array

        arrays = map_tensors(operator, arguments, dense)
        if copies:
            check_apart(operator, [(name, _layout(array)) for name, array in written])
        fresh = bound.launch(*arrays) if bound.native else NotImplemented
        if fresh is NotImplemented:
            fresh = self._run_python(bound, arrays)
        for original, dense_copy in copies:
            original[...] = dense_copy
        outputs = tuple(fresh) if isinstance(fresh, (tuple, list)) else () if fresh is None else (fresh,)
        return with_aliases(operator, arguments, outputs)

    def _run_python(self, bound: Any, arrays: tuple[Any, ...]) -> tuple[Any, ...]:
        prepared = bound.prepare(self, arrays)
        kernel = prepared.kernel
        if isinstance(kernel, TensorKernel):
            return kernel.function(*arrays)
        if not isinstance(kernel, PythonKernel):
            raise ArgumentTypeError(bound.name, f"{kernel} cannot take these arguments")
        return tuple(kernel.call(bound.schema, arrays, prepared.outputs, bound.operator.attributes))

    def vjp(self, bound: Any, arguments: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any]:
        """Return the outputs, and the function from output gradients to input gradients."""
        operator: Operator = bound.operator
        if operator.gradient is None:
            raise no_gradient(operator)
        if isinstance(operator.gradient, Rule) and operator.gradient.is_recorded:
            return self._recorded(bound, arguments)
        outputs = self.call(bound, arguments)
        plain = map_tensors(operator, arguments, lambda name, value, argument: _plain(value))

        def pullback(grads: tuple[Any, ...]) -> tuple[Any, ...]:
            input_grads = apply_rule(operator, plain, outputs, tuple(map(_plain, grads)))
            check_gradients(operator, plain, input_grads)
            return input_grads

        return outputs, pullback

    def _recorded(self, bound: Any, arguments: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any]:
        """Return what ``vjp`` does for a C++ module, by recording its Forward and running its Backward."""
        from ..rules.module.recorded import failed

        operator: Operator = bound.operator
        ctx = types.SimpleNamespace()
        result = bound.record(ctx, *map_tensors(operator, arguments, _in_native_byte_order))
        if result is NotImplemented:
            rule = "its gradient cannot be recorded for these arrays"
            raise ArgumentTypeError(operator.name, rule, where=operator.origin)
        outputs = result if isinstance(result, tuple) else () if result is None else (result,)
        # copies, because the caller may change its arrays before it calls pullback
        saved = tuple(np.array(array) for array in ctx.to_save)

        def pullback(grads: tuple[Any, ...]) -> tuple[Any, ...]:
            output_grads = tuple(None if grad is None else np.asarray(grad) for grad in grads)
            try:
                input_grads = iter(_core.backward(ctx.tape, saved, output_grads))
            except RuntimeError as problem:
                raise failed(operator.name, problem, operator.origin) from None
            by_argument = map_tensors(operator, arguments, lambda name, value, argument: next(input_grads))
            rows = zip(operator.schema.arguments, by_argument, strict=True)
            return tuple(grad if argument.type.is_tensor else None for argument, grad in rows)

        return outputs, pullback

    def zeros(self, spec: Spec, like: Any) -> Any:
        """Return an array of zeros."""
        del like
        return np.zeros(spec.shape, spec.dtype.numpy)

    def copy(self, tensor: Any) -> Any:
        """Return a copy."""
        return np.array(tensor)

    def namespace(self) -> Any:
        """Return NumPy's functions under the array API's names."""
        import array_api_compat.numpy

        return array_api_compat.numpy


def _plain(value: Any) -> Any:
    return np.asarray(value) if isinstance(value, np.ndarray) else value


def _layout(array: Any) -> Layout:
    return Layout(array.ctypes.data, array.shape, array.strides, array.itemsize)


def _where_it_lies(value: Any) -> Any:
    """Return an array for a C++ module: the caller's own, which it may write though no schema says so."""
    array = np.require(value, dtype(value.dtype).numpy, ["A", "E"])
    whole = all(step % array.itemsize == 0 for step in array.strides)
    return array if whole else np.require(array, array.dtype, _PLAIN)


def _in_native_byte_order(name: str, value: Any, argument: Argument) -> Any:
    del name, argument
    return np.require(value, dtype(value.dtype).numpy, ["A", "E"])


def _check_writeable(operator: Operator, name: str, value: Any) -> None:
    subject = f"{operator.name}: argument {name}"
    if not isinstance(value, np.ndarray):
        raise ArgumentTypeError(subject, "is written in place, so it must be an array", type(value).__name__)
    if not value.flags.writeable:
        raise ArgumentValueError(subject, "is written in place", "a read-only array", hint="pass a copy")


HOST = NumpyHost()
