"""Compare and print sizes of dimensions, which are ints or a tracer's symbols."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


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
