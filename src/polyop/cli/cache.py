"""``polyop cache``: what the build cache holds, and getting rid of it."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from ..kernels.build.entries import clear, entries
from ..kernels.build.paths import cache_dir

_DAY = 86400.0


def add(subparsers: Any) -> None:
    """Add the verb to the parser of ``polyop``."""
    parser = subparsers.add_parser(
        "cache",
        help="list or clear the build cache",
        description="The cache of built libraries. POLYOP_CACHE_DIR names another folder.",
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="list|clear|path")
    actions.add_parser("list", help="what is in it, the last used first")
    clearing = actions.add_parser("clear", help="remove entries")
    clearing.add_argument(
        "--older-than", type=float, metavar="DAYS", help="only those not used for so many days"
    )
    actions.add_parser("path", help="print its folder")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Do what is asked of the cache; return 0. Raises ``CacheError``."""
    if options.action == "path":
        print(cache_dir())
    elif options.action == "clear":
        count = clear(None if options.older_than is None else options.older_than * _DAY)
        print(f"{count} {'entry' if count == 1 else 'entries'} removed from {cache_dir()}")
    else:
        _list()
    return 0


def _list() -> None:
    found = entries()
    for entry in found:
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.used))
        names = ", ".join(Path(name).name if name.startswith("/") else name for name in entry.sources)
        print(f"{entry.key[:12]}  {_size(entry.size):>9}  used {used}  {names}")
    total = _size(sum(entry.size for entry in found))
    print(f"{len(found)} {'entry' if len(found) == 1 else 'entries'}, {total}, in {cache_dir()}")
    repairs = cache_dir() / "repairs.log"
    if repairs.is_file():
        count = len(repairs.read_text(encoding="utf-8").splitlines())
        print(f"damage was found and made good {count} time{'s' if count != 1 else ''}: {repairs}")


def _size(count: float) -> str:
    """Return a size for people.

    >>> _size(15128)
    '14.8 KiB'
    """
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"
