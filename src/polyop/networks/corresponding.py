"""The table of corresponding functions: for an operator of PyTorch, the same in JAX, MindSpore and NumPy.

A row of ``corresponding.yaml`` is an ATen name with its overload. For each framework it has an expression of
the arguments' names (``x`` for PyTorch's ``self``), and the cases in which the framework has nothing.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from .corresponding_expression import filled, holds

TABLE = Path(__file__).with_name("corresponding.yaml")
TARGETS = {
    "jax": "import math, jax, jax.numpy as jnp",
    "mindspore": "import mindspore as ms; from mindspore import mint, nn, ops",
    "numpy": "import math, numpy as np, scipy.special",
}
"""Framework -> the imports that its expressions need."""
ONNX = "onnx"
"""The format whose translations PyTorch itself has."""
NAMES = {"jax": "JAX", "mindspore": "MindSpore", "numpy": "NumPy", ONNX: "ONNX"}
IGNORED = (
    *("layout", "device", "pin_memory", "memory_format", "non_blocking", "copy", "implicit", "path"),
    *("cudnn_enabled", "cudnn_enable", "sparse", "sparse_grad", "generator"),
)
"""Arguments of PyTorch about where a result lies or how it is computed: no value depends on them."""
ABSENT = {
    "dim": None,
    "keepdim": False,
    "dtype": None,
    "alpha": 1,
    "unbiased": True,
    "mode": "constant",
    "indexing": "ij",
    "divisor_override": None,
}
"""What an argument of a row stands for in an overload that does not have it."""
_XP = {"jax": "jnp", "numpy": "np"}
NO_ROW = "it has no row in polyop's table of corresponding functions"


class Function(NamedTuple):
    """What a framework has for an operator."""

    expression: str
    unless: Mapping[str, str]
    """Condition on the arguments -> why there is nothing then."""


class Row(NamedTuple):
    """An operator of PyTorch, and what corresponds to it."""

    name: str
    differs: Mapping[str, str]
    """Framework -> what no condition on the arguments tells; perhaps nothing."""
    functions: Mapping[str, Function]
    """Framework -> its function; a framework that has none is not there."""
    no_function: Mapping[str, str]
    """Framework -> why it has none, where there is more to say."""
    unread: tuple[str, ...]
    """The arguments of PyTorch that change no value here."""


class Answer(NamedTuple):
    """What corresponds to a call: an expression, or the reason why there is none."""

    expression: str | None
    reason: str = ""
    note: str = ""


@functools.cache
def table() -> Mapping[str, Row]:
    """Return the rows by name, as ``add.Tensor``; the overload ``default`` is left out.

    >>> table()["sigmoid"].functions["jax"].expression
    'jax.nn.sigmoid(x)'
    """
    rows: dict[str, Row] = {}
    loaded: dict[str, dict[str, Any]] = yaml.load(TABLE.read_text("utf-8"), yaml.CSafeLoader)
    for key, written in loaded.items():
        given = {one: function for one in TARGETS if (function := _function(written, one))}
        reasons = {one: written[f"no {one}"] for one in TARGETS if f"no {one}" in written}
        said = written.get("differs", "")
        differs = said if isinstance(said, dict) else dict.fromkeys(TARGETS, said)
        unread = tuple(written.get("unread", "").split())
        for name in key.split():
            rows[name] = Row(name, differs, given, reasons, unread)
    return rows


def _function(row: Mapping[str, Any], target: str) -> Function | None:
    """Return what a row has for a framework: of its own, or for several."""
    written = row.get(target) or (row.get("xp") if target in _XP else None) or row.get("all")
    if written is None:
        return None
    text, unless = (written, {}) if isinstance(written, str) else (written["is"], written["unless"])

    def own(expression: str) -> str:
        return re.sub(r"\bxp\b", _XP.get(target, "xp"), expression)

    return Function(own(text.strip()), {key: own(reason.strip()) for key, reason in unless.items()})


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
    'jnp.where(x > 0, x, 0.2 * x)'
    """
    row = row_of(name)
    if row is None:
        return Answer(None, NO_ROW)
    function = row.functions.get(target)
    if function is None:
        return Answer(
            None, row.no_function.get(target, f"polyop's table has no function of {NAMES[target]} for it")
        )
    arguments = {**ABSENT, **arguments}
    for condition, reason in function.unless.items():
        if refusal := _refusal(condition, reason, arguments):
            return Answer(None, refusal)
    return Answer(filled(function.expression, arguments), note=row.differs.get(target, ""))


def _refusal(condition: str, reason: str, arguments: Mapping[str, Any]) -> str:
    """Return the reason where a condition holds, a sentence where only the run tells, else nothing."""
    try:
        return reason if holds(condition, arguments) else ""
    except Exception as problem:  # noqa: BLE001 - whatever the comparison of a symbol raises
        return f"it is not known before the run whether {condition}: {problem}"
