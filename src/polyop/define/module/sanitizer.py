"""A library with AddressSanitizer can only be opened in a process that has its runtime from the start."""

from __future__ import annotations

import ctypes
import re
import shlex
import sys
from typing import Any

from ...core.errors import BuildError, HostError

_WANTED = re.compile(r"-fsanitize=\S*\baddress\b")
_RUNTIMES = {"gcc": "libasan.so", "clang": "libclang_rt.asan-x86_64.so"}


def check(subject: str, flags: str, where: Any) -> None:
    """Raise ``HostError`` where ``flags`` ask for AddressSanitizer and this process is without it.

    Opening such a library would end the process. The error has the command that starts it again.
    """
    if _WANTED.search(flags) is None or hasattr(ctypes.CDLL(None), "__asan_init"):
        return
    rule = "is built with AddressSanitizer, whose runtime must be loaded before Python starts"
    raise HostError(subject, rule, where=where, hint=f"start it so: {command()}")


def command() -> str:
    """Return the command that starts this process again, with the runtime loaded first.

    Leaks are not looked for, as Python itself keeps memory to its end; C++'s own library is loaded
    beside the runtime, which finds how C++ throws when it starts.
    """
    libraries = " ".join(filter(None, map(_path, (_runtime(), "libstdc++.so.6"))))
    again = shlex.join(sys.orig_argv)
    return f"LD_PRELOAD={shlex.quote(libraries)} ASAN_OPTIONS=detect_leaks=0 {again}"


def _runtime() -> str:
    from ...build import compilers

    try:
        return _RUNTIMES.get(compilers.find("c++").family, "libasan.so")
    except BuildError:
        return "libasan.so"


def _path(library: str) -> str:
    """Return where the compiler has a library, its name alone where it has none or there is no compiler."""
    from ...build import compilers
    from ...build.run import run

    try:
        done = run([*compilers.find("c++").command, f"-print-file-name={library}"])
    except BuildError:
        return library
    return done.output.strip() if done.code == 0 else library
