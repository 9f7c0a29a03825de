"""``polyop explain``: which kernel an operator takes for given inputs, and why not the others."""

from __future__ import annotations

import argparse
import ast
import re
from typing import Any

from ..call import registry
from ..call.explain import explain
from ..core.dtypes import dtype
from ..core.errors import ArgumentValueError
from ..core.spec import Spec
from .load import load


def add(verbs: Any) -> None:
    """Add the verb to the parser."""
    verb = verbs.add_parser("explain", help="say which kernel an operator takes, and why not the others")
    verb.add_argument("module", help="a Python file or module that defines the operator")
    verb.add_argument("operator", nargs="?", help="namespace::name; all of the module's without it")
    verb.add_argument(
        "--input", action="append", default=[], help="a spec per tensor, as float32[4,4] or cuda:float32[4]"
    )
    verb.add_argument(
        "--attribute",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="the value of an attribute, as factor=2.0",
    )
    verb.set_defaults(verb="explain")


def run(options: argparse.Namespace) -> int:
    """Print the explanation of one operator, or of all that the module defines."""
    load(options.module)
    bound = [registry.find(options.operator)] if options.operator else list(registry.operators())
    inputs = tuple(map(parse_spec, options.input))
    attributes = dict(map(parse_attribute, options.attribute))
    known = {argument.name for operator in bound for _, argument in operator.schema.attributes()}
    if set(attributes) - known:
        rule = f"must name an attribute: {', '.join(sorted(known)) or 'there are none'}"
        raise ArgumentValueError("--attribute", rule, repr(min(set(attributes) - known)))
    for number, operator in enumerate(bound):
        print(("\n" if number else "") + explain(operator, inputs, attributes))
    return 0


def parse_attribute(text: str) -> tuple[str, Any]:
    """Return name and value of ``name=value``; a value that is no Python literal is text.

    >>> parse_attribute("sizes=[2, 3]"), parse_attribute("mode=sum")
    (('sizes', [2, 3]), ('mode', 'sum'))
    """
    name, sign, value = text.partition("=")
    if not sign:
        raise ArgumentValueError("--attribute", "must look like factor=2.0", repr(text))
    try:
        return name.strip(), ast.literal_eval(value.strip())
    except (ValueError, SyntaxError):
        return name.strip(), value.strip()


def parse_spec(text: str) -> Spec:
    """Return the spec that ``[device:]dtype[sizes]`` describes.

    >>> str(parse_spec("float32[2,3]"))
    'float32[2, 3]'
    """
    match = re.fullmatch(r"(?:(\w+):)?(\w+)\[([\d, ]*)\]", text.strip())
    if match is None:
        raise ArgumentValueError("--input", "must look like float32[4,4] or cuda:float32[4]", repr(text))
    sizes = tuple(int(size) for size in match[3].split(",") if size.strip())
    return Spec(sizes, dtype(match[2]), match[1] or "cpu")
