"""The tensors of a batched call, and the axes of their samples; a list of tensors has a list of axes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..call.host import array_namespace


def pairs(value: Any, axes: Any) -> Iterator[tuple[Any, int | None]]:
    """Yield each tensor of an argument, and the axis of its samples or None."""
    if not isinstance(value, (tuple, list)):
        yield value, axes
        return
    yield from zip(value, axes or (None,) * len(value), strict=True)


def map_pairs(function: Callable[[Any, int | None], Any], value: Any, axes: Any) -> Any:
    """Return the result for each tensor of an argument and the axis of its samples; None if it is absent."""
    if isinstance(value, (tuple, list)):
        return tuple(map_pairs(function, *pair) for pair in pairs(value, axes))
    return None if value is None else function(value, axes)


def sample_shape(tensor: Any, axis: int | None) -> tuple[Any, ...]:
    """Return the shape of one sample."""
    shape = tuple(tensor.shape)
    return shape if axis is None else (*shape[:axis], *shape[axis + 1 :])


def samples_first(tensor: Any, axis: int | None, samples: Any) -> Any:
    """Return a tensor with its samples in front; one that has none is repeated for each of them."""
    if axis is None:
        return array_namespace(tensor).broadcast_to(tensor, (samples, *tensor.shape))
    return moved(tensor, axis, 0)


def moved(tensor: Any, source: int, destination: int) -> Any:
    """Return a tensor with one axis at another place, for ``vmap`` inside ``vmap`` too.

    The axes are tuples, because PyTorch's ``vmap`` has no rule for ``torch.moveaxis`` of two integers.
    """
    return array_namespace(tensor).moveaxis(tensor, (source,), (destination,))
