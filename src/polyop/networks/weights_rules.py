"""Rules that map a layer's tensors to those of another framework: the rows of the tables of layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ..core.errors import UnsupportedError

Array: TypeAlias = npt.NDArray[Any]
Tensors: TypeAlias = Mapping[str, Array]
Change: TypeAlias = Callable[[Any, Array], Array]
"""From a layer and one of its tensors to the tensor in the other layout."""
Convert: TypeAlias = Callable[[Any, Tensors], Tensors]
"""From a layer and its tensors by name to those of the other framework by name."""


class Rule(NamedTuple):
    """How one type of layer is carried.

    ``whole``: with the tensors of the layers in it. ``fills``: a layer without tensors gets some, too.
    """

    convert: Convert
    whole: bool = False
    fills: bool = False


def as_they_are(layer: Any, tensors: Tensors) -> Tensors:
    """Return the tensors of a layer with their own names and layouts: a rule for layers of your own.

    >>> as_they_are(None, {"log_a": np.zeros(3)})
    {'log_a': array([0., 0., 0.])}
    """
    return tensors


def named(**row: str | tuple[str, Change]) -> Rule:
    """Return the rule that gives each tensor another name, and where it has one another layout."""

    def convert(layer: Any, tensors: Tensors) -> Tensors:
        found = {}
        for name, value in tensors.items():
            to, change = _pair(name, row)
            found[to] = change(layer, value)
        return found

    return Rule(convert)


def _pair(name: str, row: Mapping[str, str | tuple[str, Change]]) -> tuple[str, Change]:
    if name not in row:
        names = ", ".join(row)
        raise UnsupportedError(name, f"the rule of this type of layer has no such tensor, only {names}")
    to = row[name]
    return (to, lambda layer, value: value) if isinstance(to, str) else to


def only(*known: str, tensors: Tensors) -> None:
    """Raise ``UnsupportedError`` for a tensor that a rule does not know."""
    for name in tensors:
        if name not in known:
            raise UnsupportedError(name, "the rule of this type of layer has no such tensor")


def transposed(layer: Any, value: Array) -> Array:
    """Return a matrix (out, in) as (in, out)."""
    return np.transpose(value)


def with_zeros(value: Array | None, count: int, like: Array) -> Array:
    """Return a bias, or zeros where the layer has none."""
    return np.zeros(count, like.dtype) if value is None else value
