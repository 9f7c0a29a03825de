"""``polyop missing net.py:Net --to jax``: the operators of a PyTorch network that another framework lacks."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..core.errors import HostError, one_line
from ..networks.corresponding import ONNX, TARGETS
from .load import load, split_target
from .terminal import say, say_json


def add(verbs: Any) -> None:
    """Add the verb to the parser of ``polyop``."""
    parser = verbs.add_parser(
        "missing",
        help="the operators of a PyTorch network that another framework lacks",
        description="Trace a PyTorch network and print each operator that the other framework does not have, "
        "where the network uses it, and the line that supplies it. NETWORK is a torch.nn.Module, a class of "
        "them, or a function that returns one, or (network, inputs). Else the file has example_inputs: a "
        "tuple, a dictionary, or a function that returns it. A .pt2 file of torch.export is taken, too. The "
        "file is run. The exit code is 1 when an operator is missing.",
    )
    parser.add_argument("module", metavar="MODULE_OR_FILE[:NETWORK]", help="what defines the network")
    parser.add_argument(
        "--to", choices=(*TARGETS, ONNX), default="jax", help="where it moves to (default: jax)"
    )
    parser.add_argument(
        "--once",
        action="store_true",
        help="run the network once, without torch.export, which takes minutes where Python loops over the "
        "elements of a tensor",
    )
    parser.add_argument("--all", action="store_true", help="print the operators that are there, too")
    parser.add_argument("--json", action="store_true", help="print the operators as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print what is missing; return 1 if anything is, else 0. Raises ``PolyopError``."""
    try:
        from ..networks import network, onnx_translated
        from ..networks.missing import MISSING, THERE, UNKNOWN, as_json, missing
        from ..networks.traced import trace
    except ImportError as problem:
        rule = f"reads the network, and cannot be imported: {problem}"
        raise HostError("torch", rule, hint="pip install 'polyop[torch]'") from None
    if options.module.endswith(".pt2"):
        found = network.saved(options.module)
    else:
        file, name = split_target(options.module)
        found = network.of_module(load(file), name, file)
    split = onnx_translated.decompositions() if options.to == ONNX else None
    traced = trace(*found, split, export=not options.once)
    findings = missing(traced, options.to)
    lacking = [one for one in findings if one.state != THERE]
    shown = findings if options.all else lacking
    if options.json:
        say_json(as_json(traced, options.to, shown))
        return int(bool(lacking))
    total = _count(findings)
    say(one_line(f"traced by {traced.way}: {len(traced.uses)} calls of {total} operators"))
    for one in shown:
        _show(one)
    say()
    if options.to in TARGETS and shown:
        say(f"the lines need: {TARGETS[options.to]}{'; import polyop' if lacking else ''}")
    counts = {state: _count(one for one in lacking if one.state == state) for state in (MISSING, UNKNOWN)}
    told = ", ".join(f"{count} {state}" for state, count in counts.items() if count)
    say(f"{options.to}, of {total} operators: {told or 'all are there'}")
    return int(bool(lacking))


_PLACES = 4
"""How many places of an operator are printed."""


def _show(one: Any) -> None:
    """Print an operator: its state, the reason, the line, and some of its places."""
    say()
    say(one_line(f"{one.operator}  {one.state}, called {'once' if one.count == 1 else f'{one.count} times'}"))
    if one.reason:
        say(one_line(f"  {one.label}: {one.reason}"))
    say(one_line(f"  write: {one.line}"))
    if one.skeleton:
        say(one_line(f"  or, without PyTorch: {one.skeleton}"))
    if one.example:
        say(one_line(f"  a loop kernel to begin with: {one.example}, in polyop's repository"))
    for place in one.places[:_PLACES]:
        say(one_line(f"  at {place.removeprefix(f'{Path.cwd()}{os.sep}')}"))
    if len(one.places) > _PLACES:
        say(f"  and at {len(one.places) - _PLACES} more places")


def _count(findings: Iterable[Any]) -> int:
    return len({one.operator for one in findings})
