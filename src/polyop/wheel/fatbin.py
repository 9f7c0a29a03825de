"""Read from a library file which GPUs its CUDA code is for."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

from ..binary.elf import opened

_MAGIC = struct.pack("<I", 0xBA55ED50)
_HEADER = struct.Struct("<IHHQ")  # magic, version, bytes of this header, bytes after it
_ENTRY = struct.Struct("<HHIQ12xI")  # kind, version, bytes of this header, bytes after it, architecture
_KINDS = {1: "compute", 2: "sm"}  # PTX, which newer GPUs translate; machine code


def architectures(path: Path) -> list[str]:
    """Return the targets of the CUDA code in a library, as ``["sm_80", "sm_90", "compute_90"]``.

    ``compute`` is PTX, which newer GPUs can run too. The list is empty for a library without CUDA.
    Raises ``LibraryError`` for a damaged file.
    """
    with opened(path) as elf:
        data = elf.section(".nv_fatbin")
    targets = {(kind == 1, number) for kind, number in _entries(data) if kind in _KINDS}
    return [f"{_KINDS[1 if is_ptx else 2]}_{number}" for is_ptx, number in sorted(targets)]


def _entries(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield kind and architecture of each image; a linker concatenates the bundles of its inputs."""
    start = data.find(_MAGIC)
    while 0 <= start <= len(data) - _HEADER.size:
        _, _, header, size = _HEADER.unpack_from(data, start)
        at, end = start + header, min(start + header + size, len(data))
        while at + _ENTRY.size <= end:
            kind, _, before, after, number = _ENTRY.unpack_from(data, at)
            yield kind, number
            at += max(before + after, _ENTRY.size)
        start = data.find(_MAGIC, max(end, start + _HEADER.size))
