"""Check that AddressSanitizer's runtime is present before a library that needs it is opened.

The runtime must be loaded when the process starts.
"""

from __future__ import annotations

import ctypes
import re
import shlex
import sys
from typing import Any

from ...core.errors import BuildError, HostError

_ADDRESS_SANITIZER = re.compile(r"-fsanitize=\S*\baddress\b")
_RUNTIMES = {"gcc": "libasan.so", "clang": "libclang_rt.asan-x86_64.so"}


def check(subject: str, flags: str, where: Any) -> None:
    """Raise ``HostError`` if ``flags`` enable AddressSanitizer and this process lacks its runtime.

    Opening such a library would end the process. The error has the command to start it again.
    """
    if _ADDRESS_SANITIZER.search(flags) is None or hasattr(ctypes.CDLL(None), "__asan_init"):
        return
    rule = "is built with AddressSanitizer, whose runtime must be loaded before Python starts"
    raise HostError(subject, rule, where=where, hint=f"start it with: {command()}")


def command() -> str:
    """Return the command that starts this process again, with the runtime loaded first.

    Leak detection is off, because Python itself keeps memory to its end. libstdc++ is preloaded, too: at
    its start the runtime looks for the function that throws C++ exceptions.
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
    """Return the compiler's path of a library, or the bare name without the library or a compiler."""
    from ...build import compilers
    from ...build.run import run

    try:
        done = run([*compilers.find("c++").command, f"-print-file-name={library}"])
    except BuildError:
        return library
    return done.output.strip() if done.code == 0 else library
