"""Run the steps of a dry run again, as functions of a framework, which can differentiate them.

A dry run executes a module's function without data. Its steps are tuples (kind, name, arguments, outputs), in
which tensors are numbers:

    empty    a new tensor: dtype and shape           fill    a tensor with known data
    launch   an operator of a provider               copy    a copy of a tensor
    kernel   a kernel of the module: not repeatable  view    another tensor over the same memory
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...core import late
from ...core.dtypes import DTYPES


class UnknownValueError(Exception):
    """A value that cannot be computed again; the text says why."""


class Replay:
    """The values of numbered tensors after the steps of a dry run, in the array namespace ``xp``.

    ``values`` holds the tensors that are available from the start. Those in ``fixed`` that only one step
    writes keep their value. ``unknown`` gives the reason why another tensor is not available. What a kernel
    of the module writes is unknown, and so is everything computed from it.
    """

    def __init__(
        self,
        xp: Any,
        values: dict[int, Any],
        steps: Sequence[Any],
        fixed: Sequence[int] = (),
        unknown: dict[int, str] | None = None,
    ) -> None:
        """Run the steps."""
        self.xp, self.values = xp, dict(values)
        self.fixed = {number for number in fixed if _writes(steps, number) == 1}
        self.unknown = dict(unknown or {})
        self._bases: dict[int, int] = {}
        self._empty: dict[int, Any] = {}
        for kind, name, arguments, outputs in steps:
            self._run(kind, name, arguments, outputs)

    def value(self, number: int) -> Any:
        """Return the value of a tensor. Raises ``UnknownValueError``."""
        if number in self.unknown:
            raise UnknownValueError(self.unknown[number])
        if number not in self.values:
            raise UnknownValueError("it reads a tensor that nothing has written")
        return self.values[number]

    def _run(self, kind: str, name: str, arguments: tuple[Any, ...], outputs: Sequence[int]) -> None:
        if kind == "empty":
            self._empty[outputs[0]] = arguments
            return
        try:
            results: list[Any] = self._results(kind, name, arguments, outputs)
        except UnknownValueError as problem:
            results = [problem] * len(outputs)
        for number, value in zip(outputs, results, strict=True):
            if kind == "view":
                source = arguments[0][1]
                self._bases[number] = self._bases.get(source, source)
            else:
                self._spoil(number)
            if number in self.fixed:
                continue
            self.unknown.pop(number, None)
            self.values.pop(number, None)
            if isinstance(value, UnknownValueError):
                self.unknown[number] = str(value)
            else:
                self.values[number] = value

    def _spoil(self, written: int) -> None:
        """Make unknown what shares memory with a tensor that is written: its base and all views of it."""
        base = self._bases.get(written, written)
        for number in {base, *(view for view, of in self._bases.items() if of == base)} - {written}:
            if number not in self.fixed:
                self.unknown[number] = "it writes into a view of a tensor"

    def _results(self, kind: str, name: str, arguments: tuple[Any, ...], outputs: Sequence[int]) -> list[Any]:
        if kind == "kernel":
            raise UnknownValueError(f"it runs {name}, a kernel of its own")
        if kind == "fill":
            row, data = arguments
            values = np.frombuffer(data, DTYPES[row].numpy).reshape(self._empty[outputs[0]][1])
            return [self.xp.asarray(values.copy())]
        if kind == "launch":
            self._supply(outputs)
        inputs = tuple(map(self._filled, arguments))
        if kind == "copy":
            return [inputs[0]]
        if kind == "view":
            if name != "reshape":
                raise UnknownValueError("it takes a part of a tensor as a view")
            return [self.xp.reshape(inputs[0], inputs[1])]
        return list(_flat(late.load("provider", "aclnn").evaluate(name, inputs, self.xp)))

    def _supply(self, outputs: Sequence[int]) -> None:
        """Set outputs that nothing has written to zeros: a launch reads their shape and dtype.

        What is unknown stays so: the launch may read it too.
        """
        for number in outputs:
            if number in self._empty and number not in self.values and number not in self.unknown:
                row, shape = self._empty[number]
                kind = getattr(self.xp, DTYPES[row].name, DTYPES[row].numpy)
                self.values[number] = self.xp.zeros(shape, dtype=kind)

    def _filled(self, value: Any) -> Any:
        """Return an argument of a step with each tensor's number replaced by its value."""
        if isinstance(value, tuple):
            if len(value) == 2 and value[0] == "tensor":
                return self.value(value[1])
            return tuple(map(self._filled, value))
        return value


def depends(steps: Sequence[Any], numbers: Sequence[int]) -> set[int]:
    """Return the numbers of these tensors and of all that are computed from them."""
    dependent, bases = set(numbers), dict[int, int]()
    for kind, _, arguments, outputs in steps:
        if kind == "view":
            source = arguments[0][1]
            bases[outputs[0]] = bases.get(source, source)
        if dependent.intersection(_numbers(arguments)):
            memory = {bases.get(number, number) for number in outputs}
            dependent.update(outputs, memory, (view for view, base in bases.items() if base in memory))
    return dependent


def _writes(steps: Sequence[Any], number: int) -> int:
    return sum(number in outputs for kind, _, _, outputs in steps if kind != "empty")


def _numbers(value: Any) -> Iterator[int]:
    if isinstance(value, tuple):
        if len(value) == 2 and value[0] == "tensor":
            yield value[1]
        else:
            for item in value:
                yield from _numbers(item)


def _flat(values: Any) -> Iterator[Any]:
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _flat(value)
        else:
            yield value
