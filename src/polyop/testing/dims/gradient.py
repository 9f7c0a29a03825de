"""Gradients of slices: those of tensors that are cut stand side by side, those of the others are added."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from .. import difference
from ..case import Array, Case
from ..frameworks import numpy as framework
from .join import UntriedError, pieces
from .parts import argument_of, cut, entries, result_entries
from .trial import Trial, agree, attempted, results_of, shown

KEYWORDS = ("parallel", "sum")
"""The claims that say how gradients of slices combine: those of max= and min= read the combined output."""


class GradientTrial(Trial):
    """The gradients of the operator on the whole and on slices, for the same output gradients."""

    def difference(self) -> str | None:
        """Return how the gradients of slices differ from the whole's, None if they agree."""
        if self.dimension.name in self.dims.halo:
            raise UntriedError("gradients of slices with a halo are not compared")
        case, name = self.case, self.dimension.name
        cotangents = _cotangents(case, results_of(case))
        whole = _pull("the whole", case, cotangents)
        slices = []
        offsets = [0] * len(cotangents)
        for part in pieces(self.bounds, (0, 0)):
            variant = cut(case, self.dims, self.dimension, part.first, part.last)
            what = f"the slice {part.first}:{part.last} of {name}"
            results = results_of(variant, what)
            slices.append(_pull(what, variant, self._shares(cotangents, results, offsets)))
        difference = self._compared(whole, slices)
        if difference is None:
            return None
        given = [f"gradient of output {k} = {shown(cotangent)}" for k, cotangent in enumerate(cotangents)]
        return "\n".join([*given, difference])

    def _shares(self, cotangents: list[Array], results: list[Array], offsets: list[int]) -> list[Array]:
        """Return the gradients of a slice's outputs, and move ``offsets`` to where the next slice begins."""
        shares = []
        for number, entry in enumerate(result_entries(self.case, self.dims)):
            share, axis = cotangents[number], self.dimension.axis(entry)
            if axis is not None:
                start, offsets[number] = offsets[number], offsets[number] + results[number].shape[axis]
                share = np.take(share, np.arange(start, offsets[number]), axis)
            shares.append(share)
        return shares

    def _compared(self, whole: dict[str, Any], slices: list[dict[str, Any]]) -> str | None:
        known = entries(self.case, self.dims)
        for name, expected in whole.items():
            results = [gradients[name] for gradients in slices]
            if expected is None or any(result is None for result in results):
                continue
            axis = self.dimension.axis(known[argument_of(name)])
            joined = sum(results[1:], results[0]) if axis is None else np.concatenate(results, axis)
            if not agree(self.case, expected, joined, results):
                return (
                    f"whole:  gradient of {name} = {shown(expected)}\n"
                    f"slices: gradient of {name} = {shown(joined)}"
                )
        return None


def _pull(what: str, case: Case, cotangents: list[Array]) -> dict[str, Array | None]:
    """Return the input gradients by name; raises ``UntriedError`` if they cannot be computed."""
    return attempted(
        f"the gradient of {what}", case, functools.partial(framework.gradients, case, cotangents)
    )


def _cotangents(case: Case, results: list[Array]) -> list[Array]:
    """Return a random gradient for each floating output, and zeros for the others."""
    rng = case.rng("dims gradient")
    return [
        (difference.direction(x, rng) if difference.is_floating(x) else np.zeros(x.shape)).astype(x.dtype)
        for x in results
    ]
