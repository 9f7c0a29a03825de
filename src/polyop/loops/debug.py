"""What a developer of the compiler asks of it, by the environment; read each time, so that a test can set it.

POLYOP_STRICT=1             a mistake of the compiler is raised; otherwise the kernel runs in the author's
order, with a warning. Every pass is verified.
POLYOP_PRINT_AFTER=NAME     prints the loops after this pass, or after "all", on stderr
POLYOP_SKIP_PASSES=A,B      leaves passes out, to find the one at fault; other kernels are built then
"""

from __future__ import annotations

import os


def is_strict() -> bool:
    """Return whether mistakes of the compiler are raised."""
    return os.environ.get("POLYOP_STRICT") == "1"


def print_after() -> str:
    """Return the passes to print after, separated by commas, or "all", or an empty text."""
    return os.environ.get("POLYOP_PRINT_AFTER", "")


def skipped_passes() -> tuple[str, ...]:
    """Return the names of the passes that are left out."""
    text = os.environ.get("POLYOP_SKIP_PASSES", "")
    return tuple(sorted({name.strip() for name in text.split(",")} - {""}))
