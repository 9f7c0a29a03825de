"""From rows to calls: a row names functions, how they are called, and the inputs to call them with."""

from __future__ import annotations

import dataclasses
import itertools
import re
import zlib
from collections.abc import Iterator

import numpy as np

FLOATS = "float32 float16"
REAL = FLOATS + " int32"
SHAPES = "2x3"


@dataclasses.dataclass(frozen=True)
class Row:
    """Names that are called alike. ``calls`` has argument lists, separated by ``;``.

    Names are ``ops.abs``, ``ops.Abs()`` and ``nn.ReLU()`` (objects that are called), ``Tensor.abs`` (the first
    argument is the tensor), and ``x +`` or ``x[...]`` are written as they are: a name of ``syntax`` is the call.
    ``inputs`` has identifiers; ``i:int64:2x3:below3`` has its own dtype, shape and kind of values.
    """

    names: str
    calls: str
    inputs: str = "x"
    dtypes: str = "float32"
    shapes: str = SHAPES
    kind: str = "any"
    gradient: bool = True  # in float32


@dataclasses.dataclass(frozen=True)
class Program:
    """A few statements that leave a ``result``: for cells with parameters, optimisers and transforms."""

    names: str
    text: str


@dataclasses.dataclass(frozen=True)
class Call:
    """One call: an expression or statements, and the inputs as (dtype, shape, kind of values)."""

    name: str
    text: str
    inputs: dict[str, tuple[str, tuple[int, ...], str]]
    gradient: bool

    def __str__(self) -> str:
        shown = ", ".join(f"{k}: {d}{list(s)}" for k, (d, s, _) in self.inputs.items())
        return f"{self.text}   with {shown}" if shown else self.text


def name_of(written: str) -> str:
    """Return the name that is offered: ``ops.Softmax`` of ``ops.Softmax(0)``."""
    return written.partition("(")[0]


def listed(names: str) -> list[str]:
    """Return the names of a row. Spaces inside parentheses do not separate."""
    return re.findall(r"[^\s(]+(?:\((?:[^()]|\([^()]*\))*\))?", names)


def calls_of(row: Row | Program) -> Iterator[Call]:
    """Yield the calls of a row, for each name, argument list, dtype and shape."""
    if isinstance(row, Program):
        yield Call(row.names, row.text.strip(), {}, False)
        return
    for dtype, shape in itertools.product(row.dtypes.split(), row.shapes.split()):
        inputs = {}
        for text in row.inputs.split():
            name, *own = text.split(":")
            kind, size, values = (
                (own + [dtype, shape, row.kind][len(own) :]) if own else (dtype, shape, row.kind)
            )
            inputs[name] = (kind, () if size == "0d" else tuple(map(int, size.split("x"))), values)
        for written, arguments in itertools.product(listed(row.names), row.calls.split(";")):
            used = {k: v for k, v in inputs.items() if re.search(rf"\b{k}\b", arguments)}
            differentiated = row.gradient and dtype == "float32"
            yield Call(name_of(written), expression(written, arguments.strip()), used, differentiated)


def expression(written: str, arguments: str) -> str:
    """Return the text of a call."""
    if written == "syntax":
        return arguments
    if written.startswith("Tensor."):
        first, _, others = arguments.partition(",")
        return f"{first.strip()}.{written[7:]}({others.strip()})"
    return f"{written}({arguments})"


def values(dtype: str, shape: tuple[int, ...], kind: str, name: str) -> np.ndarray:
    """Return an input: the same values in each process."""
    rng = np.random.default_rng(zlib.crc32(f"{shape} {kind} {name}".encode()))
    number = int(np.prod(shape))
    if kind.startswith("below"):
        return rng.integers(0, int(kind[5:]), shape).astype(dtype)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    spread = (rng.permutation(number) - (number - 1) / 2) / max(number / 5, 1)
    positive = abs(spread) + 0.25
    made = {
        "any": spread + 0.125,
        "positive": positive,
        "unit": spread / 4,
        "probability": (spread + 4) / 8,
        "simplex": positive / np.repeat(positive.reshape(*shape[:-1], -1).sum(-1), shape[-1] if shape else 1),
        "nan": np.where(rng.random(number) < 0.3, np.nan, spread),
        "inf": np.where(rng.random(number) < 0.3, np.inf, spread),
    }[kind].reshape(shape)
    return np.round(made * 3).astype(dtype) if np.issubdtype(dtype, np.integer) else made.astype(dtype)
