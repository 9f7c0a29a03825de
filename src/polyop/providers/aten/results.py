"""Regroup the results of PyTorch's operators that are no tensors, or lists beside other results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from ...call.host import Host, map_tensors, specs
from ...call.operator import Operator
from ...core.errors import KernelError
from ...hosts.torch.tensors import TORCH_DTYPES
from .function import TENSOR, TENSORS, TorchFunction, to_torch
from .infer import UnknownOutputsError, infer_error, needs_data
from .kernel import from_array
from .schema import SCALAR_TYPES


def regroup(result_kinds: Sequence[str], tensors: Sequence[Any], values: Sequence[Any]) -> Any:
    """Return the results as PyTorch has them, from its tensors in order and its other values in order.

    Several lists have one length: that of PyTorch's operators for lists of parameters.
    """
    lists = result_kinds.count(TENSORS)
    length = (len(tensors) - result_kinds.count(TENSOR)) // lists if lists else 0
    new, other = iter(tensors), iter(values)
    results: list[Any] = []
    for kind in result_kinds:
        if kind == TENSORS:
            results.append([next(new) for _ in range(length)])
        else:
            results.append(next(new) if kind == TENSOR else next(other))
    return results[0] if len(results) == 1 else tuple(results)


def python_values(function: TorchFunction, operator: Operator, host: Host, arguments: Sequence[Any]) -> Any:
    """Return the results of a call that are no tensors, in order. A dtype comes as its name.

    PyTorch runs on the arrays; while a program is traced, on tensors without data. Raises
    ``UnknownOutputsError`` if a result depends on data that is not known then, and ``InferError`` for
    arguments that PyTorch refuses.
    """
    try:
        arrays = map_tensors(operator, arguments, lambda name, value, argument: np.asarray(value))
    except (TypeError, RuntimeError):  # a tracer has no data
        return _without_data(function, specs(host, operator, arguments))
    with torch.no_grad():
        return values_of(function, function.result(to_torch(function.schema, arrays, from_array)))


def _without_data(function: TorchFunction, arguments: Sequence[Any]) -> list[Any]:
    from torch._subclasses.fake_tensor import FakeTensorMode  # slow to import, and rarely needed

    def empty(spec: Any) -> torch.Tensor:
        return torch.empty(spec.shape, dtype=TORCH_DTYPES[spec.dtype.name])

    with torch.no_grad(), FakeTensorMode():
        try:
            return values_of(function, function.result(to_torch(function.schema, arguments, empty)))
        except (KernelError, TypeError) as problem:
            if isinstance(problem, KernelError) and not needs_data(problem):
                raise infer_error(function.schema, problem) from None
            rule = "returns a Python value that depends on data, and the program that is traced has none"
            hint = "call it outside of the traced function, or use an operator that returns a tensor"
            raise UnknownOutputsError(function.schema.qualified_name, rule, hint=hint) from problem


def values_of(function: TorchFunction, result: Any) -> list[Any]:
    """Return what PyTorch's operator returned beside tensors, in order. A dtype comes as its name."""
    items = result if len(function.result_kinds) > 1 else (result,)
    rows = zip(function.result_kinds, items, strict=True)
    return [_value(kind, item) for kind, item in rows if kind not in (TENSOR, TENSORS)]


def _value(kind: str, item: Any) -> Any:
    if kind == "ScalarType":
        return SCALAR_TYPES.get(item, item)
    return list(item) if isinstance(item, (list, tuple)) else item
