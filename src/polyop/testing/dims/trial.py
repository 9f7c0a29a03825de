"""One trial of one claim: the operator on the whole and on slices, and whether both agree."""

from __future__ import annotations

import functools
import itertools
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from ...core.dims.dims import Dims
from ...core.dims.entry import Entry
from ...core.errors import InferError
from ..case import Array, Case, one_line
from ..difference import wide
from .join import (
    COMBINE,
    MisfitError,
    Piece,
    Share,
    SliceRefusedError,
    UntriedError,
    joined,
    pieces,
    side_by_side,
    without_halo,
)
from .slices import Dimension, cut, result_entries, sizes_of

Result = TypeVar("Result")
MAX_TEXT = 240
"""Characters of an array in a report."""


@dataclass(frozen=True)
class Trial:
    """A claim of ``dims`` about a dimension, a case, and the bounds of the slices: (0, 1, 3)."""

    dims: Dims
    keyword: str
    dimension: Dimension
    case: Case
    bounds: tuple[int, ...]

    def difference(self) -> str | None:
        """Return how the results of slices differ from the whole's, None if they agree.

        Raises ``UntriedError`` with the reason if the operator refuses these sizes, if no element of the
        results is finite, or if all are 0: sums and slices of zeros agree for any claim.
        """
        case = self.case
        whole = results_of(case)
        parts = pieces(self.bounds, self.halo())
        slices = self.slices(parts)
        for number, (entry, expected) in enumerate(zip(result_entries(case, self.dims), whole, strict=True)):
            results = [results[number] for results in slices]
            try:
                candidates = self.join(number, entry, results, parts)
            except MisfitError as problem:
                return f"output {number}: {problem}"
            for together in candidates:
                if not agree(case, expected, together, results):
                    label = f"output {number}"
                    return f"whole:  {label} = {shown(expected)}\nslices: {label} = {shown(together)}"
        if not any(np.isfinite(wide(result)).any() for result in whole):
            raise UntriedError("the results have no finite element")
        if not any(wide(result).any() for result in whole):
            raise UntriedError("all elements of the results are 0")
        return None

    def slices(self, parts: Sequence[Piece]) -> list[list[Array]]:
        """Return the results of each slice; raises ``SliceRefusedError``."""
        try:
            return [results_of(self.cut(part), self.text(part)) for part in parts]
        except UntriedError as problem:
            raise SliceRefusedError(str(problem)) from problem

    def cut(self, part: Piece) -> Case:
        """Return the case on one slice with its halo."""
        return cut(self.case, self.dims, self.dimension, part.first, part.last)

    def text(self, part: Piece) -> str:
        """Return what an error calls this slice."""
        return f"the slice {part.first}:{part.last} of {self.dimension.name}"

    def halo(self) -> tuple[int, int]:
        """Return how many neighbours a slice reads before and after it."""
        name = self.dimension.name
        if name not in self.dims.halo:
            return 0, 0
        try:
            return self.dims.halo_widths(name, sizes_of(self.case, self.dims), self.case.attributes())
        except InferError as problem:
            raise UntriedError(one_line(problem)) from problem

    def join(
        self, number: int, entry: Entry, results: Sequence[Array], parts: Sequence[Piece]
    ) -> Sequence[Array]:
        """Return arrays that must equal an output of the whole: that of the slices put together.

        If the output lacks the dimension and nothing combines it, each slice must give all of it. Raises
        ``MisfitError`` or ``UntriedError``.
        """
        axis = self.dimension.axis(entry)
        if axis is not None:
            return [joined(results, axis, self.shares(number, axis, results, parts))]
        combine = COMBINE.get(self.keyword)
        return results if combine is None else [combine(results)]

    def shares(self, number: int, axis: int, results: Sequence[Array], parts: Sequence[Piece]) -> list[Share]:
        """Return which elements of an output belong to each slice."""
        lengths = [result.shape[axis] for result in results]
        if self.dimension.name not in self.dims.halo:
            return side_by_side(lengths)
        output_size = functools.partial(self.output_size, number, axis)
        return without_halo(lengths, parts, self.bounds[-1], output_size)

    def output_size(self, number: int, axis: int, size: int) -> int:
        """Return the size of an axis of a result if the dimension has this size."""
        sizes = self.dimension.with_size(sizes_of(self.case, self.dims), size)
        if number >= len(self.dims.outputs):
            return size  # an argument that is written has the dimension itself
        try:
            return int(self.dims.output_shapes(sizes, self.case.attributes())[number][axis])
        except InferError as problem:
            raise UntriedError(one_line(problem)) from problem

    def fails(self) -> bool:
        """Whether the slices differ from the whole; a trial that cannot run shows nothing."""
        try:
            return self.difference() is not None
        except UntriedError:
            return False

    def __str__(self) -> str:
        """Return the sizes, the slices, the inputs and both results."""
        slices = ", ".join(f"{a}:{b}" for a, b in itertools.pairwise(self.bounds))
        inputs = [f"{name} = {shown(value)}" for name, value in self.case.tensors()]
        attributes = [f"{name} = {value!r}" for name, value in self.case.attributes().items()]
        sizes = ", ".join(f"{name}={size}" for name, size in sizes_of(self.case, self.dims).items())
        head = f"for {sizes}, the slices {slices} of {self.dimension.name} differ from the whole"
        return "\n".join([head, *inputs, *attributes, str(self.difference())])


def results_of(case: Case, what: str = "the whole") -> list[Array]:
    """Call the operator; raises ``UntriedError`` if it refuses the call."""
    return attempted(what, case, case.run)


def attempted(what: str, case: Case, call: Callable[[], Result]) -> Result:
    """Return the result of a call; raises ``UntriedError`` if the operator refuses it in any way."""
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            return call()
    except Exception as problem:
        raise UntriedError(f"{what} ({case}) is refused: {one_line(problem)}") from problem


def agree(case: Case, expected: Array, together: Array, results: Sequence[Array]) -> bool:
    """Whether two results are equal within the tolerance of the dtype, relative to the largest element."""
    if expected.shape != together.shape:
        return False
    rtol, atol = case.tolerance(expected.dtype)
    values = [abs(wide(x)) for x in (expected, *results) if x.size]
    scale = max((float(np.max(v, initial=0.0, where=np.isfinite(v))) for v in values), default=0.0)
    left, right = (x if x.dtype.kind in "biu" else wide(x) for x in (expected, together))
    return bool(np.allclose(left, right, rtol=rtol, atol=max(atol, rtol * scale), equal_nan=True))


def shown(value: Any) -> str:
    """Return an array as one line, shortened."""
    array = np.asarray(value)
    text = " ".join(np.array2string(array, precision=5, separator=", ", threshold=60).split())
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}... (shape {array.shape})"
