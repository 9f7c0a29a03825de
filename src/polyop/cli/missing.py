"""``polyop missing net.py:Net --to jax``: the operators of a PyTorch network that another framework lacks."""

from __future__ import annotations

import argparse
import inspect
import os
import sys
from pathlib import Path
from typing import Any

from ..core.errors import ArgumentTypeError, ArgumentValueError, HostError, one_line
from ..networks.corresponding import TARGETS
from .load import load, split_target
from .terminal import say, say_json

INPUTS = "example_inputs"


def add(verbs: Any) -> None:
    """Add the verb to the parser of ``polyop``."""
    parser = verbs.add_parser(
        "missing",
        help="the operators of a PyTorch network that another framework lacks",
        description="Trace a PyTorch network and print each operator that the other framework does not have, "
        "where the network uses it, and the line that supplies it. NETWORK is a module, a class of one, or a "
        f"function that returns a module, or (module, inputs). The file may hold {INPUTS}, a tuple or a "
        "function that returns one. A .pt2 file of torch.export is taken, too. The file is run. The exit "
        "code is 1 when an operator is missing.",
    )
    parser.add_argument("module", metavar="MODULE_OR_FILE[:NETWORK]", help="what defines the network")
    parser.add_argument(
        "--to", choices=(*TARGETS, "onnx"), default="jax", help="where it goes (default: jax)"
    )
    parser.add_argument("--all", action="store_true", help="also print the operators that are there")
    parser.add_argument("--json", action="store_true", help="print the operators as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print what is missing; return 1 if anything is, else 0. Raises ``ArgumentValueError``."""
    try:
        import torch  # noqa: F401
    except ImportError:
        raise HostError(
            "torch", "reads the network, and is not installed", hint="pip install torch"
        ) from None
    from ..networks.missing import as_json, missing
    from ..networks.traced import trace

    traced = trace(*_network(options.module))
    findings = missing(traced, options.to)
    lacking = [one for one in findings if one.is_missing]
    shown = findings if options.all else lacking
    if options.json:
        say_json(as_json(traced, options.to, shown))
        return int(bool(lacking))
    say(one_line(f"traced by {traced.way}: {len(traced.uses)} calls of {len(_names(findings))} operators"))
    for one in shown:
        say()
        say(
            one_line(
                f"{one.operator}  {'missing' if one.is_missing else 'there'}, called {_times(one.count)}"
            )
        )
        if one.reason:
            say(one_line(f"  {'because' if one.is_missing else 'differs'}: {one.reason}"))
        say(one_line(f"  write: {one.line}"))
        for place in one.places[:_PLACES]:
            say(one_line(f"  at {_relative(place)}"))
        if len(one.places) > _PLACES:
            say(f"  and at {len(one.places) - _PLACES} more places")
    say()
    if options.to in TARGETS and shown:
        say(f"the lines need: {TARGETS[options.to]}{'; import polyop' if lacking else ''}")
    names = _names(lacking)
    say(
        f"missing in {options.to}: {len(names)} of {len(_names(findings))} operators"
        if names
        else f"{options.to} has all of them"
    )
    return int(bool(lacking))


_PLACES = 4
"""How many places of an operator are printed."""


def _names(findings: Any) -> set[str]:
    return {one.operator for one in findings}


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _relative(place: str) -> str:
    return place.removeprefix(f"{Path.cwd()}{os.sep}")


def _network(text: str) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """Return the network that a command line names, with its inputs and keywords."""
    import torch

    if text.endswith(".pt2"):
        if not Path(text).is_file():
            raise ArgumentValueError("network", "must be a file", repr(text))
        return torch.export.load(text), (), {}
    file, name = split_target(text)
    module = load(file)
    network, inputs = _made(_named(module, name, file), file)
    if inputs is None:
        inputs = _called(getattr(module, INPUTS, None), INPUTS)
    if inputs is None and isinstance(network, torch.nn.Module):
        rule = f"needs the inputs of the network: {INPUTS} = (torch.randn(1, 3, 224, 224),)"
        raise ArgumentValueError(file, rule, f"no {INPUTS}")
    if isinstance(inputs, dict):
        return network, (), inputs
    return network, tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,), {}


def _named(module: Any, name: str, file: str) -> Any:
    """Return what the name stands for; without a name the only network that the file itself defines."""
    import torch

    if name:
        if not hasattr(module, name):
            raise ArgumentValueError(
                file, f"has no {name!r}", hint=f"{', '.join(_candidates(module)) or 'none'}"
            )
        return getattr(module, name)
    values = [getattr(module, one) for one in _candidates(module)]
    made = [value for value in values if isinstance(value, torch.nn.Module)] or values
    if len(made) != 1:
        listed = ", ".join(_candidates(module)) or "none"
        raise ArgumentValueError(file, f"must be named with a network: {file}:NAME", f"it has {listed}")
    return made[0]


def _candidates(module: Any) -> list[str]:
    """Return the names of the networks, and of the classes of networks, that the file defines."""
    import torch

    return [
        name
        for name, value in vars(module).items()
        if isinstance(value, torch.nn.Module)
        or (
            isinstance(value, type)
            and issubclass(value, torch.nn.Module)
            and value.__module__ == module.__name__
        )
    ]


def _made(value: Any, file: str) -> tuple[Any, Any]:
    """Return (network, inputs or None) of a network, a class or a factory."""
    import torch

    if not isinstance(value, torch.nn.Module) and callable(value):
        try:
            inspect.signature(value).bind()
        except TypeError as problem:
            raise ArgumentTypeError(
                file, "takes a function without arguments that returns a network", problem
            ) from None
        value = value()
    if isinstance(value, tuple) and len(value) == 2:
        return _in_evaluation(value[0]), value[1]
    return _in_evaluation(value), None


def _in_evaluation(network: Any) -> Any:
    import torch

    if not isinstance(network, (torch.nn.Module, torch.export.ExportedProgram)):
        rule = "must be a torch.nn.Module, or a program of torch.export"
        raise ArgumentTypeError("network", rule, type(network).__name__)
    return network


def _called(value: Any, name: str) -> Any:
    del name
    return value() if callable(value) else value
