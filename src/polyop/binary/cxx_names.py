"""C++ names as the compiler writes them into a library, and what they tell."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable

from ..core.limits import is_text

# The first pattern found in any name decides; one row per kind of std::string.
_STRINGS = (
    (re.compile(r"__cxx11|B5cxx11"), "libstdc++, new (_GLIBCXX_USE_CXX11_ABI=1)"),
    (re.compile(r"^_ZNSt3__1|NSt3__1"), "libc++"),
    (re.compile(r"^_ZNK?Ss|RKSs"), "libstdc++, old (_GLIBCXX_USE_CXX11_ABI=0)"),
)


def is_mangled(name: str) -> bool:
    """Return whether ``name`` was written by a C++ compiler without ``extern "C"``.

    >>> is_mangled("_Z3addi"), is_mangled("add")
    (True, False)
    """
    return name.startswith("_Z")


_LONGEST = 4 << 20
"""Characters that a name may become: each reference in it to an earlier part can double it."""
_REFERENCE = re.compile(r"[ST][0-9A-Z]*_")


@functools.cache
def demangle(name: str) -> str:
    """Return a C++ name as its author wrote it; the same name when it cannot be told.

    >>> demangle("add")
    'add'
    """
    import ctypes

    references = min(len(_REFERENCE.findall(name)), 64)
    if len(name) * 2**references > _LONGEST or not is_text(name):
        return name
    try:
        runtime = ctypes.CDLL("libstdc++.so.6")
    except OSError:
        return name
    function = runtime["__cxa_demangle"]
    function.restype = ctypes.c_void_p
    status = ctypes.c_int()
    text = function(name.encode(), None, None, ctypes.byref(status))
    if not text:
        return name
    found = ctypes.string_at(text).decode(errors="replace")
    libc = ctypes.CDLL(None)
    libc.free.argtypes = [ctypes.c_void_p]
    libc.free(text)
    return found


def with_name(mangled: Iterable[str], name: str) -> list[str]:
    """Return the C++ names among ``mangled`` of a function called ``name``, in any namespace.

    >>> with_name(["_Z3addi", "_ZN2my3addEv", "_Z4add2v"], "add")
    ['_Z3addi', '_ZN2my3addEv']
    """
    return [text for text in mangled if _last_name(text) == name]


def _last_name(mangled: str) -> str | None:
    """Return the unqualified name of a plain or nested C++ function, or None."""
    rest = re.sub(r"^_Z(NK?)?", "", mangled)
    last = None
    while found := re.match(r"(\d+)", rest):
        start, size = found.end(), int(found.group())
        last, rest = rest[start : start + size], rest[start + size :]
        if not mangled.startswith("_ZN"):
            break
    return last


def string_abi(names: Iterable[str]) -> str | None:
    """Return which std::string the C++ names speak of, or None when none does.

    >>> string_abi(["_ZNSsC1EPKcRKSaIcE"])
    'libstdc++, old (_GLIBCXX_USE_CXX11_ABI=0)'
    """
    kept = list(names)
    for pattern, text in _STRINGS:
        if any(pattern.search(name) for name in kept):
            return text
    return None
