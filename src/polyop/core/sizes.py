"""Compare and print sizes of dimensions, which are ints or a tracer's symbols."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class DataSize:
    """A size that only the kernel knows, from the data: ``name`` as ``dims=`` has it, at most ``most``.

    ``rule`` is for errors: the operator and its ``dims=``.
    """

    name: str
    most: Any
    rule: str = field(default="", compare=False)

    def __str__(self) -> str:
        """Return ``k<=5``."""
        return f"{self.name}<={size_text(self.most)}"


def data_sizes_of(shape: Sequence[Any], real: Sequence[int]) -> dict[str, int] | None:
    """Return the sizes that depend on data, by name, in a real shape; None if the shape does not fit.

    >>> data_sizes_of((DataSize("k", 5), 2), (3, 2)), data_sizes_of((DataSize("k", 5), 2), (6, 2))
    ({'k': 3}, None)
    """
    if len(shape) != len(real):
        return None
    sizes: dict[str, int] = {}
    for size, seen in zip(shape, real, strict=True):
        if not isinstance(size, DataSize):
            if size != seen:
                return None
        elif seen > size.most or sizes.setdefault(size.name, seen) != seen:
            return None
    return sizes


def real_shape(shape: Sequence[Any], real: Sequence[int]) -> tuple[Any, ...]:
    """Return the shape with the sizes of ``real`` in place of those that depend on data."""
    rows = zip(shape, real, strict=True)
    return tuple(seen if isinstance(size, DataSize) else size for size, seen in rows)


def same_size(left: Any, right: Any) -> bool:
    """Whether two sizes are equal; a tracer's symbols stay symbols.

    The rule that asks requires equal sizes, so PyTorch's tracer may note that they are equal: as a guard,
    or as a check when the program runs if the size depends on data. JAX says that symbols are not equal
    unless it can prove it.
    """
    if left is right:
        return True
    equal = left == right
    node = getattr(equal, "node", None)
    if node is None:
        return bool(equal)
    return bool(node.expect_true(__file__, 0))


def size_text(size: Any) -> str:
    """Return the text of a size for an error: of a symbol, the size that PyTorch's tracer saw."""
    hint = getattr(getattr(size, "node", None), "hint", None)
    return str(size if hint is None else hint)


def shape_text(shape: Sequence[Any]) -> str:
    """Return the text of a shape as Python writes a tuple."""
    return f"({', '.join(map(size_text, shape))}{',' if len(shape) == 1 else ''})"
