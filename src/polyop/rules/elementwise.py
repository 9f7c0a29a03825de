"""``batch="elementwise"`` of an operator whose shapes a function gives, and which may broadcast.

One call computes all samples. As NumPy aligns dimensions at the end, the samples go in front, and tensors of
lower rank get dimensions of size 1 behind them::

    (samples, 2, 3), (samples, 3)  ->  (samples, 2, 3), (samples, 1, 3)  =>  (samples, 2, 3)

Where all shapes are equal, ``batch="elementwise"`` is short for ``dims``, whose rule is ``DimsBatch``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from ..call.batching import BatchedCall
from ..call.foreign import written_tensors
from ..call.host import array_namespace, host_of, specs
from ..call.operator import Operator
from ..call.prepare import normalise
from ..call.rule import Rule
from ..core.errors import GradientError
from .batched_tensors import map_pairs, pairs, sample_shape, samples_first


class ElementwiseBatch(Rule):
    """One call for all samples, whose tensors broadcast as those of one sample do."""

    batching = "elementwise"

    def __call__(
        self, in_dims: Sequence[Any], inputs: Sequence[Any], call: BatchedCall
    ) -> tuple[list[Any], list[int]]:
        """Return (outputs, axes that count samples): the samples are in front.

        ``in_dims`` is like ``inputs``, with the axis of the samples or None for a tensor. Raises what the
        infer rule raises for the shapes of one sample, and ``GradientError`` for outputs of other shapes.
        """
        positions = call.operator.schema.tensor_positions
        rows = [pair for i in positions for pair in pairs(inputs[i], in_dims[i]) if pair[0] is not None]
        size = next(tensor.shape[axis] for tensor, axis in rows if axis is not None)
        rank = max(len(sample_shape(*row)) for row in rows)

        def padded(tensor: Any, axis: int | None) -> Any:
            first = samples_first(tensor, axis, size)
            shape = tuple(first.shape)[1:]
            ones = (1,) * (rank - len(shape))
            return array_namespace(first).reshape(first, (size, *ones, *shape)) if ones else first

        samples = _sample_outputs(call.operator, in_dims, inputs)  # first: it says which shapes do not fit
        arguments = list(inputs)
        for i in positions:
            arguments[i] = map_pairs(padded, inputs[i], in_dims[i])
        named = enumerate(zip(call(arguments), samples, strict=True))
        outputs = [_unpadded(call.operator, number, *row, size, rank) for number, row in named]
        return outputs, [0] * len(outputs)


def _sample_outputs(operator: Operator, in_dims: Sequence[Any], inputs: Sequence[Any]) -> tuple[Any, ...]:
    """Return the specs of the outputs of one sample, then those of the tensors that it writes."""
    positions = operator.schema.tensor_positions
    host = next(h for i in positions for tensor, _ in pairs(inputs[i], in_dims[i]) if (h := host_of(tensor)))
    arguments = list(specs(host, operator, inputs))
    for i in positions:
        arguments[i] = map_pairs(
            lambda spec, axis: dataclasses.replace(spec, shape=sample_shape(spec, axis)),
            arguments[i],
            in_dims[i],
        )
    normal = normalise(operator, tuple(arguments))
    return (*operator.infer(normal), *written_tensors(operator.schema, normal))


def _unpadded(operator: Operator, number: int, output: Any, sample: Any, size: Any, rank: int) -> Any:
    """Return an output with the shape (size, *sample's shape); ``GradientError`` for one of another shape."""
    expected = (size, *sample.shape)
    padded = (size, *(1,) * (rank - len(sample.shape)), *sample.shape)
    shape = tuple(output.shape)
    if shape not in (expected, padded):
        subject = f"{operator.name}: output {number}"
        rule = f'batch="elementwise" must give one call on {size} samples the shape {expected}'
        hint = "give batch= a rule, or leave it out: one call per sample"
        raise GradientError(subject, rule, shape, where=operator.origin, hint=hint)
    return output if shape == expected else array_namespace(output).reshape(output, expected)
