"""The sizes of a kernel's tensors for the shapes and attributes of a call, in Python's unbounded integers.

Compiled kernels compute sizes in 64 bits. A call whose sizes would overflow there is refused here, once for
each set of shapes and attributes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from ...core.dtypes import dtype
from ...core.errors import InferError
from ..ir.grammar import INT, Assign, Buffer, Const, Expr, For, Kernel, Op, Size, Var, statements, walk
from ..ir.uses import variables_of

MAX_PROVED = 2**42
"""Proofs hold for sizes, and attributes in arithmetic, up to this number."""
MAX_BYTES = 2**62
"""No tensor may have more bytes, and no size may be larger."""

_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "<<": lambda a, b: a << b,
    ">>": lambda a, b: a >> b,
    "ceil_div": lambda a, b: (a + b - 1) // b,
    "max": max,
    "min": min,
    "neg": lambda a: -a,
    "cast": lambda a: a,
    "pow": lambda a, b: a**b,
}


def is_large(kernel: Kernel, specs: Mapping[str, Any], attributes: Mapping[str, Any]) -> bool:
    """Whether sizes or attributes are so large that an index may overflow 64 bits, which proofs ignore."""
    if any(size > MAX_PROVED for spec in specs.values() if spec for size in spec.shape):
        return True
    wide = {n for n, to in kernel.attributes.items() if to == INT and abs(attributes[n]) > MAX_PROVED}
    if not wide:
        return False
    for node in statements(kernel.body):  # a loop or a scalar comes before what reads it
        if isinstance(node, For) and variables_of(node.lo, node.hi) & wide:
            wide.add(node.var)
        elif isinstance(node, Assign) and variables_of(node.value) & wide:
            wide.add(node.name)
    sums = (e for s in statements(kernel.body) for e in walk(s) if isinstance(e, Op) and e.type == INT)
    return any(isinstance(a, Var) and a.name in wide for e in sums if e.name in _ARITHMETIC for a in e.args)


def of_no_size(kernel: Kernel) -> frozenset[str]:
    """Return the attributes that no size of a tensor is computed with."""
    sizes = (size for b in kernel.buffers.values() for size in (*b.shape, *b.outer_shape))
    used = variables_of(*sizes)
    return frozenset(name for name in kernel.attributes if name not in used)


def check_sizes(kernel: Kernel, specs: Mapping[str, Any], attributes: Mapping[str, Any]) -> None:
    """Raise ``InferError`` for an output or a temporary that is too large for any memory."""
    for buffer in kernel.buffers.values():
        if buffer.role in ("output", "local") and bytes_of(kernel, buffer, specs, attributes) > MAX_BYTES:
            shape = [size_of(e, kernel, buffer, specs, attributes) for e in buffer.shape]
            rule = f"the tensor {buffer.name} must be of at most 2**62 bytes"
            raise InferError(kernel.name, rule, shape, where=kernel.where(buffer.line))


def bytes_of(kernel: Kernel, buffer: Buffer, specs: Mapping[str, Any], attributes: Mapping[str, Any]) -> int:
    """Return the bytes of a buffer for these specs and attributes."""
    sizes = [max(0, int(size_of(e, kernel, buffer, specs, attributes))) for e in buffer.shape]
    return math.prod(sizes) * dtype(buffer.dtype).itemsize


def size_of(
    expr: Expr, kernel: Kernel, buffer: Buffer, specs: Mapping[str, Any], attributes: Mapping[str, Any]
) -> Any:
    """Return the value of a size of ``buffer``: a number, or a symbol where the specs have symbols.

    Raises ``InferError`` where it, or an intermediate result, exceeds 62 bits or cannot be computed.
    """
    match expr:
        case Const(value=value):
            return value
        case Size(buffer=name, axis=axis):
            shape = specs[name].shape
            return 2 if kernel.buffers[name].pairs and axis == len(shape) else shape[axis]
        case Var(name=name):
            return attributes[name]
        case Op(name=name, args=args) if name in _ARITHMETIC:
            values = [size_of(a, kernel, buffer, specs, attributes) for a in args]
            try:
                size = _ARITHMETIC[name](*values)
            except (ArithmeticError, ValueError) as problem:  # a division by 0, a negative shift
                rule = f"the size of {buffer.name} cannot be computed: {problem}"
                raise InferError(kernel.name, rule, where=kernel.where(buffer.line)) from None
            if not isinstance(size, int) or abs(size) <= MAX_BYTES:  # a symbol has no value yet
                return size
            rule = f"the size of {buffer.name} must be computed within 62 bits"
            raise InferError(kernel.name, rule, size, where=kernel.where(buffer.line))
    rule = f"the size of {buffer.name} must be written in sizes and attributes with + - * // %"
    raise InferError(kernel.name, rule, where=kernel.where(buffer.line))
