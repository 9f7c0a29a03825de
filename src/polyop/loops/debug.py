"""Environment variables for developers of the compiler. They are read each time, so that a test can set them.

POLYOP_STRICT=1             raise the exception of a pass or a printer with a bug, and the C compiler's error;
                            verify the kernel after each pass. Otherwise such a kernel runs in the author's
                            order, with a warning
POLYOP_PRINT_AFTER=NAME     print the loops after this pass, or after "all", on stderr
POLYOP_SKIP_PASSES=A,B      leave passes out, to find the one with a bug; kernels are then built anew
"""

from __future__ import annotations

import os


def is_strict() -> bool:
    """Whether a bug of the compiler is an error, not a slower kernel."""
    return os.environ.get("POLYOP_STRICT") == "1"


def print_after() -> str:
    """Return the passes to print after, separated by commas, or "all", or an empty text."""
    return os.environ.get("POLYOP_PRINT_AFTER", "")


def skipped_passes() -> tuple[str, ...]:
    """Return the names of the passes that are left out."""
    text = os.environ.get("POLYOP_SKIP_PASSES", "")
    return tuple(sorted({name.strip() for name in text.split(",")} - {""}))
