"""Write what is proved of a kernel's dimensions, in index notation and as lines for an author.

for i in ...:                     dims="i k, k j -> i j"
    for j in ...:                 parallel="i j"
        for k in ...:       ->    sum="k"
            y[i, j] += x[i, k] * w[k, j]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...core.dims.entry import Binary, Expression, Name, Number
from ..analysis.affine import Linear, simplified
from ..ir.grammar import Const, Expr, Kernel, Op, Size, Var
from .derive import Slicing
from .dimension import Axis

Names = Mapping[Axis, str]
KINDS = ("parallel", "sum", "max", "min")


def entries(kernel: Kernel, slicings: Sequence[Slicing]) -> str | None:
    """Return the text of ``dims=``; None if the size of an output is no arithmetic of its grammar.

    The kernel is the one that the slicings were derived of. A tensor that is absent has an empty entry.
    """
    names = _names(slicings)
    inputs = [
        " ".join(names.get((name, axis), "_") for axis in range(len(kernel.buffers[name].outer_shape)))
        for name in kernel.parameters
        if name in kernel.buffers
    ]
    outputs = []
    for name in kernel.outputs:
        if kernel.buffers[name].role == "output":
            sizes = [_size(simplified(size), names) for size in kernel.buffers[name].outer_shape]
            if None in sizes:
                return None
            outputs.append(" ".join(map(str, sizes)))
    return f"{', '.join(inputs)} -> {', '.join(outputs)}".strip()


def claims(slicings: Sequence[Slicing]) -> dict[str, Any]:
    """Return the keyword arguments beside ``dims=``, without those that are empty.

    They are about the kernel as it is: what holds only for a placed slice is no claim.
    """
    names = _names(slicings)
    slicings = [row for row in slicings if not row.placed]
    rows: dict[str, Any] = {
        kind: " ".join(row.dimension.name for row in slicings if row.kind == kind) for kind in KINDS
    }
    rows["halo"] = {
        row.dimension.name: (_width(row.halo.before, names), _width(row.halo.after, names))
        for row in slicings
        if row.kind == "halo"
    }
    return {keyword: value for keyword, value in rows.items() if value}


def describe(kernel: Kernel, slicings: Sequence[Slicing]) -> Iterator[str]:
    """Yield the tensors with their dimensions, what is proved, and why other dimensions cannot be split."""
    names = _names(slicings)

    def tensor(name: str) -> str:
        axes = range(len(kernel.buffers[name].outer_shape))
        return f"{name}[{', '.join(names.get((name, axis), '_') for axis in axes)}]"

    present = [n for n in kernel.tensor_parameters if not kernel.buffers[n].absent]
    written = [n for n in kernel.outputs if kernel.buffers[n].role == "output"]
    yield f"{', '.join(map(tensor, present))} -> {', '.join(map(tensor, written))}"
    for keyword, value in claims(slicings).items():
        yield f"{keyword} {value if isinstance(value, str) else _halo_text(value)}"
    for row in slicings:
        if row.kind == "whole" or row.placed:
            source = kernel.source.get(row.line, "").strip()
            where = f", line {row.line}: {source}" if source else ""
            how = f"is {_placed_kind(row, names)}" if row.placed else "cannot be split"
            yield f"{row.dimension.name} {how}: {row.reason}{where}"


def _placed_kind(row: Slicing, names: Names) -> str:
    widths = (_width(row.halo.before, names), _width(row.halo.after, names))
    halo = "" if row.halo.is_zero else f" ({widths[0]} before, {widths[1]} after)"
    return f"{row.kind}{halo} for slices that know their place"


def _halo_text(halo: Mapping[str, tuple[Any, Any]]) -> str:
    return ", ".join(f"{name} ({before} before, {after} after)" for name, (before, after) in halo.items())


def _names(slicings: Sequence[Slicing]) -> dict[Axis, str]:
    return {axis: row.dimension.name for row in slicings for axis in row.dimension.axes}


def _width(form: Linear, names: Names) -> int | str:
    """Return a width as an int, or as arithmetic without blanks."""
    if not any(form[name] for name in form if name):
        return max(0, form.get("", 0))
    text = ""
    for name, coefficient in sorted(form.items(), key=lambda item: (not item[0], item[0])):
        word = _word(name, names) if name else ""
        term = (
            f"{abs(coefficient)}*{word}" if word and abs(coefficient) != 1 else word or str(abs(coefficient))
        )
        text += f"{'-' if coefficient < 0 else '+' if text else ''}{term}" if coefficient else ""
    return text


def _word(name: str, names: Names) -> str:
    """Return a size's dimension, or an attribute's name."""
    buffer, dot, axis = name.rpartition(".n")
    return names.get((buffer, int(axis)), name) if dot else name


def _size(expr: Expr, names: Names) -> Expression | None:
    """Return the size of an output as an expression of the grammar, or None."""
    match expr:
        case Const(value=int(value)) if value >= 0:
            return Number(value)
        case Var(name=name):
            return Name(name)
        case Size(buffer=buffer, axis=axis):
            word = names.get((buffer, axis))
            return None if word is None else Name(word)
        case Op(name="+" | "-" | "*" | "//" as sign, args=(a, b)):
            left, right = _size(a, names), _size(b, names)
            return None if left is None or right is None else Binary(sign, left, right)
    return None
