"""The dask host: operators on dask arrays become tasks; nothing runs before the result is computed."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import dask.array as da
import numpy as np

from ...call.foreign import flatten, text_values
from ...call.host import host_of, map_tensors, specs, tensors_of
from ...call.operator import Operator
from ...call.padded import refuse_data_sizes
from ...call.rule import Rule, apply_rule, check_gradients, no_gradient
from ...core.errors import ArgumentTypeError, ArgumentValueError, FallbackWarning, UnsupportedError
from ...core.origin import caller
from ...core.schema import Argument
from ...core.spec import Spec
from ...sharding.of_call import is_claimed, is_elementwise, sharding_rule
from .cuts import cuts_of, gathered
from .graph import outputs_of

_gathered: set[tuple[str, str, int]] = set()  # what was warned about: operator, argument, axis


class DaskHost:
    """dask arrays, and NumPy arrays beside them."""

    name = "dask"

    def owns(self, value: Any) -> bool:
        """Whether ``value`` is a dask array."""
        return isinstance(value, da.Array)

    def start(self) -> None:
        """Do nothing: dask keeps no table of operators, so there is nothing to register."""

    def state(self, bound: Any) -> str:
        """Return along which dimensions chunks are gathered, if there are such, or why a call is refused."""
        operator: Operator = bound.operator
        if operator.schema.mutates or not operator.schema.returns:
            return "present; refused: it writes an argument in place, or has no output"
        if not is_claimed(operator):
            return "present; fallback: chunks are gathered, because nothing is claimed of its dimensions"
        if operator.dims is None and not is_elementwise(operator):
            return "present; one call per chunk along what slices can be cut; others are gathered"
        whole = operator.dims.whole if operator.dims is not None else ()
        if whole:
            return f"present; one call per chunk; fallback: chunks are gathered along {', '.join(whole)}"
        return "present; one call per chunk"

    def spec(self, tensor: Any) -> Spec:
        """Return shape and dtype; raises ``ArgumentTypeError`` for blocks that no host owns."""
        if isinstance(tensor, np.ndarray | np.generic):
            tensor = _as_dask(tensor)
        meta = tensor._meta  # noqa: SLF001
        host = host_of(meta)
        if host is None or host is self:
            kind = type(meta)
            rule = "the blocks of a dask array must be arrays that operators take"
            raise ArgumentTypeError("tensor", rule, f"{kind.__module__}.{kind.__qualname__}")
        block = host.spec(meta)
        return Spec(tuple(tensor.shape), block.dtype, block.device)

    def call(self, bound: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return dask arrays that run the operator on chunks when they are computed.

        A dimension that is chunked and has to be whole is gathered, with a ``FallbackWarning`` the first
        time. Raises ``UnsupportedError`` for operators that write an argument or return nothing, and
        ``ArgumentValueError`` for chunks of unknown size.
        """
        arguments = map_tensors(bound.operator, arguments, _checked(bound.operator))
        inputs = specs(self, bound.operator, arguments)
        if bound.is_module:
            bound.refine_schema(inputs)
        operator: Operator = bound.operator
        _refuse(operator)
        rule = sharding_rule(operator, inputs)
        tensors = list(flatten(operator.schema, arguments))
        chunks = [tensor.chunks for tensor in tensors]
        cuts = cuts_of(rule, chunks)
        _warn_of_gathering(operator, arguments, list(gathered(chunks, cuts)))
        values = tuple(text_values(operator.schema, arguments))
        return tuple(outputs_of(bound, values, tensors, rule.outputs, cuts))

    def vjp(self, bound: Any, arguments: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any]:
        """Return the outputs, and the function from output gradients to input gradients; both are lazy."""
        operator: Operator = bound.operator
        if operator.gradient is None:
            raise no_gradient(operator)
        if isinstance(operator.gradient, Rule) and operator.gradient.is_recorded:
            rule = "records its gradient while it runs, and a dask array runs later"
            hint = "call op.vjp on NumPy arrays, in a function that dask maps over blocks"
            raise UnsupportedError(operator.name, rule, where=operator.origin, hint=hint)
        arguments = map_tensors(operator, arguments, _checked(operator))
        outputs = self.call(bound, arguments)

        def pullback(grads: tuple[Any, ...]) -> tuple[Any, ...]:
            output_grads = tuple(None if grad is None else _as_dask(grad) for grad in grads)
            input_grads = apply_rule(operator, arguments, outputs, output_grads)
            check_gradients(operator, arguments, input_grads)
            return input_grads

        return outputs, pullback

    def zeros(self, spec: Spec, like: Any) -> Any:
        """Return an array of zeros, in the chunks of ``like`` if it has the shape."""
        chunks = like.chunks if tuple(like.shape) == spec.shape else "auto"
        return da.zeros(spec.shape, dtype=spec.dtype.numpy, chunks=chunks)

    def copy(self, tensor: Any) -> Any:
        """Return the array itself: dask's arrays cannot be changed by others."""
        return tensor.copy()

    def namespace(self) -> Any:
        """Return dask's functions under the array API's names."""
        import array_api_compat.dask.array

        return array_api_compat.dask.array


def _as_dask(value: Any) -> Any:
    """Return a dask array; a NumPy array is one chunk."""
    return value if isinstance(value, da.Array) else da.from_array(np.asarray(value), chunks=-1)


def _checked(operator: Operator) -> Any:
    def as_dask(name: str, value: Any, argument: Argument) -> Any:
        del argument
        array = _as_dask(value)
        if any(math.isnan(size) for size in array.shape):
            rule, hint = "must have chunks of known size", "call its compute_chunk_sizes() first"
            subject = f"{operator.name}: argument {name}"
            raise ArgumentValueError(subject, rule, f"shape {array.shape}", where=operator.origin, hint=hint)
        return array

    return as_dask


def _refuse(operator: Operator) -> None:
    refuse_data_sizes(operator, "dask needs sizes before the kernel runs")
    if operator.schema.mutates:
        rule = "writes an argument in place, and a dask array is never written"
        hint = "return a new tensor, or call the operator on copies of blocks: x.map_blocks(function)"
        raise UnsupportedError(operator.name, rule, where=operator.origin, hint=hint)
    if not operator.schema.returns:
        rule = "returns nothing, so there is nothing that dask could compute later"
        hint = "return a tensor, or call the operator in a function of dask.delayed"
        raise UnsupportedError(operator.name, rule, where=operator.origin, hint=hint)


def _warn_of_gathering(operator: Operator, arguments: Sequence[Any], axes: Sequence[tuple[int, int]]) -> None:
    names = [
        name
        for position in operator.schema.tensor_positions
        for name, _ in tensors_of(operator, operator.schema.arguments[position], arguments[position])
    ]
    for number, axis in axes:
        row = operator.name, names[number], axis
        if row not in _gathered:
            _gathered.add(row)
            text = (
                f"{operator.name}: the chunks of argument {names[number]} along axis {axis} are gathered "
                "into one, because nothing is claimed or proved of this dimension; claim it with dims=, or "
                "rechunk the array before the call"
            )
            place = caller()
            warnings.warn_explicit(text, FallbackWarning, place.file, place.line)


HOST = DaskHost()
