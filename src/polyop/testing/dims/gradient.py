"""Gradients of slices: each slice gets the gradients of the outputs that belong to it, and all are added.

::

    whole     dx = f'(x, dy)
    slices    dx[0:3] += f'(x[0:3], [dy0 dy1 0])       n -> n with the halo (1, 1): a neighbour's elements
              dx[1:4] += f'(x[1:4], [0 dy2 dy3])       of the output have the gradient 0
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..case import Array, Case
from ..difference import random_cotangents
from ..frameworks import numpy as framework
from .join import MisfitError, Piece, UntriedError, pieces
from .slices import argument_of, entries, result_entries
from .trial import Trial, agree, attempted, results_of, shown

KEYWORDS = ("parallel", "sum", "halo")
"""The claims that say how gradients of slices combine: those of max= and min= read the combined output."""


class GradientTrial(Trial):
    """The gradients of the operator on the whole and on slices, for the same output gradients."""

    def difference(self) -> str | None:
        """Return how the gradients of slices differ from the whole's, None if they agree."""
        case, parts = self.case, pieces(self.bounds, self.halo())
        cotangents = random_cotangents(results_of(case), case.rng("dims gradient"))
        whole = _pull("the whole", case, cotangents)
        slices = self.slices(parts)
        try:
            columns = list(self._cotangents_of_slices(cotangents, slices, parts))
        except MisfitError as problem:
            raise UntriedError(str(problem)) from problem
        gradients = [
            _pull(self.text(part), self.cut(part), list(column))
            for part, column in zip(parts, zip(*columns, strict=True), strict=True)
        ]
        difference = self._compared(whole, gradients, parts)
        if difference is None:
            return None
        outputs = [f"gradient of output {k} = {shown(cotangent)}" for k, cotangent in enumerate(cotangents)]
        return "\n".join([*outputs, difference])

    def _cotangents_of_slices(
        self, cotangents: list[Array], slices: list[list[Array]], parts: list[Piece]
    ) -> Iterator[list[Array]]:
        """Yield the gradients of one output in each slice: zeros where an element belongs to another."""
        for number, entry in enumerate(result_entries(self.case, self.dims)):
            results = [outputs[number] for outputs in slices]
            cotangent, axis = cotangents[number], self.dimension.axis(entry)
            if axis is None:  # each slice has an addend of the output, or all slices have the same output
                others = cotangent if self.keyword == "sum" else np.zeros_like(cotangent)
                yield [cotangent] + [others] * (len(parts) - 1)
                continue
            column = []
            for result, share in zip(results, self.shares(number, axis, results, parts), strict=True):
                column.append(np.zeros_like(result))
                before = (slice(None),) * (axis % result.ndim)
                source, target = (*before, slice(share.start, share.stop)), (*before, share.positions())
                column[-1][target] = cotangent[source]
            yield column

    def _compared(
        self, whole: dict[str, Any], slices: Sequence[dict[str, Any]], parts: Sequence[Piece]
    ) -> str | None:
        known, count = entries(self.case, self.dims), 0
        for name, expected in whole.items():
            results = [gradients[name] for gradients in slices]
            if expected is None or any(result is None for result in results):
                continue
            count += 1
            total = self._total(expected, self.dimension.axis(known[argument_of(name)]), results, parts)
            if not agree(self.case, expected, total, results):
                return (
                    f"whole:  gradient of {name} = {shown(expected)}\n"
                    f"slices: gradient of {name} = {shown(total)}"
                )
        if not count:
            raise UntriedError("no tensor has a gradient")
        return None

    def _total(
        self, expected: Array, axis: int | None, results: Sequence[Array], parts: Sequence[Piece]
    ) -> Array:
        """Return the sum of the gradients of slices, each where the slice is in the tensor."""
        total = np.zeros_like(expected)
        for part, result in zip(parts, results, strict=True):
            if axis is None:
                total += result
            else:
                total[(slice(None),) * (axis % total.ndim) + (slice(part.first, part.last),)] += result
        return total


def _pull(what: str, case: Case, cotangents: list[Array]) -> dict[str, Array | None]:
    """Return the input gradients by name; raises ``UntriedError`` if they cannot be computed."""
    return attempted(
        f"the gradient of {what}", case, functools.partial(framework.gradients, case, cotangents)
    )
