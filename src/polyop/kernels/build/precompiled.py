"""PyTorch's headers, parsed once per (PyTorch, compiler, flags) and kept in the cache."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...core.errors import BuildError
from . import atomic
from .cache import Cache, Made
from .inputs import parse_depfile
from .libtorch import LibTorch
from .plan import Unit
from .run import failed, progress, run

# what a source includes, to what is precompiled for it; the first that matches
_HEADERS = (
    ("torch/extension.h", "torch/extension.h"),
    ("torch/torch.h",     "torch/extension.h"),
    ("torch/all.h",       "torch/all.h"),
    ("torch/types.h",     "torch/types.h"),
    ("ATen/ATen.h",       "ATen/ATen.h"),
)  # fmt: skip
_FIRST_DEFINE = re.compile(r"^[ \t]*#[ \t]*define\b", re.MULTILINE)
# flags that may differ between a precompiled header and its user
_HARMLESS = ("-I", "-DTORCH_EXTENSION_NAME=")


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
    header = _heavy_header(unit.source.text)
    if header is None or unit.source.language != "c++" or unit.compiler.family not in ("gcc", "clang"):
        return None
    flags = _own_flags(unit)
    suffix = "gch" if unit.compiler.family == "gcc" else "pch"
    text = f"#include <{header}>\n"

    def make(work: Path) -> Made:
        source = work / "torch.h"
        source.write_text(text, encoding="utf-8")
        output, depfile = work / f"torch.h.{suffix}", work / "torch.d"
        names = ["-MD", "-MF", str(depfile), "-MT", "object", "-o", str(output), str(source)]
        with progress(f"precompiling the headers of PyTorch {torch.version}, once"):
            done = run([*unit.compiler.command, *flags, "-x", "c++-header", *names])
        if done.code:
            raise failed(f"<{header}> of PyTorch {torch.version}", "cannot be precompiled", done)
        read = parse_depfile(depfile.read_text(encoding="utf-8"))
        return Made(output, [path for path in read if path != str(source)])

    request = [
        "precompiled",
        header,
        unit.compiler.identity,
        flags,
        torch.version,
        torch.commit,
        str(torch.root),
    ]
    try:
        found = cache.get(request, [f"<{header}> of PyTorch {torch.version}"], make)
    except BuildError:
        return None  # the compile itself will say what is wrong with these headers
    plain = found.path.with_suffix("")
    with contextlib.suppress(OSError):
        if not plain.exists():  # what gcc falls back to when it cannot use the other file
            atomic.write_text(plain, text)
    use = ("-include", str(plain)) if suffix == "gch" else ("-include-pch", str(found.path))
    return Precompiled(use, tuple(item.path for item in found.variant.inputs))


def _heavy_header(text: str) -> str | None:
    for included, header in _HEADERS:
        place = re.search(rf"^[ \t]*#[ \t]*include[ \t]*<{re.escape(included)}>", text, re.MULTILINE)
        if place is not None:
            return None if _FIRST_DEFINE.search(text, 0, place.start()) else header
    return None


def _own_flags(unit: Unit) -> Sequence[str]:
    """Return the flags for the header: the unit's, less those about the unit's own folders and name."""
    light = [flag for flag in unit.flags if flag.startswith("-I") and "/polyop/torch/" in flag]
    rest = [flag for flag in unit.flags if not flag.startswith(_HARMLESS)]
    return [*light, *rest]
