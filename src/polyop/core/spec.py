"""``Spec``: the shape, dtype and device of a tensor, without its data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .dtypes import DType, dtype
from .errors import ArgumentTypeError
from .limits import shown


@dataclass(frozen=True, slots=True)
class Spec:
    """Shape, dtype and device of a tensor.

    ``shape`` holds ints, or a framework's symbolic integers while it traces. ``device`` is the type of the
    device without an index (``"cpu"``, ``"cuda"``).

    >>> from polyop.core.dtypes import dtype
    >>> str(Spec((2, 3), dtype("float32")))
    'float32[2, 3]'
    """

    shape: tuple[Any, ...]
    dtype: DType
    device: str = "cpu"

    def __str__(self) -> str:
        """Return ``dtype[shape]``, followed by the device if it is not the CPU."""
        text = f"{self.dtype}[{', '.join(map(str, self.shape))}]"
        return text if self.device == "cpu" else f"{text} on {self.device}"

    def __post_init__(self) -> None:
        """Convert any spelling of a dtype, and a list as shape; raises ``ArgumentTypeError``."""
        if type(self.dtype) is not DType:
            object.__setattr__(self, "dtype", dtype(self.dtype))
        if type(self.shape) is not tuple:
            if not isinstance(self.shape, (list, tuple)):
                raise ArgumentTypeError("Spec", "the shape must be a tuple of sizes", shown(self.shape))
            object.__setattr__(self, "shape", tuple(self.shape))

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def numel(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Size of the dense data in bytes."""
        return self.numel * self.dtype.itemsize


def are_numbers(arguments: Sequence[Any]) -> bool:
    """Whether no size of a tensor among the arguments of a call is a tracer's symbol."""
    each = [x for a in arguments for x in (a if isinstance(a, (list, tuple)) else (a,))]
    return all(type(size) is int for spec in each if isinstance(spec, Spec) for size in spec.shape)
