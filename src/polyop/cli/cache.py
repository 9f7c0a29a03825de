"""``polyop cache``: list the build cache with its size limit, or clear it."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from ..build.entries import Entry, clear, entries
from ..build.eviction import VARIABLE, cache_limits
from ..build.paths import cache_dir
from ..core.texts import bytes_text
from .terminal import say, say_json

_DAY = 86400.0


def add(verbs: Any) -> None:
    """Add the verb to the parser of ``polyop``."""
    parser = verbs.add_parser(
        "cache",
        help="list or clear the build cache",
        description="The cache of built libraries and their objects; without an action, list it. "
        "POLYOP_CACHE_DIR names another folder, POLYOP_CACHE_SIZE another bound than 5 GiB and 90 days.",
    )
    parser.add_argument("--json", action="store_true", help="as list --json")
    actions = parser.add_subparsers(dest="action", metavar="list|clear|path")
    listing = actions.add_parser("list", help="what is in it, the last used first, and its bound")
    listing.add_argument(
        "--json",
        action="store_true",
        default=argparse.SUPPRESS,
        help="print it as JSON; times are seconds since 1970",
    )
    clearing = actions.add_parser("clear", help="remove entries that no process uses")
    clearing.add_argument(
        "--older-than", type=float, metavar="DAYS", help="only those not used for so many days"
    )
    actions.add_parser("path", help="print its folder")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """List the cache, clear it or print its folder; return 0. Raises ``CacheError``."""
    if options.action == "path":
        say(cache_dir())
    elif options.action == "clear":
        removed, kept = clear(None if options.older_than is None else options.older_than * _DAY)
        in_use = f"; {_count(kept)} in use stay" + ("s" if kept == 1 else "") if kept else ""
        say(f"{_count(removed)} removed from {cache_dir()}{in_use}")
    elif options.json:
        say_json(_facts())
    else:
        _list()
    return 0


def _facts() -> dict[str, Any]:
    limit = cache_limits()
    rows = [
        {
            "key": e.key,
            "kind": e.kind,
            "bytes": e.size,
            "built": e.created,
            "used": e.used,
            "in_use": e.in_use,
            "sources": e.sources,
        }
        for e in entries()
    ]
    return {"folder": str(cache_dir()), "max_bytes": limit.size, "max_seconds": limit.age, "entries": rows}


def _list() -> None:
    listed, limit = entries(), cache_limits()
    for entry in listed:
        say(_line(entry))
    total = bytes_text(sum(entry.size for entry in listed))
    say(f"{_count(len(listed))}, {total}, in {cache_dir()}")
    size = "any size" if limit.size is None else bytes_text(limit.size)
    age = "any age" if limit.age is None else f"{limit.age / _DAY:.0f} days unused"
    say(f"bound: {size}, {age} ({VARIABLE}); what is in use stays")
    repairs = cache_dir() / "repairs.log"
    if repairs.is_file():
        count = len(repairs.read_text(encoding="utf-8", errors="replace").splitlines())
        say(f"damage was found and made good {count} time{'s' if count != 1 else ''}: {repairs}")


def _line(entry: Entry) -> str:
    names = ", ".join(Path(name).name if name.startswith("/") else name for name in entry.sources)
    names += " (object)" if entry.kind == "object" else ""
    built, used = _age(entry.created), "in use now" if entry.in_use else f"used {_age(entry.used)} ago"
    return f"{entry.key[:12]}  {bytes_text(entry.size):>9}  built {built} ago, {used:<16}  {names}"


def _age(since: float) -> str:
    """Return how long ago a time is, in a unit that suits it.

    >>> _age(time.time() - 7300)
    ' 2 h'
    """
    seconds = max(0.0, time.time() - since)
    for unit, size in (("d", _DAY), ("h", 3600.0)):
        if seconds >= size:
            return f"{seconds / size:2.0f} {unit}"
    return f"{seconds / 60:2.0f} min"


def _count(number: int) -> str:
    return f"{number} {'entry' if number == 1 else 'entries'}"
