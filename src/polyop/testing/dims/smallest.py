"""The cases in which a claim is tried, by size; and the smallest case in which a false claim fails."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ...core.dims.dims import Dims
from ...core.dims.match import Sizes
from ...core.dtypes import dtype
from ...core.errors import InferError
from ..case import Array, Case
from .join import UntriedError
from .slices import ELLIPSIS, Dimension, resized, sizes_of
from .trial import Trial

SIZES = (2, 3, 4, 5)
"""The sizes of the dimension that is cut, before the sample's own."""
OTHER_SIZES = (1, 2, None)
"""The largest size of the other dimensions; None for the sample's own."""
MAX_SIZE_BESIDE_HALO = 512
"""The largest size that is drawn so that slices with their halo leave elements out."""
MAX_ELEMENTS = 64
"""How many sizes are tried one by one for a smaller case, and how many elements are simplified."""


def splits(size: int) -> Iterator[tuple[int, ...]]:
    """Yield bounds of slices: two slices, also of size 1; three uneven ones; and all of size 1.

    >>> list(splits(3))
    [(0, 1, 3), (0, 2, 3), (0, 1, 2, 3)]
    """
    if size < 2:
        return
    cuts = range(1, size) if size <= 6 else (1, size // 2, size - 1)
    bounds: list[tuple[int, ...]] = [(0, cut, size) for cut in cuts]
    if size > 3:
        bounds.append((0, 1, size // 2 + 1, size))
    if size <= 8:
        bounds.append(tuple(range(size + 1)))
    yield from dict.fromkeys(bounds)


def trials(case: Case, dims: Dims, keyword: str, name: str, kind: type[Trial] = Trial) -> Iterator[Trial]:
    """Yield the trials of a claim, the smallest first; the last ones are in the sample's own sizes.

    Raises ``UntriedError`` at the end if every slice with its halo reached an end of the dimension: a
    halo that is too narrow does not show then.
    """
    tried = set()
    needed, largest = _size_beside_halo(case, dims, name), 0
    for dimension, sizes in _sizes(case, dims, name, needed):
        key = (dimension, *sorted(sizes.items()))
        if key in tried or not _fits(case, dims, sizes):
            continue
        tried.add(key)
        variant = resized(case, dims, sizes)
        for bounds in splits(dimension.size(sizes)):
            largest = max(largest, dimension.size(sizes))
            yield kind(dims, keyword, dimension, variant, bounds)
    if 0 < largest < needed:
        raise UntriedError(f"the halo is so wide that {name} needs a size of {needed} or more in the sample")


def _size_beside_halo(case: Case, dims: Dims, name: str) -> int:
    """Return the smallest size in which a slice leaves out elements on each side of its halo, else 0."""
    if name not in dims.halo:
        return 0
    try:
        return int(max(dims.halo_widths(name, sizes_of(case, dims), case.attributes()))) + 2
    except InferError:
        return 0  # the trials report it


def _sizes(case: Case, dims: Dims, name: str, needed: int) -> Iterator[tuple[Dimension, Sizes]]:
    own = sizes_of(case, dims)
    if name not in own:
        raise UntriedError(f"the sample has no tensor that has {name}")
    shrinkable = resizable(case, dims, name)
    dimensions = [Dimension(name)]
    if name == ELLIPSIS:
        own = {**own, ELLIPSIS: own[ELLIPSIS] or (2,)}
        dimensions = [Dimension(name, position) for position in range(len(own[ELLIPSIS]))]
    for dimension in dimensions:
        for size in _sizes_to_cut(dimension.size(own), needed, grows=not has_integers(case)):
            for limit in OTHER_SIZES:
                others = {
                    key: limited(value, limit if key in shrinkable else None) for key, value in own.items()
                }
                yield dimension, dimension.with_size(others, size)


def _sizes_to_cut(own: int, needed: int, *, grows: bool) -> list[int]:
    """Return the sizes of the dimension that is cut, in their order; ``needed`` is one that its halo needs.

    Without ``grows``, they are at most the sample's: a larger tensor would repeat positions, and an operator
    may need different ones.
    """
    small = {*SIZES, *([needed] if 2 <= needed <= MAX_SIZE_BESIDE_HALO else [])}
    return sorted({size for size in small if grows or size <= max(own, 2)} | {max(own, 2)})


def has_integers(case: Case) -> bool:
    """Whether a tensor holds integers, which may be positions in a dimension."""
    return any(dtype(value.dtype).kind in ("int", "uint") for _, value in case.tensors())


def limited(size: Any, limit: int | None) -> Any:
    """Return a size, or the sizes of ``...``, that is at most the limit."""
    if limit is None:
        return size
    return tuple(min(s, limit) for s in size) if isinstance(size, tuple) else min(size, limit)


def resizable(case: Case, dims: Dims, name: str) -> set[str]:
    """Return the dimensions that may be smaller than the sample's when the one called ``name`` is cut.

    If there is a tensor of integers, only parallel dimensions and the one that is cut may be smaller.
    """
    names = set(dims.names) - set(case.attributes())
    if has_integers(case):
        names &= {*dims.parallel, name}
    return names


def _fits(case: Case, dims: Dims, sizes: Sizes) -> bool:
    """Whether the rule gives outputs of these sizes."""
    try:
        dims.output_shapes(sizes, case.attributes())
    except InferError:
        return False
    return True


def smallest(trial: Trial) -> Trial:
    """Return the smallest trial that fails like ``trial``: smaller sizes first, then simpler values."""
    return _simpler(_smaller(_shorter(trial)))


def _shorter(trial: Trial) -> Trial:
    """Return a trial with a smaller size of the dimension that is cut, above those of ``SIZES``."""
    sizes = sizes_of(trial.case, trial.dims)
    for size in itertools.islice(range(max(SIZES) + 1, trial.dimension.size(sizes)), MAX_ELEMENTS):
        other = trial.dimension.with_size(sizes, size)
        if not _fits(trial.case, trial.dims, other):
            continue
        shorter = replace(trial, case=resized(trial.case, trial.dims, other))
        for bounds in splits(size):
            candidate = replace(shorter, bounds=bounds)
            if candidate.fails():
                return candidate
    return trial


def _smaller(trial: Trial) -> Trial:
    """Return a trial with smaller sizes of the other dimensions."""
    cut = trial.dimension.name
    for name in sorted(resizable(trial.case, trial.dims, cut) - {cut, ELLIPSIS}):
        sizes = sizes_of(trial.case, trial.dims)
        if name not in sizes:
            continue  # only an absent tensor has it
        for size in itertools.islice(range(1, sizes[name]), MAX_ELEMENTS):
            other = {**sizes, name: size}
            if _fits(trial.case, trial.dims, other):
                candidate = replace(trial, case=resized(trial.case, trial.dims, other))
                if candidate.fails():
                    trial = candidate
                    break
    return trial


def _simpler(trial: Trial) -> Trial:
    """Return the trial with elements of floating dtypes replaced by simpler numbers if it still fails."""
    for name, value in trial.case.tensors():
        if not dtype(value.dtype).is_floating or value.size > MAX_ELEMENTS:
            continue
        for index in np.ndindex(value.shape):
            for simple in dict.fromkeys((0.0, 1.0, float(np.round(np.real(value[index]))))):
                changed = dict(trial.case.tensors())[name].copy()
                changed[index] = simple
                candidate = replace(trial, case=_with(trial.case, name, changed))
                if candidate.fails():
                    trial = candidate
                    break
    return trial


def _with(case: Case, name: str, array: Array) -> Case:
    return case.mapped(lambda other, value: array if other == name else value)
