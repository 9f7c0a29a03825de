"""``polyop new myops``: write a project for an operator library."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import Any

from ..wheel.installed_from import origin
from ..wheel.project import KINDS, new_project
from .terminal import say


def add(verbs: Any) -> None:
    """Add the verb to the parser of ``polyop``."""
    parser = verbs.add_parser(
        "new",
        help="start a project that builds a wheel of operators",
        description="Write a project with operators, a Python package, tests and a CI file. It builds one "
        "wheel for all frameworks and all Pythons; that of --kind torch is for one PyTorch.",
    )
    parser.add_argument("name", help="of the package, and the namespace of its operators")
    parser.add_argument("--folder", help="where to write it (default: a folder of that name here)")
    parser.add_argument(
        "--kind",
        choices=tuple(KINDS),
        default="cpp",
        help="operators in C++ with graph mode (cpp), loop kernels in Python, both (mixed), or operators of "
        "TORCH_LIBRARY (default: cpp)",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write the project and print the next commands; return 0. Raises ``ArgumentValueError``."""
    name = options.name.replace("-", "_")  # a project may be called my-operators, a package not
    folder = Path(options.folder or name)
    source = origin()
    for path in new_project(name, folder, options.kind, source):
        say(path)
    if name != options.name:
        say(f"\nthe package and the folder are called {name}, as no name of Python has a -")
    say(f"\nnext, in an environment with polyop:\n  cd {shlex.quote(str(folder))}")
    if source:  # pip would look for polyop on a package index, as the project needs it to build
        say(f"  pip wheel {shlex.quote(source)} --no-deps -w wheels")
        say('  export PIP_FIND_LINKS="$PWD/wheels"')
    say(f"  pip install{KINDS[options.kind].fields['isolation']} '.[test]'\n  pytest")
    return 0
