"""``polyop completion bash``: print the script by which a shell completes verbs and options.

The script is written by shtab and is complete in itself, so a TAB starts no Python. (argcomplete starts
``polyop`` at each TAB, which takes longer than a person waits.)
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from ..core.errors import HostError
from .terminal import say

SHELLS = {
    "bash": "polyop completion bash > ~/.local/share/bash-completion/completions/polyop",
    "zsh": "polyop completion zsh > DIR/_polyop, for a DIR of $fpath",
    "fish": "polyop completion fish > ~/.config/fish/completions/polyop.fish",
}
"""Shell -> where its script belongs."""
PATHS = ("module", "library", "wheel", "sources", "output", "header", "operators", "targets", "folder")
"""The arguments of verbs that are files or folders."""


def add(verbs: Any) -> None:
    """Add the verb to the parser of ``polyop``."""
    parser = verbs.add_parser(
        "completion",
        help="print the completion script of a shell",
        description="Print the script with which a shell completes verbs, options and files. It needs shtab.",
        epilog="\n".join(f"  {line}" for line in SHELLS.values()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", choices=tuple(SHELLS))
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the script; return 0. Raises ``HostError`` without shtab."""
    try:
        import shtab
    except ImportError:
        hint = "pip install shtab"
        raise HostError("polyop completion", "needs shtab, which is not installed", hint=hint) from None
    from .main import parser

    top = parser()
    for action in _actions(top):
        if action.dest in PATHS and not action.choices:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    say(shtab.complete(top, shell=options.shell))
    return 0


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield the arguments of a parser and of those below it."""
    for action in parser._actions:  # noqa: SLF001 - argparse has no public list of them
        yield action
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - the same
            for inner in action.choices.values():
                yield from _actions(inner)
