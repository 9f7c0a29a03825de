"""Find the number attributes that compiled loops get as arguments, and on which nothing else depends."""

from __future__ import annotations

from typing import Any

from ...loops.analysis.sizes import of_no_size
from ...loops.ir.grammar import Kernel

SPECIALIZED = "attributes_to_specialize"
"""Begins the keys of a kernel's cache under which it has the result of the function of this name."""


def passed(loops: Any, kernel: Kernel) -> frozenset[str]:
    """Return the attributes that the code of a typed kernel reads in each call, and that decide no size.

    None have a value of which the author's kernel, or a kernel derived from it, has code of its own.
    """
    if loops.tape_bytes is not None:  # what is taped may depend on them
        return frozenset()
    names: frozenset[str] = loops.once(("of_no_size", id(kernel)), lambda: of_no_size(kernel))
    author = loops.author
    with author._lock:
        cached = [found for key, found in author._cache.items() if key[0] == SPECIALIZED]
    return names.difference(*cached)
