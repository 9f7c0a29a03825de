"""``polyop export``: operators as one library that needs neither Python nor polyop."""

from __future__ import annotations

import argparse
from typing import Any

from ..build.show import line_per_file
from ..core.errors import ArgumentValueError
from ..export import export
from ..export.collect import DTYPES
from .load import find_operator, load, operators, split_target
from .terminal import say, say_json


def add(verbs: Any) -> None:
    """Add the verb to the parser of ``polyop``."""
    parser = verbs.add_parser(
        "export",
        help="compile operators into a library that needs neither Python nor polyop",
        description="Compile the operators of a Python file into one library, and write its C header beside "
        "it. C and C++ sources and loop kernels can be exported. The library is called through plain C "
        "functions, PyTorch, ONNX Runtime, XLA FFI and tvm-ffi.",
    )
    parser.add_argument(
        "module", metavar="MODULE_OR_FILE[:OPERATOR]", help="a .py file or a module that defines operators"
    )
    parser.add_argument("-o", "--output", required=True, metavar="OUT", help="the library, as libmyops.so")
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", help="the operators to export (default: all of the module)"
    )
    parser.add_argument(
        "--dtypes", metavar="T,...", help=f"dtypes of loop kernels that declare none ({','.join(DTYPES)})"
    )
    parser.add_argument(
        "--signature",
        action="append",
        default=[],
        metavar='"NAME=T[:,:], float"',
        help="dtypes and dimensions of a loop kernel's tensors; may be repeated",
    )
    parser.add_argument("--json", action="store_true", help="print the library and its operators as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Export, and print the path of the library with its operators; return 0."""
    file, operator = split_target(options.module)
    module = load(file)
    only = [*(options.only or ()), *([operator] if operator else ())]
    if only:
        chosen = [find_operator(name, module) for name in only]
    else:
        chosen = [one for one in operators(module) if not one.operator.part_of]
    signatures: dict[str, list[str]] = {}
    for text in options.signature:
        name, equals, signature = text.partition("=")
        if not equals:
            rule = "must be NAME=SIGNATURE"
            raise ArgumentValueError("--signature", rule, text, hint='as in "myops::scale=T[:], float"')
        signatures.setdefault(find_operator(name.strip(), module).name, []).append(signature)
    dtypes = options.dtypes.split(",") if options.dtypes else None
    with line_per_file():
        exported = export(chosen, options.output, signatures=signatures, dtypes=dtypes)
    if options.json:
        keys = ("name", "schema", "kind", "backward", "no_backward")
        rows = [{key: str(getattr(one, key)) or None for key in keys} for one in exported]
        say_json({"library": options.output, "operators": rows})
        return 0
    say(options.output)
    for one in exported:
        say(f"  {one.schema}")
        if one.no_backward:
            say(f"    its gradient is not exported: {one.no_backward}")
    return 0
