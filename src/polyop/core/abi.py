"""The version of the contract between polyop and a kernel (include/polyop/abi.h)."""

from __future__ import annotations

ABI_VERSION = 1
"""The newest contract this polyop knows; equals POLYOP_ABI_VERSION of abi.h."""

MARKER = "polyop_aot_abi_version"
"""The exported int by which a library says which contract it was built against."""

HEADER = "custom_aot_extra.h"
"""The C++ header that exports the marker; MindSpore's header of that name does not."""
