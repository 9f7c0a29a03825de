"""The oracle: an interpreter that runs a kernel statement by statement on NumPy scalars.

It defines the meaning of the IR: nothing is reordered and nothing is assumed. Every pass, and the compiled
code, is tested against it. Each expression becomes a Python function of the variables.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...core.dtypes import dtype
from ...core.errors import ArgumentValueError
from .grammar import (
    Assign,
    Buffer,
    Const,
    Expr,
    For,
    If,
    Kernel,
    Load,
    Op,
    OpenEnd,
    Size,
    Stmt,
    Store,
    Type,
    Var,
)
from .operators import OPERATORS
from .scalars import as_type, numpy_type
from .stops import stop_flags
from .types import kind

Values = dict[str, Any]
Evaluate = Callable[[Values], Any]


def interpret(
    kernel: Kernel, arrays: Sequence[Any], attributes: Mapping[str, Any] | None = None
) -> list[np.ndarray[Any, Any]]:
    """Return the outputs of a kernel, among them inputs that it writes in place.

    ``arrays`` are the tensors, in the order of the parameters; none of them is changed. A negative index
    counts from the end, as in NumPy. A buffer that is not ``zeroed`` starts as NaN or 101, so that a read
    before any write shows. Raises ``IndexError`` with the buffer, the index and the line for an index out of
    range, and ``ArgumentValueError`` for a call that is not as the kernel demands.
    """
    with np.errstate(all="ignore"):
        machine = _Machine(kernel, arrays, attributes or {})
        machine.block(kernel.body)(machine.values)
    return [_outer(kernel.buffers[name], machine.arrays[name]) for name in kernel.outputs]


def _outer(buffer: Buffer, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return what callers see of a buffer's array."""
    return array.view(dtype(buffer.outer_dtype).numpy)[..., 0] if buffer.pairs else array


class _Machine:
    """The buffers and variables of one run; its methods turn the IR into functions."""

    def __init__(self, kernel: Kernel, arrays: Sequence[Any], attributes: Mapping[str, Any]) -> None:
        self.kernel = kernel
        self.arrays: dict[str, np.ndarray[Any, Any]] = {}
        self.values: Values = {
            name: numpy_type(to)(attributes[name]) for name, to in kernel.attributes.items()
        }
        tensors = [name for name in kernel.parameters if name not in kernel.attributes]
        for name, array in zip(tensors, arrays, strict=True):
            self.arrays[name] = self.input(kernel.buffers[name], np.asarray(array))
        for demand in kernel.demands:
            if not self.expression(demand.condition)(self.values):
                raise ArgumentValueError(kernel.name, demand.text)
        for buffer in kernel.buffers.values():
            if buffer.name not in self.arrays:
                self.arrays[buffer.name] = self.fresh(buffer)

    def input(self, buffer: Buffer, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        rank = len(buffer.outer_shape)
        if array.ndim != rank or array.dtype != dtype(buffer.outer_dtype).numpy:
            rule = f"input {buffer.name} must be {buffer.outer_dtype} with {rank} dimensions"
            raise ArgumentValueError(self.kernel.name, rule, f"{array.dtype} with {array.ndim}")
        if buffer.pairs:
            array = np.array(array, order="C")[..., None].view(dtype(buffer.dtype).numpy)
        return array.copy() if buffer.role == "inplace" else array

    def fresh(self, buffer: Buffer) -> np.ndarray[Any, Any]:
        shape = tuple(int(self.expression(size)(self.values)) for size in buffer.shape)
        if any(size < 0 for size in shape):
            raise ArgumentValueError(
                f"{self.kernel.name}: {buffer.name}",
                "a size cannot be negative",
                shape,
                where=self.where(buffer),
            )
        array = np.zeros(shape, dtype(buffer.dtype).numpy)
        if not buffer.zeroed:
            array[...] = math.nan if kind(Type(buffer.dtype)) == "f" else 101
        return array

    def where(self, node: Any) -> str:
        text = self.kernel.source.get(node.line, "").strip()
        return self.kernel.where(node.line) + (f"\n    {text}" if text else "")

    def block(self, body: tuple[Stmt, ...]) -> Callable[[Values], None]:
        steps = [self.statement(s) for s in body]

        def run(values: Values) -> None:
            for step in steps:
                step(values)

        return run

    def statement(self, node: Stmt) -> Callable[[Values], None]:
        match node:
            case For():
                return self.loop(node)
            case If(condition=condition, body=body, orelse=orelse):
                test, then, otherwise = self.expression(condition), self.block(body), self.block(orelse)
                return lambda values: then(values) if test(values) else otherwise(values)
            case Store():
                return self.store(node)
            case Assign(name=name, value=value, op=op):
                evaluate, make = self.expression(value), numpy_type(node.type)
                if not op:
                    return lambda values: values.__setitem__(name, make(evaluate(values)))
                combine = OPERATORS[op].meaning
                return lambda values: values.__setitem__(name, make(combine(values[name], evaluate(values))))

    def loop(self, node: For) -> Callable[[Values], None]:
        lo, body = self.expression(node.lo), self.block(node.body)
        hi = None if isinstance(node.hi, OpenEnd) else self.expression(node.hi)
        flags = [self.expression(flag) for flag in stop_flags(node)]

        def run(values: Values) -> None:
            first = int(lo(values))
            for number in itertools.count(first) if hi is None else range(first, int(hi(values))):
                if any(flag(values) for flag in flags):
                    break
                values[node.var] = np.int64(number)
                body(values)

        return run

    def store(self, node: Store) -> Callable[[Values], None]:
        index_of, evaluate = self.index(node), self.expression(node.value)
        array = self.arrays[node.buffer]
        combine = OPERATORS[node.op].meaning if node.op else None

        def run(values: Values) -> None:
            value = evaluate(values)
            index = index_of(values)
            array[index] = value if combine is None else combine(array[index], value)

        return run

    def index(self, node: Load | Store) -> Callable[[Values], tuple[int, ...]]:
        parts, shape = [self.expression(i) for i in node.index], self.arrays[node.buffer].shape

        def evaluate(values: Values) -> tuple[int, ...]:
            index = tuple(int(part(values)) for part in parts)
            for i, size in zip(index, shape, strict=True):
                if not -size <= i < size:
                    raise IndexError(
                        f"{node.buffer}[{', '.join(map(str, index))}] is out of range: its shape is {shape}\n"
                        f"  at {self.where(node)}"
                    )
            return index

        return evaluate

    def expression(self, node: Expr) -> Evaluate:
        make = numpy_type(node.type)
        match node:
            case Const(value=value):
                constant = make(value)
                return lambda values: constant
            case Var(name=name):
                return lambda values: values[name]
            case Size(buffer=buffer, axis=axis):
                size = np.int64(self.arrays[buffer].shape[axis])
                return lambda values: size
            case Load():
                index_of, array = self.index(node), self.arrays[node.buffer]
                return lambda values: array[index_of(values)]
            case Op():
                return self.operator(node, make)
            case OpenEnd(name=name):
                raise AssertionError(f"the end of the while {name} has no value")

    def operator(self, node: Op, make: Callable[[Any], Any]) -> Evaluate:
        args = [self.expression(a) for a in node.args]
        match node.name, args:
            case "and", [one, other]:
                return lambda values: one(values) and other(values)
            case "or", [one, other]:
                return lambda values: one(values) or other(values)
            case "select", [test, one, other]:
                return lambda values: one(values) if test(values) else other(values)
            case "cast", [one]:
                target = dtype(node.type.dtype).numpy
                return lambda values: as_type(one(values), target)
        function = OPERATORS[node.name].meaning
        if len(args) == 1:
            (argument,) = args
            return lambda values: make(function(argument(values)))
        if len(args) > 2:
            return lambda values: make(function(*(a(values) for a in args)))
        left, right = args
        return lambda values: make(function(left(values), right(values)))
