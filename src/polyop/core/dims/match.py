"""Bind the names of entries to the sizes of a call.

Sizes are ints, or a tracer's symbols. They are compared only through ``same``, whose default is
:func:`polyop.core.sizes.same_size`: PyTorch's tracer notes that two symbols are equal, which this rule
requires anyway, and JAX refuses symbols that it cannot prove equal. A caller that must add no such
condition passes a function that returns True for symbols; then the call is checked when it runs, with its
real sizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

from ..errors import InferError
from ..sizes import same_size, shape_text, size_text
from .entry import Entry, Name, Number, Same

Sizes = dict[str, Any]
"""Name -> its size in one call; ``"..."`` -> a tuple of sizes."""


class Definition(NamedTuple):
    """What errors of a call name: the operator, its rule, and where it is defined."""

    operator: str
    hint: str
    origin: object = None

    def fail(self, problem: str) -> NoReturn:
        """Raise ``InferError``."""
        raise InferError(self.operator, problem, where=self.origin, hint=self.hint)


class Matcher:
    """The tensors of one call, matched in order. ``sizes`` has what they give so far."""

    def __init__(self, definition: Definition, attributes: Mapping[str, Any], same: Same) -> None:
        self.definition, self.same = definition, same
        self.attributes = attributes
        self.sizes: Sizes = {}
        self.sources: dict[str, str] = {}
        """Name -> the tensor or attribute that gave its size."""

    def match_tensor(self, entry: Entry, shape: Any) -> None:
        """Match the shape of an argument; raises ``InferError`` for a wrong rank, or with both sizes.

        ``shape`` is None for an absent tensor, and a sequence of shapes for a list of tensors.
        """
        for label, item in _labelled(entry, shape):
            self._match_shape(entry, label, tuple(item))

    def _match_shape(self, entry: Entry, label: str, shape: tuple[Any, ...]) -> None:
        """Match the shape of one tensor: its rank, then its leading and its named dimensions."""
        count = len(entry.dimensions)
        if len(shape) < count or (len(shape) > count and not entry.ellipsis):
            at_least = "at least " if entry.ellipsis else ""
            rule = f"{label} has {_dimensions(len(shape))} {shape_text(shape)}"
            self.definition.fail(f"{rule}, but its entry '{str(entry).rstrip('*')}' has {at_least}{count}")
        leading = shape[: len(shape) - count]
        if entry.ellipsis:
            self._match_ellipsis(label, leading)
        for position, (dimension, size) in enumerate(
            zip(entry.dimensions, shape[len(leading) :], strict=True)
        ):
            if isinstance(dimension, Number) and not self.same(size, dimension.value):
                axis = len(leading) + position
                self.definition.fail(
                    f"dimension {axis} of {label} is {size_text(size)}, but must be {dimension}"
                )
            if isinstance(dimension, Name):
                self._match_name(dimension.name, label, size)

    def _match_ellipsis(self, label: str, sizes: tuple[Any, ...]) -> None:
        """Match the dimensions that ``...`` stands for."""
        if "..." not in self.sizes:
            self.sizes["..."], self.sources["..."] = sizes, label
        others = self.sizes["..."]
        if len(sizes) != len(others) or not all(map(self.same, sizes, others)):
            rule = f"dimensions ... are {shape_text(sizes)} in {label} and {shape_text(others)} in"
            self.definition.fail(f"{rule} {self.sources['...']}")

    def _match_name(self, name: str, label: str, size: Any) -> None:
        """Match the size of a named dimension; an attribute of that name takes precedence."""
        if name not in self.sizes:
            self.sizes[name], self.sources[name] = size, label
            if name not in self.attributes:
                return
            self.sizes[name], self.sources[name] = self.attributes[name], f"attribute {name}"
        if self.same(size, self.sizes[name]):
            return
        if self.sources[name] == label:
            self.definition.fail(
                f"dimension {name} is {size_text(self.sizes[name])} and {size_text(size)} in {label}"
            )
        other = f"{size_text(self.sizes[name])} in {self.sources[name]}"
        self.definition.fail(f"dimension {name} is {size_text(size)} in {label} and {other}")


def _labelled(entry: Entry, shape: Any) -> Iterator[tuple[str, Sequence[Any]]]:
    """Yield the label and the shape of each tensor that is not absent."""
    if shape is None:
        return
    if not entry.each:
        yield entry.label, shape
        return
    yield from ((f"{entry.label}[{i}]", item) for i, item in enumerate(shape) if item is not None)


def _dimensions(count: int) -> str:
    return "1 dimension" if count == 1 else f"{count} dimensions"


def match(
    definition: Definition,
    inputs: Sequence[Entry],
    shapes: Sequence[Any],
    attributes: Mapping[str, Any],
    same: Same = same_size,
) -> Sizes:
    """Return the size of each name in one call; raises ``InferError``."""
    matcher = Matcher(definition, attributes, same)
    for entry, shape in zip(inputs, shapes, strict=True):
        matcher.match_tensor(entry, shape)
    return matcher.sizes
