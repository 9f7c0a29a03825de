"""The strategies of a call of a loop kernel, proved from its loops by :mod:`polyop.loops.dims`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from ..core.spec import Spec
from ..kernels.base import flatten
from ..kernels.loop.kernel import LoopKernel
from ..loops.analysis.affine import Linear, name_of
from ..loops.dims.derive import Slicing
from ..loops.dims.dimension import Dimension
from ..loops.ir.grammar import Kernel, Size
from ..loops.ir.uses import stored_by
from .placement import REPLICATE, Partial, Placement, Shard
from .rule import AxisStrategy, sizes_along


def strategies_of_loops(
    kernel: LoopKernel, inputs: Sequence[Any], outputs: Sequence[Spec], attributes: Mapping[str, Any]
) -> Iterator[AxisStrategy]:
    """Yield a strategy for each dimension of which something is proved, and for each set of linear inputs.

    ``inputs`` are the specs of the tensors, None for an absent one; ``attributes`` are the values by the
    author's names.
    """
    typed, rows = kernel.slicings(inputs, attributes)
    call = _Call(typed, list(flatten(tuple(inputs))), outputs, attributes)
    for row in rows:
        strategy = call.strategy(row)
        if strategy is not None:
            yield strategy
    proved = kernel.linear_of_call(inputs, attributes)
    for linear in proved:
        yield call.partial(linear.inputs, linear.outputs)
    names = typed.tensor_parameters
    by_construction = {*names[len(names) - kernel.linear_tensors :]}
    if by_construction & call.present.keys() and not any(row.inputs & by_construction for row in proved):
        yield call.partial(by_construction, call.outputs)


class _Call:
    """The tensors of one call by the names of the kernel's buffers."""

    def __init__(
        self, kernel: Kernel, inputs: Sequence[Any], outputs: Sequence[Spec], attributes: Mapping[str, Any]
    ) -> None:
        names = kernel.tensor_parameters
        self.present = {n: spec for n, spec in zip(names, inputs, strict=True) if spec is not None}
        fresh = [name for name in kernel.outputs if kernel.buffers[name].role == "output"]
        in_place = [name for name in self.present if name in kernel.outputs]
        self.outputs = dict(zip((*fresh, *in_place), outputs, strict=True))
        self.stored = stored_by(kernel.body)
        self.values: dict[str, int] = {n: v for n, v in attributes.items() if isinstance(v, int)}
        for name, spec in self.present.items():
            self.values |= {name_of(Size(name, axis)): size for axis, size in enumerate(spec.shape)}

    def strategy(self, row: Slicing) -> AxisStrategy | None:
        """Return the strategy of one proved dimension; None where it does not hold for the call's sizes."""
        dimension = row.dimension
        if row.kind == "whole" or dimension.size is None or name_of(dimension.size) not in self.values:
            return None
        size = self.values[name_of(dimension.size)]
        before, after = self._width(row.halo.before), self._width(row.halo.after)
        op = "" if row.kind in ("parallel", "halo") else row.kind
        strategy = AxisStrategy(
            dimension.name,
            tuple(_placement(dimension, name, REPLICATE) for name in self.present),
            tuple(
                _placement(dimension, name, Partial(op) if op and name in self.stored else REPLICATE)
                for name in self.outputs
            ),
            size,
            before,
            after,
            row.placed,
        )
        return strategy if self._fits(strategy, row) else None

    def partial(self, inputs: Collection[str], outputs: Collection[str]) -> AxisStrategy:
        """Return the strategy in which these inputs are partial, and so are these outputs."""

        def placements(names: Collection[str], partial: Collection[str]) -> tuple[Placement, ...]:
            return tuple(Partial("sum") if name in partial else REPLICATE for name in names)

        return AxisStrategy("", placements(self.present, inputs), placements(self.outputs, outputs))

    def _fits(self, strategy: AxisStrategy, row: Slicing) -> bool:
        """Whether sizes and attributes are those of the proof, and no width of a halo is negative.

        The kernel as it is runs on inputs of one size only. Outputs of different sizes would need slices of
        different lengths.
        """
        inputs = {*sizes_along(strategy.inputs, (*self.present.values(),))}
        outputs = {*sizes_along(strategy.outputs, (*self.outputs.values(),))}
        if min(strategy.before, strategy.after, *map(self._width, row.assumed)) < 0:
            return False
        if strategy.placed:
            return (
                self._has_proved_sizes(row, strategy.size)
                and max(inputs) == strategy.size
                and len(outputs) <= 1
            )
        if inputs != {strategy.size}:
            return False
        return len(outputs) <= 1 and (strategy.has_halo or outputs <= inputs)

    def _has_proved_sizes(self, row: Slicing, size: int) -> bool:
        """Whether the inputs are as long as the proof takes them to be, in a dimension of this size."""
        lengths = {
            name: self.present[name].shape[a] for name, a in row.dimension.axes if name in self.present
        }
        return all(length == size - self._width(row.fewer[name]) for name, length in lengths.items())

    def _width(self, form: Linear) -> int:
        """Return the value of a linear form, such as the width of a halo, in this call."""
        return sum(factor * (self.values[name] if name else 1) for name, factor in form.items())


def _placement(dimension: Dimension, name: str, other: Placement) -> Placement:
    axis = dimension.axis_of(name)
    return other if axis is None else Shard(axis)
