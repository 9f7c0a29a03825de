"""The table of corresponding functions: for an operator of PyTorch, the same in JAX, MindSpore and NumPy.

A row of ``corresponding.yaml`` is an ATen name with its overload. For each framework it has an expression of
the arguments' names (``x`` for PyTorch's ``self``), and the cases in which the framework has nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from .corresponding_expression import filled, holds

TABLE = Path(__file__).with_name("corresponding.yaml")
TARGETS = {
    "jax": "import jax, jax.numpy as jnp",
    "mindspore": "import mindspore as ms; from mindspore import mint, nn, ops",
    "numpy": "import numpy as np",
}
"""Framework -> the imports that its expressions need."""
IGNORED = ("layout", "device", "pin_memory", "memory_format", "non_blocking")
"""Arguments of PyTorch about where a result lies: no other framework has them, and no value depends on them."""
NO_ROW = "it has no row in polyop's table of corresponding functions"


class Function(NamedTuple):
    """What a framework has for an operator."""

    expression: str
    unless: Mapping[str, str]
    """Condition on the arguments -> why there is nothing then."""


class Row(NamedTuple):
    """An operator of PyTorch, and what corresponds to it."""

    name: str
    differs: str
    """What a reader of the table should know; perhaps nothing."""
    functions: Mapping[str, Function]
    """Framework -> its function; a framework that has none is not there."""
    no_function: Mapping[str, str]
    """Framework -> why it has none, where there is more to say."""


class Answer(NamedTuple):
    """What corresponds to a call: an expression, or the reason why there is none."""

    expression: str | None
    reason: str = ""
    note: str = ""


@functools.cache
def table() -> Mapping[str, Row]:
    """Return the rows by name, as ``add.Tensor``; the overload ``default`` is left out.

    >>> table()["leaky_relu"].functions["jax"].expression
    'jax.nn.leaky_relu(x, negative_slope)'
    """
    rows: dict[str, Row] = {}
    loaded: dict[str, dict[str, Any]] = yaml.load(TABLE.read_text("utf-8"), yaml.CSafeLoader)
    for key, written in loaded.items():
        given = {one: _function(written[one]) for one in TARGETS if isinstance(written.get(one), (str, dict))}
        reasons = {one: written[f"no {one}"] for one in TARGETS if f"no {one}" in written}
        for name in key.split():
            rows[name] = Row(name, written.get("differs", ""), given, reasons)
    return rows


def _function(written: str | dict[str, Any]) -> Function:
    if isinstance(written, str):
        return Function(written, {})
    return Function(written["is"], written["unless"])


def row_of(name: str) -> Row | None:
    """Return the row of an operator, or None; one that writes in place has the row of the other.

    >>> row_of("relu_").name, row_of("add_.Tensor").name, row_of("no_such_operator")
    ('relu', 'add.Tensor', None)
    """
    base, dot, overload = name.partition(".")
    return table().get(name) or table().get(f"{base.removesuffix('_')}{dot}{overload}")


def answer(name: str, arguments: Mapping[str, Any], target: str) -> Answer:
    """Return what corresponds to a call of an ATen operator in a framework.

    >>> answer("leaky_relu", {"x": ..., "negative_slope": 0.2}, "jax").expression
    'jax.nn.leaky_relu(x, 0.2)'
    """
    row = row_of(name)
    if row is None:
        return Answer(None, NO_ROW)
    function = row.functions.get(target)
    if function is None:
        return Answer(None, row.no_function.get(target, f"{target} has no function for it"))
    for condition, reason in function.unless.items():
        try:
            if holds(condition, arguments):
                return Answer(None, reason)
        except Exception as problem:  # noqa: BLE001 - whatever the comparison of a symbol raises
            return Answer(None, f"it is not known before the run whether `{condition}`, and then {reason}: {problem}")
    return Answer(filled(function.expression, arguments), note=row.differs)
