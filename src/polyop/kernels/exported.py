"""Kernels in a library of ``polyop export``."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

from .. import _core
from ..binary.export_manifest import kernel_symbol
from ..binary.open import open_library
from ..core.spec import Spec
from .base import flatten
from .library import LibraryKernel

Row = Mapping[str, Mapping[str, Any]]
"""For each tensor argument the dtypes and the number of dimensions that a kernel takes; None: any."""


class ExportedKernel(LibraryKernel):
    """The kernel of an exported operator: the library chooses among those for dtypes and dimensions.

    ``rows`` say which calls it takes. ``torch_name`` is the operator that the library registers in PyTorch
    itself, by calling its function ``torch_function``; empty without.
    """

    def __init__(
        self, path: str, name: str, c_name: str, rows: Sequence[Row], torch: tuple[str, str] = ("", "")
    ) -> None:
        """Open the library. Raises what :class:`LibraryKernel` raises."""
        super().__init__(path, kernel_symbol(c_name), label=f"{path.rpartition('/')[2]}:{name}")
        self.rows, (self.torch_name, self.torch_function) = rows, torch

    def refuse(self, inputs: tuple[Any, ...], outputs: tuple[Spec, ...]) -> str | None:
        """Return why no kernel of the library takes these specs, or None."""
        del outputs
        return None if self.row(tuple(flatten(inputs))) is not None else self.accepted()

    def row(self, specs: Sequence[Spec | None]) -> int | None:
        """Return the number of the kernel that takes these specs, the first one, or None."""
        return next((number for number, row in enumerate(self.rows) if _takes(row, specs)), None)

    def accepted(self) -> str:
        """Return "takes x float32 of 2 dimensions; or x float64 of 2 dimensions"."""
        return "takes " + "; or ".join(", ".join(map(_text, row, row.values())) for row in self.rows)

    def registers_in_torch(self, name: str) -> bool:
        """Whether the library has registered the operator of this name in PyTorch, or does so now."""
        if not name or name != self.torch_name:
            return False
        address = _core.find_symbol(open_library(self.file), self.torch_function)
        return bool(address) and ctypes.CFUNCTYPE(ctypes.c_int)(address)() == 0


def _takes(row: Row, specs: Sequence[Spec | None]) -> bool:
    return len(row) == len(specs) and all(
        spec is None
        or (
            (one["dtypes"] is None or spec.dtype.name in one["dtypes"])
            and one["dimensions"] in (None, len(spec.shape))
        )
        for one, spec in zip(row.values(), specs, strict=True)
    )


def _text(name: str, row: Mapping[str, Any]) -> str:
    dtypes = "" if row["dtypes"] is None else f" {' or '.join(row['dtypes'])}"
    count = row["dimensions"]
    return f"{name}{dtypes}" + ("" if count is None else f" of {count} dimension{'s' * (count != 1)}")
