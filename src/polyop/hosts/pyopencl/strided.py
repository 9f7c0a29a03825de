"""Copies between arrays of any strides, on the device."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyopencl as cl
import pyopencl.array as cl_array

from . import programs
from .order import between, ordered

_TYPES = {1: "uchar", 2: "ushort", 4: "uint", 8: "ulong"}
_TEXT = """
__kernel void copy(__global const uchar *from, long from_start, __global uchar *to, long to_start,
                   int rank, int words, __global const long *layout) {
  long rest = get_global_id(0);
  for (int axis = rank - 1; axis >= 0; --axis) {
    const long index = rest % layout[axis];
    rest /= layout[axis];
    from_start += index * layout[rank + axis];
    to_start += index * layout[2 * rank + axis];
  }
  for (int word = 0; word < words; ++word)
    ((__global WORD *)(to + to_start))[word] = ((__global const WORD *)(from + from_start))[word];
}
"""
"""``layout`` has the sizes, then the strides of both arrays in bytes. An element is ``words`` of a type."""


def is_dense(array: Any, *, from_start: bool = False) -> bool:
    """Whether the elements lie in order without gaps, and where a kernel can read them.

    With ``from_start`` the first element must be the first of the buffer.
    """
    if not array.size:
        return True
    start = array.offset if from_start else array.offset % array.dtype.itemsize
    return bool(array.flags.c_contiguous) and start == 0


def copy(queue: Any, source: Any, target: Any) -> None:
    """Put a copy of the elements of an array into another one of its shape and dtype into the queue."""
    if not source.size:
        return
    steps = (source.offset, target.offset, *source.strides, *target.strides)
    width = math.gcd(8, source.dtype.itemsize, *steps)
    layout = np.array([*source.shape, *source.strides, *target.strides, 0], np.int64)
    flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
    numbers = cl.Buffer(queue.context, flags, hostbuf=layout)
    source_text = programs.Source(_TEXT, (f"-DWORD={_TYPES[width]}",), "copies of polyop")
    rank, words = np.int32(len(source.shape)), np.int32(source.dtype.itemsize // width)
    memory = (source.base_data, np.int64(source.offset), target.base_data, np.int64(target.offset))
    between(queue)
    programs.enqueue(queue, source_text, "copy", (*memory, rank, words, numbers), (source.size,))
    between(queue)


def dense(queue: Any, array: Any) -> Any:
    """Return a dense array with the elements, which the queue copies."""
    result = cl_array.empty(queue, array.shape, array.dtype)
    copy(queue, array, result)
    return result


def ordered_dense(queue: Any, array: Any) -> Any:
    """Return a dense array as :func:`dense` does, in order with the commands around it."""
    written: list[Any] = []
    with ordered(queue, [array], written):
        written.append(dense(queue, array))
    return written[0]


def for_function(queue: Any, value: Any) -> Any:
    """Return what a Python function gets for a value: an array that is not dense is copied.

    The copy is on the queue of the array, or on ``queue`` if it has none. PyOpenCL's own functions go through
    the memory of arrays side by side. Of arrays in C order and in Fortran's order they would combine elements
    of different places, and they refuse arrays with gaps.
    """
    if not isinstance(value, cl_array.Array) or is_dense(value):
        return value
    return ordered_dense(value.queue or queue, value)
