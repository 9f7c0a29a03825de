"""The command ``polyop``: find the file of the verb and run it."""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Sequence

from ..core import late
from ..core.errors import PolyopError
from ..core.texts import did_you_mean
from ..core.versions import version
from .terminal import say

NEXT = """first steps:
  polyop demo                                   one operator in every framework that is installed
  polyop new my-operators                       the project of a wheel
  polyop check my_operators.py                  shapes, values, gradients, memory, layouts
  polyop explain my_operators.py scaled --input 'float32[4,4]'   which kernel runs, and why
  polyop report my_operators.py scaled --input 'float32[4,4]'    one page, from Python to machine code
  polyop inspect libmyops.so                    what a library offers and needs

polyop VERB --help has the options of a verb.
"""
VERBS = (
    "demo",
    "build",
    "check",
    "explain",
    "inspect",
    "cache",
    "graph",
    "new",
    "missing",
    "audit",
    "export",
    "completion",
    "bench",
    "tune",
    "report",
)


def parser() -> argparse.ArgumentParser:
    """Return the parser of all verbs."""
    top = argparse.ArgumentParser(
        prog="polyop",
        description="Custom operators, written once, called from every framework.",
        epilog=NEXT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="store_true", help="print the version")
    verbs = top.add_subparsers(dest="verb", metavar="VERB")
    for verb in VERBS:
        late.load("verb", verb).add(verbs)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb and return its exit code; a ``PolyopError`` is printed without a traceback.

    Without a verb it prints the help, which ends with first steps. Any other exception is a bug of polyop and
    is not caught.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a file name may have bytes that are no valid text
            stream.reconfigure(errors="backslashreplace")
    top = parser()
    options = _parsed(top, sys.argv[1:] if arguments is None else list(arguments))
    if options.version:
        say(f"polyop {version()}")
        return 0
    if options.verb is None:
        top.print_help()
        return 0
    try:
        code: int = late.load("verb", options.verb).run(options)
    except PolyopError as problem:
        verb = f"polyop {options.verb}: "
        say(f"{verb}{str(problem).removeprefix(verb)}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        return 0
    return code


def _parsed(top: argparse.ArgumentParser, arguments: list[str]) -> argparse.Namespace:
    """Return the options; of an unknown verb or option the error names the nearest."""
    word = next((one for one in arguments if not one.startswith("-")), VERBS[0])
    if word not in VERBS:
        question = did_you_mean(word, VERBS) or f"they are {', '.join(VERBS)}"
        top.error(f"there is no verb {word!r}; {question}")
    options, unknown = top.parse_known_args(arguments)
    if unknown:
        verbs = next(action for action in top._actions if isinstance(action, argparse._SubParsersAction))  # noqa: SLF001 - argparse has no public list
        parser = verbs.choices.get(options.verb, top)
        known = [text for action in parser._actions for text in action.option_strings]  # noqa: SLF001 - the same
        near = did_you_mean(unknown[0].partition("=")[0], known)
        parser.error(f"unrecognized arguments: {' '.join(unknown)}{f'; {near}' if near else ''}")
    return options
