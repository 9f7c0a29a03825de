"""What a task runs: the operator on the blocks of its arrays. It is pickled by the operator's definition."""

from __future__ import annotations

import dataclasses
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...call.foreign import content_of, unflatten
from ...call.host import find_host
from ...call.operator import Operator
from ...call.pickled import reference
from ...sharding.local_call import local_call
from ...sharding.ranges import Slice, output_offset
from ...sharding.rule import AxisStrategy

Definition = tuple[Callable[..., Any], tuple[str, str, str]]
"""What finds the operator in any process, and its arguments: name, digest, module."""


@dataclasses.dataclass(frozen=True)
class Result:
    """What is kept of one output.

    ``trims`` has pairs: an axis, and the number of its slice. ``partial`` counts the reductions.
    """

    trims: tuple[tuple[int, int], ...]
    partial: int

    def of(self, output: Any, slices: Sequence[Slice]) -> Any:
        """Return the elements that belong to the block, behind one axis for each reduction."""
        index = [slice(None)] * output.ndim
        for axis, number in self.trims:
            begin = output_offset(slices[number])
            index[axis] = slice(begin, begin + slices[number].output.size)
        kept = output[tuple(index)]
        return kept.reshape((1,) * self.partial + kept.shape)


class Block:
    """The operator on blocks, which come in the order of its tensors, followed by slices where it needs them.

    In another process the operator is looked up when the task runs, so a scheduler needs no operator.
    """

    def __init__(
        self,
        bound: Any,
        values: tuple[Any, ...],
        results: tuple[Result, ...],
        strategies: tuple[AxisStrategy, ...],
    ) -> None:
        """Keep the operator; ``values`` are those of ``call.foreign.unflatten``, ``strategies`` of slices."""
        self.bound, self.values, self.results, self.strategies = bound, values, results, strategies

    def __call__(self, *blocks: Any) -> Any:
        """Return the output, or a tuple of several; raises ``HostError`` where there is no such operator."""
        bound = _restored(self.bound) if isinstance(self.bound, tuple) else self.bound
        opened = [*map(_opened, blocks)]
        count = len(opened) - len(self.strategies)
        slices = opened[count:]
        arguments = unflatten(bound.schema, self.values, opened[:count])
        part, values = local_call(bound, self.strategies, slices, arguments)
        outputs = find_host(part.operator, values).call(part, values)
        kept = tuple(result.of(output, slices) for result, output in zip(self.results, outputs, strict=True))
        return kept[0] if len(kept) == 1 else kept

    def __reduce__(self) -> Any:
        """Pickle with the definition in place of the operator."""
        bound = self.bound if isinstance(self.bound, tuple) else _definition(self.bound)
        return Block, (bound, self.values, self.results, self.strategies)

    def __dask_tokenize__(self) -> Any:
        """Return what identifies the task: the digest of the operator stands for its code."""
        known = not isinstance(self.bound, tuple)
        identity = (self.bound.name, content_of(self.bound.operator)) if known else self.bound[1]
        return "polyop", *identity, self.values, self.results, tuple(map(str, self.strategies))


_definitions: weakref.WeakKeyDictionary[Operator, Definition] = weakref.WeakKeyDictionary()
_operators: weakref.WeakValueDictionary[Definition, Any] = weakref.WeakValueDictionary()


def _definition(bound: Any) -> Definition:
    """Return what finds the operator in another process, computed once: the digest reads whole libraries."""
    definition = _definitions.get(bound.operator)
    if definition is None:
        definition = _definitions[bound.operator] = reference(bound)
    return definition


def _restored(definition: Definition) -> Any:
    """Return the operator of this process; raises ``HostError`` if there is none with this digest."""
    bound = _operators.get(definition)
    if bound is None:
        restore, arguments = definition
        bound = _operators[definition] = restore(*arguments)
    return bound


def _opened(block: Any) -> Any:
    """Return a block without the lists that dask puts around it: one for each axis that is one chunk."""
    while isinstance(block, list):
        (block,) = block
    return block


@dataclasses.dataclass(frozen=True)
class Pick:
    """One of several outputs of a block."""

    number: int

    def __call__(self, outputs: tuple[Any, ...]) -> Any:
        """Return that output."""
        return outputs[self.number]


def unchanged(x: Any, axis: Any, keepdims: bool) -> Any:
    """Return the partial result of a block, as the leaves of the tree have it."""
    del axis, keepdims
    return x


def first(x: Any, axis: Any, keepdims: bool) -> Any:
    """Return one of several equal results."""
    part = x[tuple(slice(1) if a in axis else slice(None) for a in range(x.ndim))]
    return part if keepdims else np.squeeze(part, axis=tuple(axis))


def add(x: Any, axis: Any, keepdims: bool) -> Any:
    """Return the sum of partial results, in their dtype."""
    return x.sum(axis=tuple(axis), keepdims=keepdims, dtype=x.dtype)


def largest(x: Any, axis: Any, keepdims: bool) -> Any:
    """Return the largest of partial results."""
    return x.max(axis=tuple(axis), keepdims=keepdims)


def smallest(x: Any, axis: Any, keepdims: bool) -> Any:
    """Return the smallest of partial results."""
    return x.min(axis=tuple(axis), keepdims=keepdims)


COMBINE = {"": first, "sum": add, "max": largest, "min": smallest}
"""How partial results are combined, by the word of a placement; empty for results that are equal."""
