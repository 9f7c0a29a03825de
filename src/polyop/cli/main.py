"""The command ``polyop``: find the file of the verb and run it."""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Sequence

from ..core import late
from ..core.errors import PolyopError

VERBS = ("demo", "build", "check", "explain", "inspect", "cache", "graph", "new", "audit", "export")


def parser() -> argparse.ArgumentParser:
    """Return the parser of all verbs."""
    top = argparse.ArgumentParser(
        prog="polyop", description="Custom operators, written once, called from every framework."
    )
    verbs = top.add_subparsers(dest="verb", required=True, metavar="VERB")
    for verb in VERBS:
        late.load("verb", verb).add(verbs)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb and return its exit code; a ``PolyopError`` is printed without a traceback.

    Any other exception is a bug of polyop and is not caught.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a file name may have bytes that are no valid text
            stream.reconfigure(errors="backslashreplace")
    options = parser().parse_args(arguments)
    try:
        code: int = late.load("verb", options.verb).run(options)
    except PolyopError as problem:
        print(f"polyop {options.verb}: {problem}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        return 0
    return code
