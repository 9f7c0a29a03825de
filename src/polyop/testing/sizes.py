"""The case in other sizes: larger ones, or of any shape."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..core.dims.dims import Dims
from ..core.dims.match import Sizes
from ..core.dtypes import dtype
from ..core.errors import InferError
from .case import Case
from .dims import slices
from .samples import PRIMES, draw


def resized(case: Case) -> Iterator[Case]:
    """Yield the case twice with larger primes as sizes; equal sizes stay equal, others differ.

    With ``dims=``, they are the sizes of its names, and multiples of the sample's if the rule refuses
    primes. Values are chosen from the sample's, so they stay within the operator's domain.
    """
    dims = case.operator.dims
    if dims is not None:
        yield from _resized_by_name(case, dims)
        return
    sizes = {size for _, value in case.tensors() for size in value.shape if size > 1}
    for skip in (0, 3) if sizes else ():
        table = _larger(sizes, skip)
        yield reshaped(case, lambda shape, table=table: tuple(table.get(s, s) for s in shape))


def _resized_by_name(case: Case, dims: Dims) -> Iterator[Case]:
    """Yield the case in larger sizes that fit its rule; none if the sample does not."""
    attributes = case.attributes()
    try:
        own = slices.sizes_of(case, dims)
    except InferError:
        return
    named = {name: size for name, size in own.items() if name not in attributes}
    flat = {size for value in named.values() for size in (value if isinstance(value, tuple) else (value,))}
    for skip in (0, 3):
        primes = _larger({size for size in flat if size > 1}, skip)
        for table in (primes, {size: (2 + skip) * size for size in flat}):
            sizes = own | {name: _looked_up(table, value) for name, value in named.items()}
            if sizes != own and _is_accepted(dims, sizes, attributes):
                yield slices.resized(case, dims, sizes)
                break


def _looked_up(table: dict[int, int], size: Any) -> Any:
    if isinstance(size, tuple):
        return tuple(table.get(s, s) for s in size)
    return table.get(size, size)


def _is_accepted(dims: Dims, sizes: Sizes, attributes: dict[str, Any]) -> bool:
    try:
        dims.output_shapes(sizes, attributes)
    except InferError:
        return False
    return True


def _larger(sizes: set[int], skip: int) -> dict[int, int]:
    """Return a prime for each size, larger than it and different from the others."""
    table: dict[int, int] = {}
    for size in sorted(sizes):
        free = [p for p in PRIMES if p > size and p not in table.values()]
        table[size] = free[min(skip, len(free) - 1)] if free else size + skip + 1
    return table


def reshaped(case: Case, shape_of: Callable[..., tuple[int, ...]]) -> Case:
    """Return the case with arrays of other shapes; values are chosen from the sample's."""
    rng = case.rng("reshaped")

    def change(_: str, value: Any) -> Any:
        shape = shape_of(value.shape)
        if value.size == 0:
            return draw(shape, dtype(value.dtype), rng)
        return rng.choice(value.reshape(-1), shape) if shape else value.reshape(-1)[0].reshape(()).copy()

    return case.mapped(change)
