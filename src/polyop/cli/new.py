"""``polyop new myops``: write a project for an operator library."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ..wheel.project import new_project


def add(subparsers: Any) -> None:
    """Add the verb to the parser of ``polyop``."""
    parser = subparsers.add_parser(
        "new",
        help="start a project that builds a wheel of operators",
        description="Write a project with C++ operators, a Python package, tests and graph mode. It builds "
        "one wheel for all frameworks and all Pythons.",
    )
    parser.add_argument("name", help="of the package, and the namespace of its operators")
    parser.add_argument("--folder", help="where to write it (default: a folder of that name here)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write the project and print the next command; return 0. Raises ``ArgumentValueError``."""
    folder = Path(options.folder or options.name)
    for path in new_project(options.name, folder):
        print(path)
    print(f"\nnext: cd {folder} && pip install . pytest && pytest")
    return 0
