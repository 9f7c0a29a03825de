"""PyTorch's headers, parsed once per (PyTorch, compiler, flags) and kept in the cache."""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

from ..core.errors import BuildError
from . import atomic
from .cache import BuildOutput, Cache
from .depfile import parse_depfile
from .libtorch import TENSORS, LibTorch
from .plan import Unit
from .run import failed, progress, run

_HEADER = "torch/types.h"
"""Precompiled for all: tensors and their functions, which every heavier header begins with."""
_HEAVY = (
    r"(?m)^[ \t]*#[ \t]*include[ \t]*"
    r'(?:<torch/(?!csrc/|headeronly/)|<ATen/|[<"](?:ms_ext\.h|pytorch_npu_helper\.hpp))'
)
_FIRST_DEFINE = r"(?m)^[ \t]*#[ \t]*define\b"


@dataclass(frozen=True, slots=True)
class Precompiled:
    """A precompiled header: the flags that use it, and the headers it stands for."""

    flags: tuple[str, ...]
    inputs: tuple[str, ...]


def precompiled(unit: Unit, torch: LibTorch, cache: Cache) -> Precompiled | None:
    """Return the precompiled header for a source, made when it is not in the cache.

    None when the source includes no heavy header, or defines a macro before it does (which
    the header might look at), or the compiler is not gcc or clang.
    """
    if not _fits(unit):
        return None
    flags = [*torch.header_flags(TENSORS), *unit.flags]
    suffix = "gch" if unit.compiler.family == "gcc" else "pch"
    text = f"#include <{_HEADER}>\n"
    subject = f"<{_HEADER}> of PyTorch {torch.version}"

    def make(work: Path) -> BuildOutput:
        source = work / "torch.h"
        source.write_text(text, encoding="utf-8")
        output, depfile = work / f"torch.h.{suffix}", work / "torch.d"
        names = ["-MD", "-MF", str(depfile), "-MT", "object", "-o", str(output), str(source)]
        with progress(f"precompiling the headers of PyTorch {torch.version}, once"):
            done = run([*unit.compiler.command, *flags, "-x", "c++-header", *names])
        if done.code:
            raise failed(subject, "cannot be precompiled", done)
        read = parse_depfile(os.fsdecode(depfile.read_bytes()))
        return BuildOutput(output, [path for path in read if path != str(source)])

    request = [
        "precompiled",
        _HEADER,
        unit.compiler.identity,
        flags,
        torch.version,
        torch.commit,
        str(torch.root),
    ]
    try:
        found = cache.get(request, [subject], make, library=False)
    except BuildError:
        return None  # the compile itself will say what is wrong with these headers
    made = Path(found.path)
    plain = made.with_suffix("")
    with contextlib.suppress(OSError):
        if not plain.exists():  # what gcc falls back to when it cannot use the other file
            atomic.write_text(plain, text)
    use = ("-include", str(plain)) if suffix == "gch" else ("-include-pch", str(made))
    return Precompiled(use, tuple(item.path for item in found.result.inputs))


def _fits(unit: Unit) -> bool:
    if unit.source.language != "c++" or unit.compiler.family not in ("gcc", "clang"):
        return False
    place = re.search(_HEAVY, unit.source.text)
    return place is not None and re.search(_FIRST_DEFINE, unit.source.text[: place.start()]) is None
