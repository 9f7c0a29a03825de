"""Find the buffers without a dimension that a slice computes in part: sums, maxima, minima over the slice.

    for i in range(x.shape[0]):
        s += x[i]                  s is a sum over the slice
    y[0] = 2 * s                   y is one too: it is linear in s

The sum of the slices' results is the whole then. A value that needs the whole sum ends the proof.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..analysis.polyhedra import Model
from ..ir.grammar import Const, Expr, Load, Op, Store, Var, walk
from ..ir.printing import expression
from ..ir.uses import loads_of
from .dimension import NotSliced, author_name
from .sites import Site

REDUCTIONS = {"+": "sum", "max": "max", "min": "min"}
"""The operators whose partial results can be combined, and the claim's name."""


@dataclass
class Partial:
    """What is partial: its kind, "sum", "max" or "min", and the line that makes it so, by name."""

    kinds: dict[str, str] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)


def find_partial(model: Model, sites: Sequence[Site]) -> Partial:
    """Return what is partial; raises :class:`NotSliced` if a statement needs what slices have in part."""
    partial = Partial()
    for site in sites:
        if site.coordinate is not None and not site.writes_along:
            _add(partial, site.target, _reduction(site), site.line)
    while True:  # values that are linear in partial ones, and values that are linear in these
        count = len(partial.kinds)
        for site in sites:
            if site.coordinate is None:
                kind = _kind_of_value(site, partial)
                if kind is not None:
                    _add(partial, site.target, kind, site.line)
        if len(partial.kinds) == count:
            break
    for site in sites:
        _check_reads(site, partial)
        _check_other_writes(site, partial)
    for name in partial.kinds:
        buffer = model.kernel.buffers.get(name)
        if buffer is not None and buffer.role == "inplace" and partial.kinds[name] == "sum":
            raise NotSliced(
                partial.lines[name], f"{name} starts with what it holds, which would be added twice"
            )
    return partial


def _reduction(site: Site) -> str:
    op = site.leaf.node.op
    if op not in REDUCTIONS:
        loop = author_name(site.loop or "")
        how = "is a product" if op == "*" else f"keeps a value from one {loop} to the next"
        raise NotSliced(site.line, f"{site.target} {how}")
    return REDUCTIONS[op]


def _add(partial: Partial, name: str, kind: str, line: int) -> None:
    first = partial.kinds.setdefault(name, kind)
    partial.lines.setdefault(name, line)
    if first != kind:
        raise NotSliced(line, f"{name} is a {first} and a {kind}")


def _kind_of_value(site: Site, partial: Partial) -> str | None:
    """Return the kind of a value outside of the dimension's loops; None if it reads nothing partial.

    Raises :class:`NotSliced` if the value needs what slices have in part.
    """
    node = site.leaf.node
    names = _partial_names(node.value, partial)
    if not names:
        return None
    kinds = {partial.kinds[name] for name in names}
    kind = min(kinds)
    linear = kind == "sum" and node.op in ("", "+") and _is_linear(node.value, partial)
    copied = kind != "sum" and node.op in ("", kind) and _is_partial(_without_casts(node.value), partial)
    if len(kinds) == 1 and (linear or copied):
        return kind
    name = min(names)
    raise NotSliced(site.line, f"{expression(node.value)} needs the whole {partial.kinds[name]} {name} "
                               f"of line {partial.lines[name]}")  # fmt: skip


def _check_reads(site: Site, partial: Partial) -> None:
    """Refuse a statement along the dimension, or an index, that reads a partial value."""
    node = site.leaf.node
    read = {a.target for a in site.leaf.accesses if not a.write and a.node is not node}
    if site.coordinate is None:  # its value may be linear in them; conditions, bounds and indices may not
        read = {a.target for a in site.leaf.accesses if a.around is not None}
        read |= {n for i in _indices(node) for n in _partial_names(i, partial)}
        loads = loads_of(node.value)
        read |= {n for load in loads for i in load.index for n in _partial_names(i, partial)}
    for name in sorted(read & partial.kinds.keys()):
        kind, line = partial.kinds[name], partial.lines[name]
        raise NotSliced(site.line, f"the whole {kind} {name} of line {line} is read")


def _check_other_writes(site: Site, partial: Partial) -> None:
    """Refuse a write of something that is not partial to what is, unless slices can make it each for itself.

    A sum may start with 0 and be multiplied; a maximum may start with anything, be compared and be moved.
    """
    node, kind = site.leaf.node, partial.kinds.get(site.target)
    if kind is None or site.coordinate is not None or _partial_names(node.value, partial):
        return
    is_zero = isinstance(node.value, Const) and node.value.value == 0
    if kind == "sum" and (node.op == "*" or (node.op in ("", "+") and is_zero)):
        return
    if kind != "sum" and node.op in ("", "+", kind):
        return
    if kind == "sum" and node.op in ("", "+"):
        value = expression(node.value)
        raise NotSliced(site.line, f"each part of it would count {value} in {site.target} once more")
    name = site.target
    raise NotSliced(site.line, f"the whole {kind} {name} of line {partial.lines[name]} is needed here")


def _indices(node: object) -> tuple[Expr, ...]:
    return node.index if isinstance(node, Store) else ()


def _partial_names(expr: Expr, partial: Partial) -> set[str]:
    names = {e.buffer if isinstance(e, Load) else e.name for e in walk(expr) if isinstance(e, (Load, Var))}
    return names & partial.kinds.keys()


def _is_partial(expr: Expr, partial: Partial) -> bool:
    """Whether an expression is a partial scalar, or an element of a partial buffer."""
    match expr:
        case Var(name=name) | Load(buffer=name):
            return name in partial.kinds
    return False


def _without_casts(expr: Expr) -> Expr:
    """Return what is cast to real numbers: those casts keep the order, and others may wrap."""
    while isinstance(expr, Op) and expr.name == "cast" and _is_real(expr):
        expr = expr.args[0]
    return expr


def _is_real(expr: Expr) -> bool:
    return expr.type.dtype.startswith(("float", "bfloat"))


def _is_linear(expr: Expr, partial: Partial) -> bool:
    """Whether a value is a sum of partial sums, each multiplied by what is equal in all slices.

    Real numbers count as exact, and int64 as never wrapping; narrower integers do wrap.
    """
    match expr:
        case Load() | Var():
            return _is_partial(expr, partial)
        case Op(name="+" | "-", args=(a, b)):
            return _is_linear(a, partial) and _is_linear(b, partial)
        case Op(name="neg", args=(a,)):
            return _is_linear(a, partial)
        case Op(name="cast", args=(a,)):
            exact = _is_real(a) or a.type.dtype == "int64"
            return _is_real(expr) and exact and _is_linear(a, partial)
        case Op(name="*", args=(a, b)):
            return any(
                _is_linear(one, partial) and not _partial_names(other, partial)
                for one, other in ((a, b), (b, a))
            )
        case Op(name="/", args=(a, b)):
            return _is_linear(a, partial) and not _partial_names(b, partial)
        case Op(name="select", args=(condition, a, b)):
            return (
                not _partial_names(condition, partial) and _is_linear(a, partial) and _is_linear(b, partial)
            )
    return False
