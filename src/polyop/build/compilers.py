"""The compilers of this machine: which one, and exactly which version of it."""

from __future__ import annotations

import functools
import os
import re
from typing import NamedTuple

from ..core.errors import BuildError
from . import facts

# language: (variables that name the compiler, programs tried, what to install)
_CANDIDATES = {
    "c":    ("CC",      ("cc", "gcc", "clang"),      "install gcc or clang, or name a C compiler in CC"),
    "c++":  ("CXX",     ("c++", "g++", "clang++"),   "install g++ or clang++, or name a C++ compiler in CXX"),
    "cuda": ("CUDACXX", ("nvcc",),                   "install the CUDA toolkit, or name nvcc in CUDACXX"),
}  # fmt: skip
_WRAPPERS = {"ccache", "sccache", "distcc", "icecc", "env"}
_SMALL = 64 << 10
"""Bytes: a program this small is a script or a launcher, and another program's version stands behind it."""


class Compiler(NamedTuple):
    """A compiler: how to start it, its family (gcc, clang, nvcc) and the text of its version."""

    command: tuple[str, ...]
    family: str
    version: str

    @property
    def identity(self) -> list[str]:
        """What makes two compilers the same one, for the cache's key."""
        return [*self.command, self.version]

    @property
    def number(self) -> tuple[int, int]:
        """Return (major, minor).

        >>> Compiler(("nvcc",), "nvcc", "Cuda compilation tools, release 13.0, V13.0.88").number
        (13, 0)
        """
        found = re.search(
            r"release (\d+)\.(\d+)" if self.family == "nvcc" else r"(\d+)\.(\d+)\.\d", self.version
        )
        return (int(found[1]), int(found[2])) if found else (0, 0)


def find(language: str) -> Compiler:
    """Return the compiler for ``"c"``, ``"c++"`` or ``"cuda"``; CC, CXX and CUDACXX are honoured.

    Raises ``BuildError`` that says what to install.
    """
    variable, programs, remedy = _CANDIDATES[language]
    named = os.environ.get(variable, "").strip()
    if named:
        return _named(variable, named, remedy)
    folders = _toolkit_folders() if language == "cuda" else []
    found = filter(None, (which(p, path=f) for f in [*folders, None] for p in programs))
    path = next(found, None)
    if path is None and language == "cuda":
        path = which("nvcc", path="/usr/local/cuda/bin")
    if path is None:
        kind = {"c": "C", "c++": "C++", "cuda": "CUDA"}[language]
        rule = f"no {kind} compiler was found (tried {', '.join(programs)})"
        raise BuildError("build", rule, hint=remedy)
    return _identify(path, ())


def which(program: str, path: str | None = None) -> str | None:
    """Return what ``shutil.which`` does, without importing that.

    >>> which("/bin/sh"), which("no-such-program")
    ('/bin/sh', None)
    """
    if path is None:
        path = os.environ.get("PATH", os.defpath)
    places = [""] if "/" in program else path.split(os.pathsep) if path else []
    for place in places:
        found = os.path.join(place, program)
        if os.access(found, os.X_OK) and not os.path.isdir(found):
            return found
    return None


def program(language: str) -> str | None:
    """Return the path of the program that compiles a language, None where there is none."""
    import shlex

    variable, programs, _ = _CANDIDATES[language]
    named = [
        word for word in shlex.split(os.environ.get(variable, "")) if "=" not in word and word[:1] != "-"
    ]
    usable = [word for word in named if os.path.basename(word) not in _WRAPPERS]
    folders = _toolkit_folders() if language == "cuda" else []
    candidates = usable[:1] or programs
    return next(filter(None, (which(p, path=f) for f in [*folders, None] for p in candidates)), None)


def _named(variable: str, named: str, remedy: str) -> Compiler:
    """Return the compiler that a variable names: a program, with arguments or behind launchers."""
    import shlex

    subject = f"{variable}={named}"
    try:
        command = shlex.split(named)
    except ValueError as problem:
        raise BuildError(subject, f"must be a command as a shell has it ({problem})", hint=remedy) from None
    for place, word in enumerate(command):
        if place and ("=" in word or word.startswith("-")):
            continue  # for the launcher, as in env NAME=VALUE g++
        launcher = os.path.basename(word) in _WRAPPERS
        if which(word) is None:
            seen = repr(word) if launcher or place else None
            raise BuildError(subject, "must name a program that exists", seen, hint=remedy)
        if not launcher:
            break
    else:
        rule = f"must name a compiler behind {command[-1] if command else 'the quotes'}"
        raise BuildError(subject, rule, hint=f'as in {variable}="ccache g++"; {remedy}')
    path = which(command[0])
    assert path is not None
    return _identify(path, tuple(command[1:]))


def _toolkit_folders() -> list[str]:
    homes = (os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH"))
    return [os.path.join(home, "bin") for home in homes if home]


def _identify(path: str, arguments: tuple[str, ...]) -> Compiler:
    program = os.path.realpath(path)
    seen = os.stat(program)
    stem = os.path.splitext(os.path.basename(program))[0]
    launcher = stem in _WRAPPERS or seen.st_size < _SMALL
    version = _version((path, *arguments), program, (seen.st_size, seen.st_mtime_ns), not launcher)
    lower = version.lower()
    family = "nvcc" if "cuda compiler" in lower else "clang" if "clang" in lower else "gcc"
    return Compiler((path, *arguments), family, version)


@functools.cache
def _version(command: tuple[str, ...], program: str, stamp: tuple[int, int], lasting: bool) -> str:
    """Return what ``--version`` prints; kept on disk for a program whose file tells when it changes."""
    del stamp  # of the program: within a process, too, a new one is asked anew
    return facts.cached(repr(command), [program], lambda: _ask(command)) if lasting else _ask(command)


def _ask(command: tuple[str, ...]) -> str:
    import shlex

    from .run import run

    done = run([*command, "--version"])
    if done.code:
        raise BuildError(shlex.join(command), "must answer --version", f"code {done.code}", hint=done.output)
    return done.output
