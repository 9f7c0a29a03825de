"""The versions of polyop, and of the binary interface between polyop and a kernel (include/polyop/abi.h)."""

from __future__ import annotations


def version() -> str:
    """Return the version of the installed package; "0+checkout" for a source tree that is not installed."""
    import importlib.metadata  # slow, and rarely needed

    try:
        return importlib.metadata.version("polyop")
    except importlib.metadata.PackageNotFoundError:
        return "0+checkout"


ABI_VERSION = 1
"""The newest version that this polyop knows. Equals POLYOP_ABI_VERSION of abi.h."""

MARKER = "polyop_aot_abi_version"
"""The exported int in which a library states the version that it was built against."""

HEADER = "custom_aot_extra.h"
"""The C++ header that exports the marker. MindSpore's header of the same name does not."""
