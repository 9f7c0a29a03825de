"""C++ symbol names of a library: demangle them, find a function, tell which std::string they use."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable

from ..core.limits import is_text

_OLD = re.compile(r"^_ZNK?Ss|RKSs")

# One row per kind of std::string: the pattern of its names, its description. The first row that matches any
# name of a library decides.
_STRINGS = (
    (re.compile(r"__cxx11|B5cxx11"), "libstdc++, new (_GLIBCXX_USE_CXX11_ABI=1)"),
    (re.compile(r"^_ZNSt3__1|NSt3__1"), "libc++"),
    (_OLD, "libstdc++, old (_GLIBCXX_USE_CXX11_ABI=0)"),
)


def is_mangled(name: str) -> bool:
    """Return whether ``name`` is mangled: a C++ compiler wrote it, for a function without ``extern "C"``.

    >>> is_mangled("_Z3addi"), is_mangled("add")
    (True, False)
    """
    return name.startswith("_Z")


_MAX_DEMANGLED = 4 << 20
"""Bound on the characters of a demangled name: each reference to an earlier part of it can double it."""
_REFERENCE = re.compile(r"[ST][0-9A-Z]*_")


@functools.cache
def demangle(name: str) -> str:
    """Return a C++ name as its author wrote it; the name itself if it cannot be demangled.

    >>> demangle("add")
    'add'
    """
    import ctypes

    references = min(len(_REFERENCE.findall(name)), 64)
    if len(name) * 2**references > _MAX_DEMANGLED or not is_text(name):
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
    demangled = ctypes.string_at(text).decode(errors="replace")
    libc = ctypes.CDLL(None)
    libc.free.argtypes = [ctypes.c_void_p]
    libc.free(text)
    return demangled


def with_name(mangled: Iterable[str], name: str) -> list[str]:
    """Return those of the mangled names whose function is called ``name``, in any namespace.

    >>> with_name(["_Z3addi", "_ZN2my3addEv", "_Z4add2v"], "add")
    ['_Z3addi', '_ZN2my3addEv']
    """
    return [text for text in mangled if _last_name(text) == name]


def _last_name(mangled: str) -> str | None:
    """Return the unqualified name of a plain or nested C++ function, or None."""
    rest = re.sub(r"^_Z(NK?)?", "", mangled)
    last = None
    while match := re.match(r"(\d+)", rest):
        start, size = match.end(), int(match.group())
        last, rest = rest[start : start + size], rest[start + size :]
        if not mangled.startswith("_ZN"):
            break
    return last


def has_old_strings(names: Iterable[str]) -> bool:
    """Return whether the C++ names mention std::string of libstdc++'s old ABI."""
    return any(_OLD.search(name) for name in names)


def has_new_strings(names: Iterable[str]) -> bool:
    """Return whether the C++ names mention std::string of libstdc++'s new ABI."""
    return any("__cxx1112basic_string" in name for name in names)


def string_abi(names: Iterable[str]) -> str | None:
    """Return which std::string the C++ names mention, or None if they mention none.

    >>> string_abi(["_ZNSsC1EPKcRKSaIcE"])
    'libstdc++, old (_GLIBCXX_USE_CXX11_ABI=0)'
    """
    names = list(names)
    for pattern, text in _STRINGS:
        if any(pattern.search(name) for name in names):
            return text
    return None
