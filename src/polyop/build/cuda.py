"""Flags for nvcc: GPU architectures, and flags that it passes on to the host compiler or the linker."""

from __future__ import annotations

import functools
import os
import re
import shutil
from collections.abc import Sequence

from ..core.errors import BuildError
from .compilers import Compiler
from .run import run

_USUAL = (70, 75, 80, 86, 89, 90, 100, 120)
"""The architectures to build for on a machine without a GPU; those that the toolkit knows are used."""
_ARCHITECTURE = r"(?:sm_|compute_)?(\d+?)\.?(\d)([af]?)"
_HOST_FLAG = r"-(f|W|m(?!axrregcount)|pthread|pedantic|pipe)"
_SHELL_SPECIAL = r"([^\w@%+=:,./-])"


def architecture_flags(nvcc: Compiler, names: Sequence[str] | None) -> list[str]:
    """Return -gencode flags for architectures: these, else those of this machine's GPUs, else usual ones.

    The newest architecture is compiled to PTX too, which later GPUs can run. Raises ``BuildError`` for a name
    that is no architecture, and for one that this toolkit does not know.
    """
    supported = _supported(nvcc)
    names = list(names or ()) or [name for name in _own_architectures() if name in supported]
    if not names:
        names = [str(number) for number in _USUAL if str(number) in supported]
    chosen = list(dict.fromkeys(_canonical(nvcc, name, supported) for name in names))
    flags = [f"-gencode=arch=compute_{name},code=sm_{name}" for name in chosen]
    newest = max(chosen, key=lambda name: (int(name.rstrip("af")), name))
    return [*flags, f"-gencode=arch=compute_{newest},code=compute_{newest}"]


def _canonical(nvcc: Compiler, name: str, supported: Sequence[str]) -> str:
    """Return ``"90"`` for sm_90, compute_90 and 9.0; ``"90a"`` for sm_90a."""
    match = re.fullmatch(_ARCHITECTURE, name)
    hint = f"CUDA {'.'.join(map(str, nvcc.number))} knows {', '.join(f'sm_{n}' for n in supported)}"
    if match is None:
        raise BuildError("CUDA architecture", "must be written like sm_90", repr(name), hint=hint)
    number = f"{match[1]}{match[2]}"
    if number not in supported:
        raise BuildError("CUDA architecture", "must be one that the toolkit knows", name, hint=hint)
    return number + match[3]


@functools.cache
def _supported(nvcc: Compiler) -> tuple[str, ...]:
    output = run([*nvcc.command, "--list-gpu-arch"], asks=True).output
    return tuple(sorted(re.findall(r"compute_(\d+)\b", output), key=int))


@functools.cache
def _own_architectures() -> tuple[str, ...]:
    """Return the architectures of this machine's GPUs, as the driver reports them."""
    if shutil.which("nvidia-smi") is None:
        return ()
    finished = run(["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"], asks=True)
    if finished.code:
        return ()
    rows = re.findall(r"^(\d+)\.(\d)\s*$", finished.output, re.MULTILINE)
    return tuple(dict.fromkeys(f"{major}{minor}" for major, minor in rows))


def compile_flag(flag: str) -> list[str]:
    r"""Return a compiler flag in nvcc's spelling.

    One of the host compiler is escaped twice: for nvcc, and for the shell by which nvcc starts that compiler.

    >>> compile_flag("-fopenmp"), compile_flag("-DN=3"), compile_flag("-fplugin=/a b")
    (['-Xcompiler=-fopenmp'], ['-DN=3'], ['-Xcompiler=-fplugin=/a\\\\\\ b'])
    """
    return [f"-Xcompiler={_escaped(_escaped(flag))}"] if re.match(_HOST_FLAG, flag) else [flag]


def link_flag(flag: str) -> list[str]:
    r"""Return a linker flag in nvcc's spelling. It is escaped, because nvcc passes it through a shell.

    >>> link_flag("-Wl,-rpath,/a b")
    ['-Xlinker=-rpath', '-Xlinker=/a\\ b']
    """
    if flag.startswith("-Wl,"):
        return [f"-Xlinker={_escaped(part)}" for part in flag[4:].split(",")]
    return compile_flag(flag)


def _escaped(text: str) -> str:
    return re.sub(_SHELL_SPECIAL, r"\\\1", text)


def host_compiler() -> list[str]:
    """Return the flags that make nvcc use the host compiler of CUDAHOSTCXX or CXX."""
    command = os.environ.get("CUDAHOSTCXX") or os.environ.get("CXX", "")
    path = shutil.which(command.split()[0]) if command.strip() else None
    return [f"-ccbin={path}"] if path else []
