"""What all kinds of kernel share: the device and dtypes that they accept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.dtypes import DType
from ..core.spec import Spec


@dataclass(frozen=True)
class Accepts:
    """The device and dtypes a kernel takes. ``dtypes`` None means all of them."""

    device: str = "cpu"
    dtypes: tuple[DType, ...] | None = None

    def refuse(self, inputs: tuple[Any, ...]) -> str | None:
        """Return why these inputs are refused, or None."""
        if self.dtypes is None:
            return None
        for spec in flatten(inputs):
            if spec is not None and spec.dtype not in self.dtypes:
                return f"takes {', '.join(map(str, self.dtypes))}, not {spec.dtype}"
        return None


def flatten(arguments: Sequence[Any]) -> Iterator[Spec | None]:
    """Yield the specs among arguments, lists of them opened, absent ones as None."""
    for argument in arguments:
        if isinstance(argument, tuple):
            yield from flatten(argument)
        elif argument is None or isinstance(argument, Spec):
            yield argument
