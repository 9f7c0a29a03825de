"""Load a library of PyTorch in another process first: a contradiction in it ends the process.

PyTorch ends a process in which a library registers a function that contradicts its schema. So a library is
tried elsewhere first, once: a file in the build cache, named after the hash of the library, says that it was.
"""

from __future__ import annotations

import contextlib
import re
import signal
from pathlib import Path

from ...binary.elsewhere import Opened, run_elsewhere
from ...binary.file_kind import subject_of
from ...build import atomic
from ...build.libtorch import find
from ...build.paths import cache_folder
from ...core.errors import BuildError, CacheError, LibraryError
from ...core.origin import Origin

_PROGRAM = "import torch; torch.ops.load_library(sys.argv[1])"
_MISMATCH = re.compile(
    r"operator: (?P<name>\S+)\n\s*expected schema: (?P<schema>.+)\n\s*registered at (?P<place>.+)\n"
    r"\s*inferred schema: (?P<function>.+)\n\s*registered at (?P<where>.+)\n\s*reason: (?P<reason>.+)"
)


def try_elsewhere(path: Path, digest: str, origin: Origin) -> None:
    """Raise ``LibraryError`` if loading a library ends the process; at once if it was loaded before."""
    try:
        version = find(path).version
    except BuildError:
        return  # without PyTorch, or with one whose version is not known, the load itself says what is wrong
    mark = Path(cache_folder(), "tried", f"{digest}-{version}")
    if mark.exists():
        return
    tried = run_elsewhere(path, _PROGRAM)
    if tried.code < 0:
        raise crash(path, tried, origin)
    if tried.code == 0:  # else the load in this process has the error
        with contextlib.suppress(OSError, CacheError):
            atomic.write_text(mark, "")


def crash(path: Path, opened: Opened, origin: Origin | None) -> LibraryError:
    """Return the error for a library that has ended the process that opened it."""
    found = _MISMATCH.search(opened.errors)
    if found is None:
        said = re.search(r"what\(\): +(.+)", opened.errors)
        name = signal.Signals(-opened.code).name
        rule = f"cannot be loaded: PyTorch ends the process ({name})"
        return LibraryError(subject_of(path), rule, said[1] if said else None, where=origin)
    reason = found["reason"].rstrip(".").strip()
    shown = (
        f"schema: {found['schema']}  ({found['place']})\n  C++:    {found['function']}  ({found['where']})"
    )
    way = "std::vector<at::Tensor> is Tensor[]; several results are a std::tuple"
    rule = f"the schema and the C++ function disagree: {reason}"
    return LibraryError(found["name"], rule, where=origin, hint=f"{shown}\n  {way}")
