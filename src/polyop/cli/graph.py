"""``polyop graph``: convert operators for deployment graphs.

``reg-op header.h -o out.py`` writes the Python functions that build GE graphs.
``prototype ops.py:myops::add -o add.h`` writes the REG_OP header of an operator.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from ..core.errors import ArgumentValueError
from .load import find_operator, load, operators, split_target
from .terminal import say, say_json


def add(verbs: Any) -> None:
    """Add the verb to the parser."""
    verb = verbs.add_parser(
        "graph", help="operators in deployment graphs: REG_OP headers to Python, and back"
    )
    kinds = verb.add_subparsers(dest="kind", required=True, metavar="KIND")
    reg_op = kinds.add_parser(
        "reg-op",
        help="write the Python functions for the REG_OP prototypes of a header",
        description="Write one Python function for each REG_OP of a header; torchair puts their nodes into "
        "GE graphs. Operators that torchair cannot hold are left out and listed.",
    )
    reg_op.add_argument("header", help="a C++ header with REG_OP prototypes")
    _output(reg_op, "the Python file; '-' prints it")
    prototype = kinds.add_parser(
        "prototype",
        help="write the REG_OP header of operators",
        description="Write the REG_OP header of operators that a Python file or module defines.",
    )
    prototype.add_argument("operators", help="MODULE, or MODULE:namespace::name; a Python file or a module")
    prototype.add_argument("--name", help="of the GE operator (default: the operator's own in CamelCase)")
    _output(prototype, "the header; '-' prints it")
    verb.set_defaults(verb="graph")


def _output(parser: argparse.ArgumentParser, help_text: str) -> None:
    parser.add_argument("-o", "--output", default="-", metavar="OUT", help=help_text)
    parser.add_argument("--json", action="store_true", help="print what was written as JSON; needs -o")


def run(options: argparse.Namespace) -> int:
    """Write the file and print a summary; return 0, or 1 if nothing could be generated."""
    if options.json and options.output == "-":
        raise ArgumentValueError("--json", "needs -o OUT: the text itself is printed without it", "no -o")
    return _reg_op(options) if options.kind == "reg-op" else _prototype(options)


def _reg_op(options: argparse.Namespace) -> int:
    from ..graph import generate
    from ..graph.parse import read

    prototypes = read(options.header)
    if not prototypes:
        raise ArgumentValueError(
            options.header, "must have a REG_OP(Name) ... .OP_END_FACTORY_REG(Name)", "none"
        )
    generated = generate(prototypes, options.header)
    _write(options.output, generated.text)
    if options.json:
        skipped = {each.name: each.reason for each in generated.skipped}
        names = [each.name for each in prototypes if each.name not in skipped]
        say_json({"file": options.output, "operators": names, "skipped": skipped})
    else:
        say(f"{options.header}: {generated.summary}", file=sys.stderr)
        for each in generated.skipped:
            say(f"  {each.name} skipped as {each.reason}", file=sys.stderr)
    return 0 if len(generated.skipped) < generated.total else 1


def _prototype(options: argparse.Namespace) -> int:
    from ..graph import header, prototype_of

    file, name = split_target(options.operators)
    module = load(file)
    bound = [find_operator(name, module)] if name else operators(module)
    if options.name and len(bound) != 1:
        raise ArgumentValueError("--name", "is the name of one operator", f"{len(bound)} operators")
    if not bound:
        raise ArgumentValueError(file, "must define an operator", "none")
    guard = "CUSTOM_REG_OP_H_" if options.output == "-" else _guard(options.output)
    _write(options.output, header([prototype_of(each, options.name) for each in bound], guard))
    names = [each.name for each in bound]
    if options.json:
        say_json({"file": options.output, "operators": names})
    else:
        say(f"{file}: {', '.join(names)}", file=sys.stderr)
    return 0


def _guard(path: str) -> str:
    return "".join(c if c.isascii() and c.isalnum() else "_" for c in Path(path).name.upper()) + "_"


def _write(path: str, text: str) -> None:
    if path == "-":
        sys.stdout.write(text)  # a file as it is, for another program
        return
    target = Path(path)
    try:
        target.write_text(text, encoding="utf-8", errors="backslashreplace")  # names of files are in it
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise ArgumentValueError(str(path), f"could not be written: {reason}") from None
