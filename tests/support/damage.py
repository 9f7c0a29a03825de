"""Damage to files, as a disk does it."""

import os
from pathlib import Path


def flip_a_byte(path: Path) -> None:
    """Change one bit in the middle of a file, which keeps its size and times."""
    times = path.stat()
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
