"""``sharding_rule``: in which ways one call can be split over devices.

What the author claims with ``dims=`` comes first. A loop kernel also has what is proved from its loops, for
dimensions of which nothing is claimed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..call.foreign import flatten, written_tensors
from ..call.operator import Operator
from ..call.padded import refuse_data_sizes
from ..core.dims.entry import Entry
from ..core.spec import Spec
from ..kernels.base import LoopKernelBase
from ..rules.elementwise import ElementwiseBatch
from ..rules.loops.parts import all_attributes
from .from_dims import elementwise_strategies, strategies_of_dims
from .placement import Shard
from .rule import AxisStrategy, ShardingRule, replicated


def sharding_rule(
    operator: Operator, arguments: Sequence[Any], outputs: Sequence[Spec] | None = None
) -> ShardingRule:
    """Return the strategies of a call of ``operator``.

    ``arguments`` are those of the schema, with specs for tensors, as :func:`polyop.call.host.specs` returns.
    Their shapes are those of the whole tensors. ``outputs`` are the specs of the new outputs; without them
    they are inferred. Raises what the infer rule raises.

    >>> from polyop import operator
    >>> from polyop.core.dtypes import dtype
    >>> claims = {"dims": "m n -> n", "parallel": "n", "sum": "m"}
    >>> total = operator("docs::total(Tensor x) -> Tensor", lambda x: x.sum(0), **claims)
    >>> print(sharding_rule(total.operator, (Spec((4, 6), dtype("float32")),)))
    none: R -> R
    m: S(0) -> P(sum)
    n: S(1) -> S(0)
    """
    refuse_data_sizes(operator, "a call that is split over devices needs sizes before the kernel runs")
    inputs = tuple(flatten(operator.schema, arguments))
    fresh = operator.infer(arguments) if outputs is None else outputs
    results = (*fresh, *written_tensors(operator.schema, arguments))
    strategies = [replicated(len(inputs), len(results))]
    for strategy in _strategies(operator, arguments, inputs, results):
        if strategy.placed and operator.placed is None:  # it writes in place
            continue
        if strategy.name and any(
            strategy.name == other.name or _same_split(strategy, other) for other in strategies
        ):
            continue  # proved, and claimed too; or a loop has the name of another dimension that is claimed
        strategies.append(strategy)
    return ShardingRule(operator.name, inputs, results, tuple(strategies))


def is_claimed(operator: Operator) -> bool:
    """Whether anything is claimed or can be proved of the operator's dimensions."""
    return operator.dims is not None or is_elementwise(operator) or _loops(operator) is not None


def is_splittable(operator: Operator) -> bool:
    """Whether a call may be split along some dimension: ``dims=`` alone, without a claim, allows none."""
    dims = operator.dims
    if dims is not None and len(dims.whole) < len(dims.names):
        return True
    return (dims is None and is_elementwise(operator)) or _loops(operator) is not None


def is_elementwise(operator: Operator) -> bool:
    """Whether the operator has ``batch="elementwise"``; its operands may broadcast."""
    return isinstance(operator.batch, ElementwiseBatch)


def _strategies(
    operator: Operator, arguments: Sequence[Any], inputs: Sequence[Spec], outputs: Sequence[Spec]
) -> Iterator[AxisStrategy]:
    schema = operator.schema
    attributes = {argument.name: arguments[i] for i, argument in schema.attributes()}
    if operator.dims is not None:
        entries = list(_entries(operator, arguments))
        yield from strategies_of_dims(operator.dims, entries, inputs, outputs, attributes)
    elif is_elementwise(operator):
        yield from elementwise_strategies(inputs, outputs)
    kernel: Any = _loops(operator)
    if kernel is not None:
        from .from_loops import strategies_of_loops  # it imports the compiler

        tensors = [arguments[i] for i in schema.tensor_positions]
        yield from strategies_of_loops(kernel, tensors, outputs, all_attributes(operator, attributes))


def _loops(operator: Operator) -> LoopKernelBase | None:
    return next((kernel for kernel in operator.kernels if isinstance(kernel, LoopKernelBase)), None)


def _entries(operator: Operator, arguments: Sequence[Any]) -> Iterator[Entry]:
    """Yield the entry of each flat input of a call."""
    assert operator.dims is not None
    for entry, position in zip(operator.dims.inputs, operator.schema.tensor_positions, strict=True):
        value = arguments[position]
        items = value if isinstance(value, (tuple, list)) else (value,)
        yield from (entry for item in items if item is not None)


def _same_split(one: AxisStrategy, other: AxisStrategy) -> bool:
    """Whether two strategies split an input along the same axis."""
    rows = zip((*one.inputs, *one.outputs), (*other.inputs, *other.outputs), strict=True)
    return any(isinstance(a, Shard) and a == b for a, b in rows)
