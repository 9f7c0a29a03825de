"""Running kernels on PyOpenCL's arrays: of the C contract, of OpenCL C, and functions of tensors."""

from __future__ import annotations

import functools
from array import array
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pyopencl as cl
import pyopencl.array as cl_array

from ...call.failures import failure
from ...call.host import map_tensors, specs, with_aliases
from ...call.operator import Operator
from ...call.overlap import Layout, check_apart, check_overlap
from ...call.prepare import Prepared, prepare
from ...core.errors import HostError
from ...core.lru_cache import LruCache
from ...core.schema import Argument
from ...kernels.c_function import ROW_OF_DTYPE
from ...kernels.loop.kernel import LoopKernel
from ...kernels.opencl.kernel import OpenCLKernel
from ...kernels.python import TensorKernel
from . import arrays, loop_programs, programs, strided
from .order import ordered


class _Call(NamedTuple):
    """What was decided for the specs of a call."""

    prepared: Prepared
    launch: Any
    """That of a kernel in machine code, else None."""
    tensors: tuple[tuple[Sequence[int], int], ...]
    """For each input and output its shape, and its dtype's row in the native core; -1 for an absent one."""


_known: LruCache[_Call] = LruCache(1024)


def run(host: Any, bound: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the outputs of an operator, whose commands are in the queue.

    Raises what ``prepare`` raises, ``HostError`` for arrays that are not of one context, and ``KernelError``.
    """
    operator: Operator = bound.operator
    if operator.target not in (None, arrays.DEVICE):
        rule = f"is bound to {operator.target}, and PyOpenCL's arrays are on a device of OpenCL"
        raise HostError(operator.name, rule, where=operator.origin, hint="call it on x.get()")
    call = _prepared(host, operator, arguments)
    kernel = call.prepared.kernel
    place = place_of(operator, arguments)
    if isinstance(kernel, TensorKernel):
        return _call_function(operator, kernel, arguments, place.queue)
    outputs = [place.empty(spec) for spec in call.prepared.outputs]
    written: list[Any] = []
    with ordered(place.queue, place.arrays, written):
        inputs: Sequence[Any] = arguments
        copies: list[tuple[Any, Any]] = []
        if operator.schema.mutates or not all(_takes(kernel, x) for x in place.arrays):
            copy = functools.partial(strided.dense, place.queue)
            inputs, copies = _dense(operator, kernel, arguments, copy, written)
        written += outputs
        if kernel.native:
            _launch(operator, call, [*_tensors(operator, inputs), *outputs], place.queue)
        else:
            _enqueue(kernel, bound, inputs, outputs, place.queue)
        for original, dense in copies:
            strided.copy(place.queue, dense, original)
    return with_aliases(operator, arguments, outputs)


def place_of(operator: Operator, arguments: tuple[Any, ...]) -> arrays.Place:
    """Return where a call with these arguments runs; raises what ``Place.of`` raises."""
    return arrays.Place.of(operator, arguments, [x for x in _tensors(operator, arguments) if x is not None])


def _call_function(
    operator: Operator, kernel: TensorKernel, arguments: tuple[Any, ...], queue: Any
) -> tuple[Any, ...]:
    """Return the outputs of a function of tensors, which gets dense arrays; what it writes is copied back.

    PyOpenCL orders the function's own commands by the events of its arrays, so they are in no ``ordered``
    block. The copies before and behind them are.
    """
    copied = functools.partial(strided.for_function, queue)
    inputs, copies = _dense(operator, kernel, arguments, copied, written=[])
    fresh = kernel.function(*inputs)
    for original, dense in copies:
        with ordered(queue, [dense, original], [original]):
            strided.copy(queue, dense, original)
    return with_aliases(operator, arguments, fresh)


def _takes(kernel: Any, tensor: Any) -> bool:
    return strided.is_dense(tensor, from_start=isinstance(kernel, OpenCLKernel))


def _dense(
    operator: Operator,
    kernel: Any,
    arguments: tuple[Any, ...],
    copied: Callable[[Any], Any],
    written: list[Any],
) -> tuple[tuple[Any, ...], list[tuple[Any, Any]]]:
    """Return the arguments as the kernel takes them, and of those that it writes what was copied, and where.

    ``copied`` makes a dense copy. Fills ``written`` with the arrays that are written.
    """
    copies: list[tuple[Any, Any]] = []
    names: list[str] = []

    def dense(name: str, value: Any, argument: Argument) -> Any:
        if argument.type.writes:
            written.append(value)
            names.append(name)
            check_overlap(operator, name, value.shape, value.strides, value.dtype.itemsize)
        if _takes(kernel, value):
            return value
        copy = copied(value)
        if argument.type.writes:
            copies.append((value, copy))
        return copy

    inputs = map_tensors(operator, arguments, dense)
    if copies:
        check_apart(operator, list(zip(names, map(_layout, written), strict=True)))
    return inputs, copies


def _prepared(host: Any, operator: Operator, arguments: tuple[Any, ...]) -> _Call:
    """Return what was decided for the specs of a call."""
    key = (operator, *map(_kind, arguments))
    found = _known.get(key)
    if found is None:
        inputs = specs(host, operator, arguments)
        prepared = prepare(operator, inputs)
        each = [*_tensors(operator, inputs), *prepared.outputs]
        rows = (((), -1) if one is None else (one.shape, ROW_OF_DTYPE[one.dtype.name]) for one in each)
        found = _Call(prepared, prepared.launch(), tuple(rows))
        if isinstance(prepared.kernel, LoopKernel):
            loop_programs.supply(prepared.kernel.symbols(loop_programs.HOOK))
        if prepared.repeatable:
            _known.put(key, found)
    return found


def _kind(value: Any) -> Any:
    """Return what two arguments have in common whose calls are alike."""
    if isinstance(value, cl_array.Array):
        return value.shape, value.dtype, type(value.base_data)
    return tuple(map(_kind, value)) if isinstance(value, (list, tuple)) else repr(value)


def _tensors(operator: Operator, arguments: Sequence[Any]) -> list[Any]:
    """Return the tensors of a call one by one, those of lists too."""
    values = (arguments[i] for i in operator.schema.tensor_positions)
    return [x for value in values for x in (value if isinstance(value, (list, tuple)) else (value,))]


def _launch(operator: Operator, call: _Call, tensors: Sequence[Any], queue: Any) -> None:
    """Call a kernel of the C contract, which puts its commands into the queue."""
    memory = array("q")  # of each tensor a struct polyop_opencl_memory, polyop/abi.h
    for tensor in tensors:
        memory.extend(_memory_of(tensor) if tensor is not None and tensor.size else (0, 0))
    start = memory.buffer_info()[0]
    rows = [(start + 16 * i, shape, row) for i, (shape, row) in enumerate(call.tensors)]
    code, text, threw = call.launch.call_raw(rows, queue.int_ptr)
    if code:
        loop_programs.raise_what_stopped()
        raise failure(operator, call.prepared.kernel, code, text, threw=threw)


def _layout(tensor: Any) -> Layout:
    """Return where an array lies; no two buffers share an address."""
    buffer, start = _memory_of(tensor) if tensor.size else (0, 0)
    return Layout(buffer * 2**64 + start, tensor.shape, tensor.strides, tensor.dtype.itemsize)


def _memory_of(tensor: Any) -> tuple[int, int]:
    """Return the whole buffer of an array that is not empty, and where the array starts in it."""
    buffer = tensor.base_data
    whole = buffer.get_info(cl.mem_info.ASSOCIATED_MEMOBJECT)
    start = 0 if whole is None else buffer.get_info(cl.mem_info.OFFSET)
    return (buffer if whole is None else whole).int_ptr, start + tensor.offset


def _enqueue(kernel: Any, bound: Any, inputs: Sequence[Any], outputs: Sequence[Any], queue: Any) -> None:
    """Put a kernel in OpenCL C into the queue; one without work-items is left out."""
    launch = kernel.launch_of(bound.schema, inputs, outputs)
    source = programs.Source(kernel.text, launch.options, str(kernel), kernel.definition)
    if 0 in launch.grid:
        return
    values = [value.base_data if isinstance(value, cl_array.Array) else value for value in launch.values]
    try:
        programs.enqueue(queue, source, kernel.name, values, launch.grid, launch.local_size)
    except cl.Error as problem:
        raise failure(bound.operator, kernel, 1, str(problem), threw=False) from None
