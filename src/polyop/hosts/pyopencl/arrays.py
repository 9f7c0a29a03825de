"""PyOpenCL's arrays: their specs, new ones, and where a call on them runs."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl
import pyopencl.array as cl_array

from ...call.conversion import way_to_numbers
from ...call.host import map_tensors
from ...call.operator import Operator
from ...core.dtypes import DTYPES, DType
from ...core.errors import ArgumentTypeError, HostError
from ...core.spec import Spec

DEVICE = "opencl"
TAKEN = {row.numpy: row for row in DTYPES if row.numpy.isbuiltin == 1}
"""The dtypes that OpenCL's arrays share with polyop: those of NumPy itself."""


def row_of(kind: Any) -> DType:
    """Return the dtype; raises ``ArgumentTypeError`` for one that no kernel accepts."""
    row = TAKEN.get(np.dtype(kind)) if np.dtype(kind).isnative else None
    if row is None:
        rule = f"must be one of {', '.join(one.name for one in TAKEN.values())}, in the CPU's order of bytes"
        raise ArgumentTypeError("dtype", rule, kind, hint=way_to_numbers(np.dtype(kind)))
    return row


def spec(array: Any) -> Spec:
    """Return shape, dtype and device; raises ``ArgumentTypeError`` for an array over no buffer of OpenCL."""
    if not isinstance(array.base_data, (cl.MemoryObjectHolder, type(None))):
        rule, hint = "must have its memory in a buffer", "copy it: pyopencl.array.to_device(queue, x.get())"
        raise ArgumentTypeError("tensor", rule, f"a {type(array.base_data).__name__}", hint=hint)
    return _spec(array.shape, array.dtype)


@functools.lru_cache(1024)
def _spec(shape: tuple[int, ...], kind: Any) -> Spec:
    return Spec(tuple(map(int, shape)), row_of(kind), DEVICE)


@functools.lru_cache(1024)
def _pattern(context: Any, spec: Spec) -> Any:
    """Return an array without memory that new ones are made like: PyOpenCL checks its shape once."""
    return cl_array.Array(context, spec.shape, spec.dtype.numpy, data=_NO_MEMORY)


_NO_MEMORY = object()


class Place(NamedTuple):
    """Where a call runs, and what allocates its outputs."""

    queue: Any
    allocator: Any
    arrays: Sequence[Any]

    @classmethod
    def of(cls, operator: Operator, arguments: Sequence[Any], arrays: Sequence[Any]) -> Place:
        """Return the place of a call whose arguments have these arrays: the queue of the first that has one.

        Raises ``HostError`` for arrays of two contexts, and if no array has a queue.
        """
        first = arrays[0]
        if any(x.context is not first.context and x.context != first.context for x in arrays):
            raise _two_contexts(operator, arguments)
        queue = next((x.queue for x in arrays if x.queue is not None), None)
        if queue is None:
            (name, _), *_ = _named(operator, arguments)
            rule, hint = "needs an array with a queue", f"give it one: {name}.with_queue(queue)"
            raise HostError(operator.name, rule, where=operator.origin, hint=hint)
        return cls(queue, first.allocator, arrays)

    def empty(self, spec: Spec) -> Any:
        """Return a new array of a spec."""
        return cl_array.empty_like(_pattern(self.queue.context, spec), self.queue, self.allocator)


def _named(operator: Operator, arguments: Sequence[Any]) -> list[tuple[str, Any]]:
    named: list[tuple[str, Any]] = []
    map_tensors(operator, arguments, lambda name, value, _: named.append((name, value)))
    return named


def _two_contexts(operator: Operator, arguments: Sequence[Any]) -> HostError:
    (first_name, first), *rest = _named(operator, arguments)
    name, other = next((name, array) for name, array in rest if array.context != first.context)
    rule = f"{name} is in {_shown(other.context)}, and {first_name} in {_shown(first.context)}"
    hint = f"copy one of them: pyopencl.array.to_device({first_name}.queue, {name}.get())"
    return HostError(operator.name, rule, where=operator.origin, hint=hint)


def _shown(context: Any) -> str:
    return f"the context {context.int_ptr:#x} of {', '.join(device.name for device in context.devices)}"
