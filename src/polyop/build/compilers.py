"""Find the compilers of this machine, and identify their exact versions for the cache's key."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Sequence
from typing import NamedTuple

from ..core.errors import BuildError
from . import facts

# language: (the variable that names the compiler, the programs tried otherwise, how to get one)
_CANDIDATES = {
    "c":    ("CC",      ("cc", "gcc", "clang"),      "install gcc or clang, or name a C compiler in CC"),
    "c++":  ("CXX",     ("c++", "g++", "clang++"),   "install g++ or clang++, or name a C++ compiler in CXX"),
    "cuda": ("CUDACXX", ("nvcc",),                   "install the CUDA toolkit, or name nvcc in CUDACXX"),
    "hip":  ("HIPCXX",  ("hipcc",),                  "install ROCm, or name a compiler of HIP in HIPCXX"),
}  # fmt: skip
_TOOLKITS = {"cuda": "/usr/local/cuda/bin", "hip": "/opt/rocm/bin"}
_WRAPPERS = {"ccache", "sccache", "distcc", "icecc", "env"}
_MAX_LAUNCHER_BYTES = 64 << 10
"""A program this small is a script or a launcher: the program that it starts may change without it."""


class Compiler(NamedTuple):
    """A compiler: its command, its family (gcc, clang, nvcc) and what it prints for ``--version``."""

    command: tuple[str, ...]
    family: str
    version: str

    @property
    def identity(self) -> list[str]:
        """The part of the cache's key that identifies the compiler."""
        return [*self.command, self.version]

    @property
    def number(self) -> tuple[int, int]:
        """The version as (major, minor); (0, 0) if the compiler's text has none.

        >>> Compiler(("nvcc",), "nvcc", "Cuda compilation tools, release 13.0, V13.0.88").number
        (13, 0)
        """
        pattern = r"release (\d+)\.(\d+)" if self.family == "nvcc" else r"(\d+)\.(\d+)\.\d"
        match = re.search(pattern, self.version)
        return (int(match[1]), int(match[2])) if match else (0, 0)


def find(language: str) -> Compiler:
    """Return the compiler of a language: that of CC, CXX, CUDACXX or HIPCXX if it is set.

    Raises ``BuildError`` that says what to install.
    """
    variable, programs, remedy = _CANDIDATES[language]
    command = os.environ.get(variable, "").strip()
    if command:
        return _from_variable(variable, command, remedy)
    path = _first_program(language, programs)
    if path is None:
        rule = f"no {language.upper()} compiler was found (tried {', '.join(programs)})"
        raise BuildError("build", rule, hint=remedy)
    return _identify(path, ())


def which(program: str, path: str | None = None) -> str | None:
    """Return what ``shutil.which`` returns; importing shutil takes too long for a process without builds.

    >>> which("/bin/sh"), which("no-such-program")
    ('/bin/sh', None)
    """
    if path is None:
        path = os.environ.get("PATH", os.defpath)
    folders = [""] if "/" in program else path.split(os.pathsep) if path else []
    for folder in folders:
        candidate = os.path.join(folder, program)
        if os.access(candidate, os.X_OK) and not os.path.isdir(candidate):
            return candidate
    return None


def program_path(language: str) -> str | None:
    """Return the path of the program that compiles a language, or None if there is none.

    Unlike :func:`find` it does not run the program, and looks behind launchers such as ccache.
    """
    import shlex

    variable, programs, _ = _CANDIDATES[language]
    words = [
        word for word in shlex.split(os.environ.get(variable, "")) if "=" not in word and word[:1] != "-"
    ]
    compilers = [word for word in words if os.path.basename(word) not in _WRAPPERS]
    return _first_program(language, compilers[:1] or programs)


def _first_program(language: str, programs: Sequence[str]) -> str | None:
    """Return the path of the first of some programs: in CUDA_HOME, in PATH, then in a toolkit's folder."""
    folders = _toolkit_folders() if language == "cuda" else []
    usual = [_TOOLKITS[language]] if language in _TOOLKITS else []
    paths = (which(program, path=folder) for folder in [*folders, None, *usual] for program in programs)
    return next(filter(None, paths), None)


def _from_variable(variable: str, text: str, remedy: str) -> Compiler:
    """Return the compiler that a variable names: a program, perhaps with arguments or behind launchers."""
    import shlex

    subject = f"{variable}={text}"
    try:
        command = shlex.split(text)
    except ValueError as problem:
        raise BuildError(subject, f"must be a command as a shell has it ({problem})", hint=remedy) from None
    for position, word in enumerate(command):
        if position and ("=" in word or word.startswith("-")):
            continue  # an argument of the launcher, as in env NAME=VALUE g++
        is_launcher = os.path.basename(word) in _WRAPPERS
        if which(word) is None:
            seen = repr(word) if is_launcher or position else None
            raise BuildError(subject, "must name a program that exists", seen, hint=remedy)
        if not is_launcher:
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
    status = os.stat(program)
    stem = os.path.splitext(os.path.basename(program))[0]
    is_launcher = stem in _WRAPPERS or status.st_size < _MAX_LAUNCHER_BYTES
    stamp = (status.st_size, status.st_mtime_ns)
    version = _version((path, *arguments), program, stamp, cacheable=not is_launcher)
    lower = version.lower()
    family = "nvcc" if "cuda compiler" in lower else "clang" if "clang" in lower else "gcc"
    return Compiler((path, *arguments), family, version)


@functools.cache
def _version(command: tuple[str, ...], program: str, stamp: tuple[int, int], *, cacheable: bool) -> str:
    """Return what ``--version`` prints. It is stored on disk if a new version changes the program's file."""
    del stamp  # in the key of functools.cache: a program that was replaced is asked again
    if not cacheable:
        return _run_version(command)
    return facts.cached(repr(command), [program], lambda: _run_version(command))


def _run_version(command: tuple[str, ...]) -> str:
    import shlex

    from .run import run

    finished = run([*command, "--version"], asks=True)
    if finished.code:
        seen = f"code {finished.code}"
        raise BuildError(shlex.join(command), "must answer --version", seen, hint=finished.output)
    return finished.output
