"""Weights as flat and as nested dictionaries, and the comparison with what a network expects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..core.dtypes import dtype
from ..core.errors import ArgumentTypeError, ArgumentValueError
from .weights_rules import Array


def nested(weights: Mapping[str, Any]) -> dict[str, Any]:
    """Return the dictionary with one level for each part of a name.

    >>> nested({"a.b.kernel": 1, "a.scale": 2})
    {'a': {'b': {'kernel': 1}, 'scale': 2}}
    """
    tree: dict[str, Any] = {}
    for name, value in weights.items():
        *path, last = name.split(".")
        below = tree
        for part in path:
            below = below.setdefault(part, {})
            if not isinstance(below, dict):
                raise ArgumentValueError(name, f"{part} is a tensor, and cannot have others in it")
        if last in below:
            raise ArgumentValueError(name, f"{last} has others in it, and cannot be a tensor")
        below[last] = value
    return tree


def flat(weights: Any) -> dict[str, Any]:
    """Return the tensors of nested dictionaries, or of a cell of MindSpore, by their whole names.

    >>> flat({"a": {"b": {"kernel": 1}, "scale": 2}})
    {'a.b.kernel': 1, 'a.scale': 2}
    """
    if hasattr(weights, "parameters_and_names"):
        weights = dict(weights.parameters_and_names())
    if not isinstance(weights, Mapping):
        seen = type(weights).__name__
        raise ArgumentTypeError("weights", "must be a dictionary of tensors or of dictionaries", seen)
    found: dict[str, Any] = {}
    for name, value in weights.items():
        if isinstance(value, Mapping):
            found |= {f"{name}.{rest}": leaf for rest, leaf in flat(value).items()}
        else:
            found[str(name)] = value
    return found


def epsilons(layers: Mapping[str, Any], like: Any) -> list[str]:
    """Return a line for each norm of a module, by its path, whose cell in ``like`` has another epsilon."""
    cells = dict(like.cells_and_names()) if hasattr(like, "cells_and_names") else {}
    problems = []
    for path, layer in layers.items():
        cell = cells.get(path)
        if not hasattr(layer, "eps") or type(cell).__name__ != type(layer).__name__:
            continue
        inner = getattr(cell, "bn2d", cell)  # BatchNorm3d computes with one of two dimensions
        epsilon = getattr(inner, "epsilon", getattr(inner, "eps", layer.eps))
        if epsilon != layer.eps:
            problems.append(f"{path}: epsilon {layer.eps}, where the network has {epsilon}")
    return problems


def matched(weights: Mapping[str, Array], like: Mapping[str, Any], others: Sequence[str] = ()) -> None:
    """Raise ``ArgumentValueError`` with every name, shape and dtype that differs, and other differences."""
    problems = [*others, *(f"{name}: missing" for name in like if name not in weights)]
    problems += [f"{name}: left over" for name in weights if name not in like]
    for name, value in weights.items():
        if name not in like:
            continue
        ours = tuple(value.shape), str(dtype(value.dtype))
        expected = tuple(like[name].shape), str(dtype(like[name].dtype))
        if ours != expected:
            problems.append(f"{name}: {ours[0]} {ours[1]}, where the network has {expected[0]} {expected[1]}")
    if problems:
        text = "\n".join(["the weights are not those of the network", *(f"  {line}" for line in problems)])
        raise ArgumentValueError("weights", text)
