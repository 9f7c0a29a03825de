"""The host of xarray: ``xarray.apply_ufunc`` with the dimensions that ``dims=`` names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import xarray as xr

from ...call.foreign import flatten, text_values, unflatten
from ...call.host import find_host, host_of, tensors_of
from ...call.operator import Operator
from ...call.padded import refuse_data_sizes
from ...core.dims.dims import Dims, elementwise
from ...core.errors import ArgumentTypeError, UnsupportedError
from ...core.spec import Spec
from ...sharding.of_call import is_elementwise
from .names import Matching, Names, Tensor


class XarrayHost:
    """DataArrays, and arrays of NumPy and dask beside them."""

    name = "xarray"

    def owns(self, value: Any) -> bool:
        """Whether ``value`` is a DataArray."""
        return isinstance(value, xr.DataArray)

    def start(self) -> None:
        """Do nothing: xarray keeps no table of operators, so there is nothing to register."""

    def state(self, bound: Any) -> str:
        """Return that names of dimensions are matched, or why a call is refused."""
        if bound.operator.schema.mutates or not bound.operator.schema.returns:
            return "present; refused: it writes an argument in place, or has no output"
        if _dims(bound.operator) is None:
            return "present; refused: the operator has no dims=, so its dimensions have no names"
        return "present; dimensions are matched by name, then by position"

    def spec(self, tensor: Any) -> Spec:
        """Return shape and dtype of the array inside."""
        data = tensor.data if isinstance(tensor, xr.DataArray) else tensor
        host = host_of(data)
        if host is None:
            kind = type(data)
            rule = "the array in a DataArray must be one that operators take"
            raise ArgumentTypeError("tensor", rule, f"{kind.__module__}.{kind.__qualname__}")
        return host.spec(data)

    def call(self, bound: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return DataArrays; those of dask arrays are lazy.

        Coordinates are kept along dimensions whose size stays. Raises ``UnsupportedError`` for an operator
        without ``dims=``, ``ArgumentValueError`` for dimensions that do not fit.
        """
        operator: Operator = bound.operator
        dims = _dims(operator)
        _refuse(operator, dims)
        assert dims is not None
        tensors = list(flatten(operator.schema, arguments))
        matching = Matching(operator, list(_rows(operator, dims, arguments)))
        mapped = all(entry.ellipsis for entry in dims.outputs)
        lead = () if mapped else matching.leading()
        inputs = [
            lead + core if row.entry.ellipsis else core
            for row, core in zip(matching.tensors, matching.core, strict=True)
        ]
        names, resized = matching.outputs(dims.outputs)
        outputs = [
            (lead if entry.ellipsis else ()) + row for entry, row in zip(dims.outputs, names, strict=True)
        ]
        results = xr.apply_ufunc(
            _Run(bound, tuple(text_values(operator.schema, arguments)), matching),
            *(_named(value, row) for value, row in zip(tensors, inputs, strict=True)),
            input_core_dims=inputs,
            output_core_dims=outputs,
            exclude_dims=resized,
            dask="allowed",
        )
        return results if isinstance(results, tuple) else (results,)

    def vjp(self, bound: Any, arguments: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any]:
        """Raise ``UnsupportedError``: gradients are those of the arrays inside."""
        del arguments
        rule = "has no vjp on DataArrays"
        hint = "call op.vjp on the arrays inside: x.data"
        raise UnsupportedError(bound.name, rule, where=bound.operator.origin, hint=hint)

    def zeros(self, spec: Spec, like: Any) -> Any:
        """Return zeros; they have the dimensions and coordinates of ``like`` if they have its shape."""
        if tuple(like.shape) == spec.shape:
            return xr.zeros_like(like, dtype=spec.dtype.numpy)
        return xr.DataArray(np.zeros(spec.shape, spec.dtype.numpy))

    def copy(self, tensor: Any) -> Any:
        """Return a copy."""
        return tensor.copy()

    def namespace(self) -> Any:
        """Return xarray's functions of arrays."""
        return xr.ufuncs


class _Run:
    """The operator on the arrays inside, which xarray passes with the dimensions of ``...`` in front."""

    def __init__(self, bound: Any, values: tuple[Any, ...], matching: Matching) -> None:
        self.bound, self.values, self.matching = bound, values, matching

    def __call__(self, *arrays: Any) -> Any:
        """Return the output, or a tuple of several."""
        schema = self.bound.schema
        arguments = unflatten(schema, self.values, tuple(self._broadcast(arrays)))
        outputs = find_host(self.bound.operator, arguments).call(self.bound, arguments)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _broadcast(self, arrays: Sequence[Any]) -> Iterator[Any]:
        """Yield arrays whose dimensions of ``...`` are the same: xarray leaves out those that it may."""
        rows = list(zip(arrays, self.matching.tensors, self.matching.core, strict=True))
        shapes = [array.shape[: array.ndim - len(core)] for array, row, core in rows if row.entry.ellipsis]
        lead = np.broadcast_shapes(*shapes)
        for array, row, core in rows:
            shape = lead + array.shape[array.ndim - len(core) :]
            yield np.broadcast_to(array, shape) if row.entry.ellipsis and array.shape != shape else array


def _dims(operator: Operator) -> Dims | None:
    """Return the rule whose entries name the dimensions; None if there is none."""
    if operator.dims is None and is_elementwise(operator):
        return elementwise(operator.schema, operator.origin)
    return operator.dims


def _refuse(operator: Operator, dims: Dims | None) -> None:
    refuse_data_sizes(operator, "it has no name and no coordinates in a DataArray")
    schema, hint = operator.schema, "call it on the arrays inside: x.values, or x.data"
    if dims is None:
        rule = "has no dims=, so its dimensions have no names"
        hint = f"define it with dims=, or {hint}"
    elif schema.mutates:
        rule = "writes an argument in place, which is refused for DataArrays"
    elif not schema.returns or schema.returns_list:
        rule = f"returns {'a list' if schema.returns else 'nothing'}, which is refused for DataArrays"
    else:
        return
    raise UnsupportedError(operator.name, rule, where=operator.origin, hint=hint)


def _rows(operator: Operator, dims: Dims, arguments: Sequence[Any]) -> Iterator[Tensor]:
    for entry, position in zip(dims.inputs, operator.schema.tensor_positions, strict=True):
        for name, value in tensors_of(operator, operator.schema.arguments[position], arguments[position]):
            names = value.dims if isinstance(value, xr.DataArray) else None
            yield Tensor(name, entry, names, value.ndim)


def _named(value: Any, names: Names) -> Any:
    return value if isinstance(value, xr.DataArray) else xr.Variable(names, value)


HOST = XarrayHost()
