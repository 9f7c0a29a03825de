"""The platform tags of wheels, and what a library may need under each of them."""

from __future__ import annotations

import re
from collections.abc import Iterable

# The glibc of a tag, and the newest GLIBCXX that all its systems have. The sources are PEP 600, and the
# GCC of the distributions with that glibc.
POLICIES: tuple[tuple[tuple[int, int], tuple[int, ...]], ...] = (
    ((2, 17), (3, 4, 19)),
    ((2, 24), (3, 4, 22)),
    ((2, 28), (3, 4, 24)),
    ((2, 31), (3, 4, 28)),
    ((2, 34), (3, 4, 29)),
    ((2, 35), (3, 4, 30)),
    ((2, 39), (3, 4, 33)),
)
SYSTEM = re.compile(r"(lib(c|m|dl|rt|pthread|util|stdc\+\+|gcc_s)|ld-linux[\w-]*)\.so\.\d+")
"""Libraries that every system of a manylinux tag has."""
_OLD_NAMES = {"manylinux2014": "manylinux_2_17", "manylinux2010": "manylinux_2_12"}
_MACHINES = {"x86-64": "x86_64", "x86": "i686", "aarch64": "aarch64", "ppc64": "ppc64le", "s390": "s390x"}


def version(text: str) -> tuple[int, ...]:
    """Return a symbol version as numbers.

    >>> version("GLIBC_2.34"), version("GLIBCXX_3.4.29")
    ((2, 34), (3, 4, 29))
    """
    return tuple(map(int, text.partition("_")[2].split(".")))


def newest(versions: Iterable[str], family: str) -> tuple[int, ...]:
    """Return the newest version of a family among symbol versions, ``(0,)`` without any.

    >>> newest(["GLIBC_2.34", "GLIBCXX_3.4.29"], "GLIBC")
    (2, 34)
    """
    return max((version(text) for text in versions if text.partition("_")[0] == family), default=(0,))


def platform_tag(machine: str, versions: Iterable[str], needed: Iterable[str]) -> str:
    """Return the tag with the oldest glibc that the library runs on.

    A library that needs other libraries, or a newer C++ library than any tag has, gets a ``linux`` tag.

    >>> platform_tag("x86-64", ["GLIBC_2.32", "GLIBCXX_3.4.29"], ["libc.so.6"])
    'manylinux_2_34_x86_64'
    >>> platform_tag("aarch64", ["GLIBC_2.17"], ["libcudart.so.12"])
    'linux_aarch64'
    """
    name, versions = machine_tag(machine), list(versions)
    if all(SYSTEM.fullmatch(one) for one in needed):
        libc, libstdcxx = newest(versions, "GLIBC"), newest(versions, "GLIBCXX")
        fitting = (glibc for glibc, cxx in POLICIES if glibc >= libc and cxx >= libstdcxx)
        for major, minor in fitting:
            return f"manylinux_{major}_{minor}_{name}"
    return f"linux_{name}"


def machine_tag(machine: str) -> str:
    """Return the name of a machine in tags; ``machine`` is as in ``LibraryFile``.

    >>> machine_tag("x86-64"), machine_tag("riscv")
    ('x86_64', 'riscv64')
    """
    return _MACHINES.get(machine, f"{machine}64")


def promise(tag: str) -> tuple[int, int] | None:
    """Return the glibc that a platform tag promises to run on, None for a tag without a promise.

    >>> promise("manylinux_2_28_x86_64"), promise("manylinux2014_x86_64"), promise("linux_x86_64")
    ((2, 28), (2, 17), None)
    """
    for old, new in _OLD_NAMES.items():
        tag = tag.replace(f"{old}_", f"{new}_")
    glibc = re.match(r"manylinux_(\d+)_(\d+)_", tag)
    return (int(glibc[1]), int(glibc[2])) if glibc else None


def allowed_cxx(glibc: tuple[int, int]) -> tuple[int, ...]:
    """Return the newest GLIBCXX that systems with this glibc have.

    >>> allowed_cxx((2, 36))
    (3, 4, 30)
    """
    return max((cxx for libc, cxx in POLICIES if libc <= glibc), default=(3, 4, 13))
