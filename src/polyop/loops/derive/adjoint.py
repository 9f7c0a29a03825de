"""What the derivation of a gradient returns.

It imports no pass, so that a gradient from the cache loads fast.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..ir.grammar import Kernel

if TYPE_CHECKING:
    from ..ir.note import Note


@dataclass(frozen=True)
class Adjoint:
    """The gradient of a kernel, where the values that it reads come from, and what each tape keeps."""

    kernel: Kernel
    notes: tuple[Note, ...]
    tapes: Mapping[str, str] = field(default_factory=dict)
