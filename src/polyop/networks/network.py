"""Finds the PyTorch network in a user's module, and the inputs that it is traced with."""

from __future__ import annotations

import inspect
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import torch

from ..core.errors import ArgumentTypeError, ArgumentValueError, PolyopError
from ..core.texts import did_you_mean

INPUTS = "example_inputs"
"""The name of a module's tuple or dictionary of inputs, or of a function that returns it."""


class Network(NamedTuple):
    """A network, or a program of ``torch.export``, with what it is called with."""

    network: Any
    inputs: tuple[Any, ...] = ()
    keywords: dict[str, Any] = {}  # noqa: RUF012 - never written


def saved(path: str) -> Network:
    """Return the program of a ``.pt2`` file. Raises ``ArgumentValueError`` if it cannot be loaded."""
    if not Path(path).is_file():
        raise ArgumentValueError("network", "must be a file", repr(path))
    try:
        return Network(torch.export.load(path))
    except Exception as problem:
        hint = (
            "if it calls operators of a package, import that in a Python file with program = "
            "torch.export.load(...), and name file.py:program"
        )
        raise ArgumentValueError("network", f"{path} cannot be loaded: {problem}", hint=hint) from problem


def of_module(module: ModuleType, name: str, file: str) -> Network:
    """Return the network that has a name in a module; without a name, its only one.

    The name is that of a module of PyTorch, of a class of them, or of a function that returns one, or
    (network, inputs). Else the inputs are the module's ``example_inputs``.

    Raises ``ArgumentValueError`` and ``ArgumentTypeError``, with the file and what it has.
    """
    value = _called(_named(module, name, file), file)
    network, inputs = value if isinstance(value, tuple) and len(value) == 2 else (value, None)
    if isinstance(network, torch.export.ExportedProgram):
        return Network(network)
    if not isinstance(network, torch.nn.Module):
        rule = "must be a torch.nn.Module, or a program of torch.export"
        raise ArgumentTypeError(f"{file}, {name or 'the network'}", rule, type(network).__name__)
    if inputs is None:
        inputs = getattr(module, INPUTS, None)
        inputs = _called(inputs, file) if callable(inputs) else inputs
    if inputs is None:
        hint = f"write {INPUTS} = (torch.randn(1, 3, 224, 224),) into the file, or return (network, inputs)"
        raise ArgumentValueError(file, "has no inputs to trace the network with", hint=hint)
    if isinstance(inputs, dict):
        return Network(network, (), inputs)
    return Network(network, tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,))


def _named(module: ModuleType, name: str, file: str) -> Any:
    """Return what a name stands for; without one, the only network or class of networks of the module."""
    here = {key: value for key, value in vars(module).items() if _is_network(value, module)}
    listed = f"it has {', '.join(here) or 'none'}"
    if name:
        if not hasattr(module, name):
            hint = did_you_mean(name, list(vars(module))) or listed
            raise ArgumentValueError(file, f"has no {name!r}", hint=hint)
        return getattr(module, name)
    made = [value for value in here.values() if isinstance(value, torch.nn.Module)] or list(here.values())
    if len(made) != 1:
        raise ArgumentValueError(file, "needs the name of a network", hint=f"write {file}:NAME; {listed}")
    return made[0]


def _is_network(value: Any, module: ModuleType) -> bool:
    if isinstance(value, type):
        return issubclass(value, torch.nn.Module) and value.__module__ == module.__name__
    return isinstance(value, torch.nn.Module)


def _called(value: Any, file: str) -> Any:
    """Return a network, or what a class or a function returns; an exception names the file and the line."""
    if isinstance(value, torch.nn.Module) or not callable(value):
        return value
    subject = f"{file}, {getattr(value, '__name__', 'the function')}"
    try:
        inspect.signature(value).bind()
    except TypeError as problem:
        hint = f"write def made(): return Net(4), (torch.randn(2, 4),), and name file.py:made: {problem}"
        raise ArgumentValueError(subject, "needs arguments", hint=hint) from None
    try:
        return value()
    except PolyopError:
        raise
    except Exception as problem:
        last = traceback.extract_tb(problem.__traceback__)[-1]
        rule = f"raised {type(problem).__name__}: {problem}"
        raise ArgumentValueError(subject, rule, where=f"{last.filename}:{last.lineno}") from problem
