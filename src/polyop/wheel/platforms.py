"""The platform tags of wheels, and what a library may need under each of them."""

from __future__ import annotations

import re
from collections.abc import Iterable

# The newest version of each family of symbols that all systems of a tag have. GLIBC is that of the tag, by
# PEP 600. GLIBCXX and CXXABI are of libstdc++, GCC is of libgcc_s: what the distributions with that glibc
# have, as auditwheel lists it. Of GCC it is the newest of all machines. Glibc 2.26 came with GCC 7:
# auditwheel has it for aarch64, and for x86-64 from 2.27 on. A glibc between two rows has what the row before
# it has.
POLICIES: tuple[dict[str, tuple[int, ...]], ...] = (
    {"GLIBC": (2, 5), "GLIBCXX": (3, 4, 8), "CXXABI": (1, 3, 1), "GCC": (4, 2, 0)},
    {"GLIBC": (2, 12), "GLIBCXX": (3, 4, 13), "CXXABI": (1, 3, 3), "GCC": (4, 5, 0)},
    {"GLIBC": (2, 17), "GLIBCXX": (3, 4, 19), "CXXABI": (1, 3, 7), "GCC": (4, 8, 0)},
    {"GLIBC": (2, 24), "GLIBCXX": (3, 4, 22), "CXXABI": (1, 3, 10), "GCC": (4, 8, 0)},
    {"GLIBC": (2, 26), "GLIBCXX": (3, 4, 24), "CXXABI": (1, 3, 11), "GCC": (7, 0, 0)},
    {"GLIBC": (2, 31), "GLIBCXX": (3, 4, 28), "CXXABI": (1, 3, 12), "GCC": (7, 0, 0)},
    {"GLIBC": (2, 34), "GLIBCXX": (3, 4, 29), "CXXABI": (1, 3, 13), "GCC": (11, 0)},
    {"GLIBC": (2, 35), "GLIBCXX": (3, 4, 30), "CXXABI": (1, 3, 13), "GCC": (12, 0, 0)},
    {"GLIBC": (2, 39), "GLIBCXX": (3, 4, 33), "CXXABI": (1, 3, 15), "GCC": (14, 0, 0)},
)
_OLDEST = (2, 17)
"""The glibc of the first tag that :func:`platform_tag` gives. The rows before it are for the audit."""
SYSTEM = re.compile(r"(lib(c|m|dl|rt|pthread|util|stdc\+\+|gcc_s)|ld-linux[\w-]*)\.so\.\d+")
"""Libraries that every system of a manylinux tag has."""
_OLD_NAMES = {
    "manylinux2014": "manylinux_2_17",
    "manylinux2010": "manylinux_2_12",
    "manylinux1": "manylinux_2_5",
}
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


def floors(versions: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """Return the newest version of each family of the policies, ``(0,)`` for a family without any.

    >>> floors(["GLIBC_2.34", "CXXABI_1.3.9"])
    {'GLIBC': (2, 34), 'GLIBCXX': (0,), 'CXXABI': (1, 3, 9), 'GCC': (0,)}
    """
    versions = list(versions)
    return {family: newest(versions, family) for family in POLICIES[0]}


def platform_tag(machine: str, versions: Iterable[str], needed: Iterable[str]) -> str:
    """Return the tag with the oldest glibc that the library runs on.

    A library that needs other libraries, or newer ones of the system than any tag has, gets a ``linux`` tag.

    >>> platform_tag("x86-64", ["GLIBC_2.32", "GLIBCXX_3.4.29"], ["libc.so.6"])
    'manylinux_2_34_x86_64'
    >>> platform_tag("aarch64", ["GLIBC_2.17"], ["libcudart.so.12"])
    'linux_aarch64'
    """
    name, needs = machine_tag(machine), floors(versions)
    if all(SYSTEM.fullmatch(one) for one in needed):
        for policy in POLICIES:
            major, minor = policy["GLIBC"]
            if (major, minor) >= _OLDEST and all(needs[family] <= most for family, most in policy.items()):
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


def allowed(glibc: tuple[int, int]) -> dict[str, tuple[int, ...]]:
    """Return the newest version of each family that systems with this glibc have.

    >>> allowed((2, 36))
    {'GLIBC': (2, 36), 'GLIBCXX': (3, 4, 30), 'CXXABI': (1, 3, 13), 'GCC': (12, 0, 0)}
    """
    fitting = [policy for policy in POLICIES if policy["GLIBC"] <= glibc] or POLICIES[:1]
    return {**fitting[-1], "GLIBC": glibc}
