"""Which GPUs the CUDA code in a library is for, read from the file."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

from ..binary.elf import opened

_MAGIC = struct.pack("<I", 0xBA55ED50)
_HEADER = struct.Struct("<IHHQ")  # magic, version, bytes of this header, bytes after it
_ENTRY = struct.Struct("<HHIQ12xI")  # kind, version, bytes of this header, bytes after it, architecture
_KINDS = {1: "compute", 2: "sm"}  # PTX, which newer GPUs translate, and code


def architectures(path: Path) -> list[str]:
    """Return what the CUDA code of a library is for, as ``["sm_80", "sm_90", "compute_90"]``.

    ``compute`` is PTX, which newer GPUs run, too. Empty for a library without CUDA. Raises
    ``LibraryError`` for a damaged file.
    """
    with opened(path) as elf:
        data = elf.section(".nv_fatbin")
    found = {(kind == 1, number) for kind, number in _entries(data) if kind in _KINDS}
    return [f"{_KINDS[1 if is_text else 2]}_{number}" for is_text, number in sorted(found)]


def _entries(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield kind and architecture of each image; a linker puts many bundles one after another."""
    place = data.find(_MAGIC)
    while 0 <= place <= len(data) - _HEADER.size:
        _, _, header, size = _HEADER.unpack_from(data, place)
        at, end = place + header, min(place + header + size, len(data))
        while at + _ENTRY.size <= end:
            kind, _, before, after, number = _ENTRY.unpack_from(data, at)
            yield kind, number
            at += max(before + after, _ENTRY.size)
        place = data.find(_MAGIC, max(end, place + _HEADER.size))
