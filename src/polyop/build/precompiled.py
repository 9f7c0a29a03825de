"""Precompile PyTorch's headers: once for each PyTorch, compiler, and set of flags that change them."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..core.errors import BuildError
from . import atomic
from .cache import BuildOutput, Cache
from .commands import Unit
from .depfile import parse_depfile
from .libtorch import TENSORS, LibTorch
from .run import failed, run
from .show import progress

_HEADER = "torch/types.h"
"""The header that is precompiled: tensors and their functions. Every heavier header includes it first."""
_HEAVY_INCLUDE = (
    r"(?m)^[ \t]*#[ \t]*include[ \t]*"
    r'(?:<torch/(?!csrc/|headeronly/)|<ATen/|[<"](?:ms_ext\.h|pytorch_npu_helper\.hpp))'
)
_OTHER = r"-w$|-W(?![alp],)|-I"
"""Flags that do not change PyTorch's headers: warnings, and folders with the author's headers."""
_FIRST_DEFINE = r"(?m)^[ \t]*#[ \t]*define\b"


@dataclass(frozen=True, slots=True)
class Precompiled:
    """A precompiled header: the flags that use it, and the headers that it was made from."""

    flags: tuple[str, ...]
    inputs: tuple[str, ...]


def precompiled(unit: Unit, torch: LibTorch, cache: Cache) -> Precompiled | None:
    """Return the precompiled header for a source, from the cache or made now; None if it cannot use one.

    It cannot if the source includes no heavy header, or defines a macro before the include (which the header
    might test), or if the compiler is neither gcc nor clang. None, too, if precompiling fails.
    """
    if not _can_use(unit):
        return None
    for flags in dict.fromkeys((_flags_of_headers(unit), unit.flags)):
        header = _get(unit, flags, torch, cache)
        if header is None or flags == unit.flags or _accepts(unit, header):
            return header
    return None


def _flags_of_headers(unit: Unit) -> tuple[str, ...]:
    """Return the flags without warnings, header folders and the macros of a kernel, as ``-DTILE=4``.

    gcc uses a header that was made without these macros if they occur nowhere in it, so most kernels share
    one. clang does not check that; its headers are made with all macros.
    """
    pairs = zip(unit.flags, ("", *unit.flags), strict=False)
    flags = tuple(flag for flag, before in pairs if not (re.match(_OTHER, flag) or before == "-I"))
    if unit.compiler.family != "gcc":
        return flags
    return tuple(flag for flag in flags if flag == "-DNDEBUG" or not re.match(r"-[DU]\w", flag))


def _accepts(unit: Unit, header: Precompiled) -> bool:
    """Whether gcc uses the header with all flags of the source; it says so before it reads a source."""
    flags = ["-Winvalid-pch", *header.flags, *unit.headers, *unit.flags]
    finished = run([*unit.compiler.command, *flags, "-fsyntax-only", "-x", "c++", os.devnull])
    return "-Winvalid-pch" not in finished.output


def _get(unit: Unit, flags: Sequence[str], torch: LibTorch, cache: Cache) -> Precompiled | None:
    flags = [*torch.header_flags(TENSORS), *flags]
    suffix = "gch" if unit.compiler.family == "gcc" else "pch"
    text = f"#include <{_HEADER}>\n"
    subject = f"<{_HEADER}> of PyTorch {torch.version}"

    def make(work: Path) -> BuildOutput:
        source = work / "torch.h"
        source.write_text(text, encoding="utf-8")
        output, depfile = work / f"torch.h.{suffix}", work / "torch.d"
        names = ["-MD", "-MF", str(depfile), "-MT", "object", "-o", str(output), str(source)]
        with progress(f"precompiling the headers of PyTorch {torch.version}, once"):
            finished = run([*unit.compiler.command, *flags, "-x", "c++-header", *names])
        if finished.code:
            raise failed(subject, "cannot be precompiled", finished)
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
        cached = cache.get(request, [subject], make, kind="other")
    except BuildError:
        return None  # the compile of the source itself will report what is wrong with these headers
    header = Path(cached.path)
    plain = header.with_suffix("")
    with contextlib.suppress(OSError):
        if not plain.exists():  # gcc falls back to the plain header if it cannot use the precompiled one
            atomic.write_text(plain, text)
    flags_to_use = ("-include", str(plain)) if suffix == "gch" else ("-include-pch", str(header))
    return Precompiled(flags_to_use, tuple(item.path for item in cached.result.inputs))


def _can_use(unit: Unit) -> bool:
    if unit.source.language != "c++" or unit.compiler.family not in ("gcc", "clang"):
        return False
    match = re.search(_HEAVY_INCLUDE, unit.source.text)
    return match is not None and re.search(_FIRST_DEFINE, unit.source.text[: match.start()]) is None
