"""``polyop bench``: time an operator beside peers and beside the roofs of the machine."""

from __future__ import annotations

import argparse
import functools
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from ..call.bound import BoundOperator
from ..core.errors import ArgumentValueError, BuildError
from .explain import parse_attribute, parse_spec
from .load import add_target, find_operator, load, target
from .terminal import say

SLOWER = 3
"""The exit code where a row is slower than in an earlier run."""
CODES = """exit codes:
  0  measured
  1  an error, or a peer whose values differ from ours
  3  with --compare, a row is slower than in the earlier run, beyond noise
"""


def add(verbs: Any) -> None:
    """Add the verb to the parser."""
    verb = verbs.add_parser(
        "bench",
        help="time an operator beside peers and the roofs of the machine",
        description="Time an operator and its peers in turns, in many short slices. Times are medians; the "
        "ratio is that of neighbouring slices, below 1 where polyop is faster. The roof is the least time "
        "that this machine allows for the bytes and the operations of the call.",
        epilog=CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_target(verb)
    add_inputs(verb)
    verb.add_argument(
        "--against",
        action="append",
        default=[],
        metavar="PEER",
        help="torch:silu, 'torch:softmax(dim=-1)', jax:jax.nn.silu, numpy:exp, or FILE:function",
    )
    verb.add_argument("--gradient", action="store_true", help="time a call together with its gradient")
    verb.add_argument(
        "--host", default="numpy", help="whose tensors are passed without a peer, or to FILE:function"
    )
    verb.add_argument("--rounds", type=int, default=21, help="slices of each contestant (21)")
    verb.add_argument("--json", type=Path, metavar="OUT.json", help="write the rows and the machine")
    verb.add_argument("--compare", type=Path, metavar="OLD.json", help="say what is slower than there")
    verb.add_argument("--picture", type=Path, metavar="OUT.svg", help="draw times and the roofline")
    verb.set_defaults(verb="bench")


def add_inputs(verb: Any) -> None:
    """Add the options that say which inputs an operator gets."""
    verb.add_argument(
        "--input", action="append", default=[], metavar="SPEC", help="a spec per tensor, as float32[4,4]"
    )
    verb.add_argument(
        "--attribute", action="append", default=[], metavar="NAME=VALUE", help="an attribute, as factor=2.0"
    )
    verb.add_argument(
        "--from",
        dest="recorded",
        action="append",
        type=Path,
        metavar="CALLS.json",
        help="the inputs of recorded calls; again for more files",
    )


Inputs = tuple[BoundOperator, tuple[Any, ...], dict[str, Any]]


@functools.cache
def load_once(name: str) -> ModuleType:
    """Return a module; a file that is named twice defines its operators once."""
    return load(name)


def cases(options: argparse.Namespace) -> list[Inputs]:
    """Return each operator with its inputs and attributes, from the options or from recorded calls."""
    file, name = target(options)
    module = load_once(file)
    if options.recorded is not None:
        from ..bench.recorded_calls import calls_of

        if options.input or options.attribute:
            raise ArgumentValueError("--from", "has inputs and attributes; leave --input and --attribute out")
        return calls_of(options.recorded, lambda each: find_operator(each, module), name)
    if name is None:
        raise ArgumentValueError("operator", "must be named, unless --from names recorded calls")
    bound = find_operator(name, module)
    attributes = dict(map(parse_attribute, options.attribute))
    return [(bound, tuple(map(parse_spec, options.input)), attributes)]


def run(options: argparse.Namespace) -> int:
    """Print a table for each set of inputs; return the exit code."""
    from ..bench import comparison
    from ..bench.as_text import table
    from ..bench.machine import machine
    from ..bench.peers import find_peer
    from ..bench.run import Settings, bench

    if options.rounds < 1:
        raise ArgumentValueError("--rounds", "must be 1 or more", options.rounds)
    earlier = comparison.read(options.compare) if options.compare else None
    rows = cases(options)
    peers = [find_peer(text, load_once, options.host) for text in options.against]
    settings = Settings(rounds=options.rounds, gradient=options.gradient, host=options.host)
    about = machine()
    if about["busy"]:
        say(f"the machine is busy (load {about['load']}): the times are less sure", file=sys.stderr)
    roofs = _roofs()

    def measured() -> list[Any]:
        results = []
        for bound, inputs, attributes in rows:
            if sys.stderr.isatty():
                say(f"timing {bound.name} ...", file=sys.stderr)
            results.append(bench(bound, inputs, attributes, peers, settings, roofs))
        return results

    results = measured()
    say("\n\n".join("\n".join(table(result)) for result in results))
    lines = [line for result in results for line in result.lines()]
    if options.json is not None:
        options.json.write_text(
            json.dumps({"machine": about, "rows": lines}, indent=1) + "\n", encoding="utf-8"
        )
    if options.picture is not None:
        from ..bench.picture import draw

        draw(results, options.picture)
    code = 1 if any(result.wrong for result in results) else 0
    if earlier is None:
        return code
    pairs = comparison.confirmed(
        earlier["rows"], lines, lambda _: [line for result in measured() for line in result.lines()]
    )
    say("\n".join(["", *comparison.describe(pairs, earlier["machine"], about)]))
    return SLOWER if pairs else code


def _roofs() -> Any:
    """Return the roofs of this machine, or None with a line on stderr if they cannot be measured."""
    from ..bench.roofline import measure_roofs

    try:
        return measure_roofs()
    except BuildError as problem:
        say(f"no roofs: {problem}", file=sys.stderr)
        return None
