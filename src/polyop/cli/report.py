"""``polyop report``: one HTML page that shows an operator from its Python lines to its machine code."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from ..core.errors import ArgumentValueError
from .explain import parse_attribute, parse_mesh, parse_spec
from .load import add_target, find_operator, load, target
from .terminal import say


def add(verbs: Any) -> None:
    """Add the verb to the parser."""
    verb = verbs.add_parser(
        "report",
        help="write one HTML page of an operator: loops, passes, C, machine code, times, gradient",
        description="Write one HTML page of an operator for some inputs. It needs no server and loads "
        "nothing. The operator and its gradient are called and timed, unless --no-measure is given.",
    )
    add_target(verb)
    verb.add_argument(
        "--input", action="append", default=[], metavar="SPEC", help="a spec per tensor, as float32[4,4]"
    )
    verb.add_argument(
        "--attribute", action="append", default=[], metavar="NAME=VALUE", help="an attribute, as factor=2.0"
    )
    verb.add_argument(
        "-o", "--output", type=Path, metavar="FILE.html", help="where to write it (OPERATOR.html)"
    )
    verb.add_argument(
        "--against",
        action="append",
        default=[],
        metavar="PEER",
        help="measure a peer too: torch:silu, 'torch:softmax(dim=-1)', numpy:exp, FILE:function",
    )
    verb.add_argument("--no-measure", action="store_true", help="call nothing: leave times and roofs out")
    verb.add_argument(
        "--mesh", metavar="AXIS=DEVICES,...", help="the devices of the table of communication (devices=4)"
    )
    verb.set_defaults(verb="report")


def run(options: argparse.Namespace) -> int:
    """Write the page, print its path; return 0."""
    from ..report.report import report

    file, name = target(options)
    if name is None:
        raise ArgumentValueError("operator", "must be named")
    bound = find_operator(name, load(file))
    attributes = dict(map(parse_attribute, options.attribute))
    names = {argument.name for _, argument in bound.schema.attributes()}
    if set(attributes) - names:
        rule = f"must name an attribute: {', '.join(sorted(names)) or 'there are none'}"
        raise ArgumentValueError("--attribute", rule, repr(min(set(attributes) - names)))
    path = options.output or Path(f"{bound.schema.name}.html")
    made = report(
        bound,
        list(map(parse_spec, options.input)),
        attributes,
        against=options.against,
        load=load,
        measure=not options.no_measure,
        mesh=None if options.mesh is None else parse_mesh(options.mesh),
        progress=_progress,
    )
    say(made.save(path))
    return 0


def _progress(text: str) -> None:
    """Say on a terminal what takes a while; pipes stay quiet."""
    if sys.stderr.isatty():
        say(f"{text} ...", file=sys.stderr)
