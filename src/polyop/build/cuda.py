"""What is special about nvcc: architectures, and how it wants a host compiler's flags."""

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
"""Built for when no GPU is here to ask; those that the toolkit knows."""
_ARCHITECTURE = r"(?:sm_|compute_)?(\d+?)\.?(\d)([af]?)"
_FOR_THE_HOST = r"-(f|W|m(?!axrregcount)|pthread|pedantic|pipe)"
_ESCAPED = r"\\\1"
_SHELL = r"([^\w@%+=:,./-])"


def architecture_flags(nvcc: Compiler, given: Sequence[str] | None) -> list[str]:
    """Return -gencode flags: for those given, else for the GPUs here, else for the usual ones.

    The newest is also kept as PTX, which later GPUs can run. Raises ``BuildError`` for a name
    that is no architecture, or one that this toolkit does not know.
    """
    supported = _supported(nvcc)
    names = list(given or ()) or [name for name in _present() if name in supported]
    if not names:
        names = [str(number) for number in _USUAL if str(number) in supported]
    chosen = list(dict.fromkeys(_plain(nvcc, name, supported) for name in names))
    flags = [f"-gencode=arch=compute_{name},code=sm_{name}" for name in chosen]
    newest = max(chosen, key=lambda name: (int(name.rstrip("af")), name))
    return [*flags, f"-gencode=arch=compute_{newest},code=compute_{newest}"]


def _plain(nvcc: Compiler, name: str, supported: Sequence[str]) -> str:
    """Return ``"90"`` for sm_90, compute_90 and 9.0; ``"90a"`` for sm_90a."""
    found = re.fullmatch(_ARCHITECTURE, name)
    known = f"CUDA {'.'.join(map(str, nvcc.number))} knows {', '.join(f'sm_{n}' for n in supported)}"
    if found is None:
        raise BuildError("CUDA architecture", "must be written like sm_90", repr(name), hint=known)
    plain = f"{found[1]}{found[2]}"
    if plain not in supported:
        raise BuildError("CUDA architecture", "must be one that the toolkit knows", name, hint=known)
    return plain + found[3]


@functools.cache
def _supported(nvcc: Compiler) -> tuple[str, ...]:
    listed = run([*nvcc.command, "--list-gpu-arch"]).output
    return tuple(sorted(re.findall(r"compute_(\d+)\b", listed), key=int))


@functools.cache
def _present() -> tuple[str, ...]:
    """Return the architectures of this machine's GPUs, as the driver names them."""
    if shutil.which("nvidia-smi") is None:
        return ()
    done = run(["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"])
    if done.code:
        return ()
    return tuple(
        dict.fromkeys(f"{a}{b}" for a, b in re.findall(r"^(\d+)\.(\d)\s*$", done.output, re.MULTILINE))
    )


def compile_flag(flag: str) -> list[str]:
    """Return a compiler flag as nvcc takes it.

    >>> compile_flag("-fopenmp"), compile_flag("-DN=3")
    (['-Xcompiler=-fopenmp'], ['-DN=3'])
    """
    return [f"-Xcompiler={flag}"] if re.match(_FOR_THE_HOST, flag) else [flag]


def link_flag(flag: str) -> list[str]:
    r"""Return a linker flag as nvcc takes it; nvcc hands these to a shell, so they are escaped.

    >>> link_flag("-Wl,-rpath,/a b")
    ['-Xlinker=-rpath', '-Xlinker=/a\\ b']
    """
    if flag.startswith("-Wl,"):
        return [f"-Xlinker={re.sub(_SHELL, _ESCAPED, part)}" for part in flag[4:].split(",")]
    return compile_flag(flag)


def host_compiler() -> list[str]:
    """Return the flags that make nvcc use the host compiler named in CUDAHOSTCXX or CXX."""
    named = os.environ.get("CUDAHOSTCXX") or os.environ.get("CXX", "")
    path = shutil.which(named.split()[0]) if named.strip() else None
    return [f"-ccbin={path}"] if path else []
