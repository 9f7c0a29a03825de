"""Zero padding: a sum that a condition limits reads a copy with zeros around it, and loses the condition.

    for o in range(m):                         for e in range(n):
        for i in range(n):                         x_padded[e + 1] = x[e]
            for p in range(3):          ->     for o in range(m):
                if 0 <= i + p - 1 < n:             for i in range(n):
                    y[o, i] += (                       for p in range(3):
                        x[i + p - 1]                       y[o, i] += x_padded[i + p] * w[o, p]
                        * w[o, p]
                    )

Register tiles take no conditions. Lanes run along the last axis of an operand. A condition on another axis
becomes bounds of the loop that sums, ``for p in range(max(0, 1 - i), min(3, n + 1 - i))``, which takes no
copy and leaves iterations out. Zero times a number is zero, but zero times an infinity is not, so the
other factors are looked through first: if one of them has an infinity or a NaN, the loops run as they were.
They also do where a factor has no element for an iteration that the condition excludes, and where the zeros
would be most of the copy: of a band around a diagonal, say.
The copy is made where a loop reads it again, as ``o`` does here. Elsewhere it costs more than the condition,
which ``index_set_splitting`` takes from the inside of loops.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ..analysis import affine, ranges
from ..analysis.bounds import is_inside, is_inside_in_loops
from ..analysis.cost import CONTRACTION_LOOPS
from ..analysis.guarded_sums import (
    Bound,
    GuardedSum,
    bounds_of_sums,
    guarded_sums,
    lanes_are_summed,
    limit_of_axis,
)
from ..analysis.polyhedra import Model
from ..analysis.strides import STRIDED, UNIT, stride
from ..ir.grammar import (
    BOOL,
    INT,
    TRUE,
    Assign,
    Buffer,
    Const,
    Expr,
    For,
    If,
    Kernel,
    Load,
    Op,
    Stmt,
    Store,
    Type,
    Var,
    call,
    names_of,
    statements,
    unused,
    walk,
)
from ..ir.note import Note
from ..ir.operate import operate
from ..ir.rewriter import loops_over, nested, rewrite, with_bodies, with_replaced
from ..ir.types import BYTE_FLOATS, NARROW, kind
from ..ir.uses import loads_of, scalars_beside, stored_by, variables_of
from ..program import Program
from .index_set_splitting import renamed_copy

MAX_PADDING = 4
"""A padded axis has fewer than so many times the elements of the operand's axis: else most would be zeros."""
GREATEST_FLOAT16 = 65504
"""A constant of at most this is finite in every dtype that an operand may have."""


@dataclass(frozen=True)
class Axis:
    """An index of an operand: from ``low`` to ``high``, of which the sum takes ``first`` to ``last``.

    All four are inclusive, and follow from sizes. ``padded``: a condition limits the index.
    """

    low: Expr
    high: Expr
    first: Expr
    last: Expr
    padded: bool


@dataclass(frozen=True)
class Padding:
    """A sum, its operand that is copied with zeros around it, and the other factors that may be infinite."""

    sum: GuardedSum
    load: Load
    axes: tuple[Axis | None, ...]
    """None for an axis that is copied whole: no condition limits it, or a bound of a loop does so instead."""
    bounds: tuple[Bound, ...]
    factors: tuple[str, ...]
    tests: tuple[Expr, ...]
    """What must hold of sizes: all reads are inside without the conditions, and the copy is not too large."""


Copies = dict[tuple[str, tuple[Axis | None, ...], tuple[Expr, ...]], str]
"""The copies of inputs, by input, axes and the tests around them: another nest reads the same."""


def pad_operands(program: Program) -> Program:
    """Return the program in which contractions under conditions read padded copies of an operand."""
    kernel, notes, used_names, copies = program.kernel, list[Note](), names_of(program.kernel), Copies()
    body: list[Stmt] = []
    for node in kernel.body:
        if isinstance(node, For) and (found := list(_paddings(program, node))):
            made = _with_copies(kernel, node, found, used_names, copies)
            if _are_inside(made, program):
                kernel, copies = replace(kernel, buffers=made.buffers), made.copies
                body += made.body
                notes += (Note(p.load.line, f"{p.load.buffer}: {_text(p)}", "pad_operands") for p in found)
                continue
        body.append(node)
    return program.with_(*notes, kernel=replace(kernel, body=tuple(body))) if notes else program


def _text(padding: Padding) -> str:
    """Return what became of a sum, for a note."""
    if any(padding.axes):
        return "read from a copy with zeros around it, so that its sum needs no condition"
    return "the condition on it is in the bounds of its loops"


def _are_inside(made: _Made, program: Program) -> bool:
    """Whether no new access needs a check: its error would be about what the author has not written."""
    model = Model(replace(program.kernel, body=made.body, buffers=made.buffers), program.session)
    new = made.buffers.keys() - program.kernel.buffers.keys()
    leaves = (leaf for leaf in model.leaves if any(a.target in new for a in leaf.accesses))
    return all(is_inside(model, leaf, a) for leaf in leaves for a in leaf.accesses if a.index)


# what can be padded


def _paddings(program: Program, nest: For) -> Iterator[Padding]:
    """Yield the sums of a nest that can lose their conditions."""
    kernel, changing = program.kernel, {*stored_by((nest,)), *program.owners}
    assigned = {s.name for s in statements((nest,)) if isinstance(s, Assign)}
    if assigned & scalars_beside(nest, kernel.body) or any(nest.var in o for o in program.owners.values()):
        return  # a second nest would need them too
    for found in guarded_sums(nest, kernel.attributes):
        factors = _factors(found.node.value)
        fixed = [e for e in factors if isinstance(e, Load)]
        variables = {*kernel.attributes, *(loop.var for loop in found.loops)}
        if any(not isinstance(e, (Load, Const)) or variables_of(e) - variables for e in factors):
            continue
        if any(e.buffer in changing or e.type.dtype in BYTE_FLOATS or loads_of(*e.index) for e in fixed):
            continue
        for load in fixed:
            others = [e for e in fixed if e is not load]
            if _is_reused(load, others, found.loops):
                padding = _of_contraction(program, nest, found, load, others)
            else:
                padding = _of_row(program, found, load)
            if padding is not None:
                yield padding
                break


def _of_row(program: Program, found: GuardedSum, load: Load) -> Padding | None:
    """Return a sum along rows, with its conditions as bounds; None if one cannot be a bound."""
    if not lanes_are_summed(found, load):
        return None
    bounds = bounds_of_sums(found, load, on_lanes=False)
    axes = _axes(program.kernel, found, load, bounds)
    if axes is None or _has_padding(axes):
        return None
    return Padding(found, load, (None,) * len(axes), _limits(bounds), (), ())


def _of_contraction(
    program: Program, nest: For, found: GuardedSum, load: Load, others: Sequence[Load]
) -> Padding | None:
    """Return a contraction whose operand is padded, or whose conditions are all bounds; None for others."""
    has_bounds = _has_lanes(nest, found, load)
    bounds = bounds_of_sums(found, load, on_lanes=True) if has_bounds else {}
    axes = _axes(program.kernel, found, load, bounds)
    if axes is None:
        return None
    if not _has_padding(axes):
        return Padding(found, load, (None,) * len(axes), _limits(bounds), (), ())
    if kind(load.type) == "f" and not _vanishes(found.node.value, load):
        return None
    checked = dict.fromkeys(e.buffer for e in others if kind(e.type) == "f")
    return Padding(found, load, axes, _limits(bounds), (*checked,), _tests(program, found, load, axes))


def _has_padding(axes: Sequence[Axis | None]) -> bool:
    return any(axis is not None and axis.padded for axis in axes)


def _limits(bounds: Mapping[int, Sequence[Bound]]) -> tuple[Bound, ...]:
    return tuple(bound for of_axis in bounds.values() for bound in of_axis)


def _has_lanes(nest: For, found: GuardedSum, load: Load) -> bool:
    """Whether lanes may run along the last axis of an operand: it and the results are side by side there.

    Elsewhere lanes run along another tensor, whose panel is packed once for one range of the sum.
    """
    stores = [node for node in statements((nest,)) if isinstance(node, Store)]
    along = [loop.var for loop in found.loops if stride(load, loop.var) == UNIT]
    return any(all(stride(store, var) in (UNIT, STRIDED) for store in stores) for var in along)


def _factors(value: Expr) -> list[Expr]:
    """Return the factors of a product, without casts to wider types around them."""
    if isinstance(value, Op) and value.name in ("*", "neg"):
        return [f for a in value.args for f in _factors(a)]
    if isinstance(value, Op) and value.name == "cast" and kind(value.type) == kind(value.args[0].type) == "f":
        return _factors(value.args[0])
    return [value]


def _is_reused(load: Load, others: Sequence[Load], loops: Sequence[For]) -> bool:
    """Whether some loop reads the operand again, and some loop another factor: a contraction."""
    variables = {loop.var for loop in loops}
    again = [bool(variables - variables_of(*e.index)) for e in (load, *others)]
    return len(loops) >= CONTRACTION_LOOPS and again[0] and any(again[1:])


def _vanishes(value: Expr, load: Load) -> bool:
    """Whether a product is zero where an operand is, if the other factors are finite in memory.

    A product of two of these may be infinite, and so may one that is cast to a narrower type.
    """
    match value:
        case Load():
            return value == load
        case Op(name="neg" | "cast", args=(a,)):
            return _vanishes(a, load)
        case Op(name="*", args=(a, b)):
            first, second = _vanishes(a, load), _vanishes(b, load)
            return (first or _stays_finite(a)) and (second or _stays_finite(b)) and (first or second)
    return False


def _stays_finite(factor: Expr) -> bool:
    """Whether a factor is finite if the element that it reads is."""
    match factor:
        case Const(value=value):
            return abs(value) <= GREATEST_FLOAT16
        case Op(name="neg", args=(a,)):
            return _stays_finite(a)
        case Op(name="cast", args=(a,)):
            wider = {a.type.dtype, "float64"} | ({"float32"} if a.type.dtype in NARROW else set())
            return factor.type.dtype in wider and _stays_finite(a)
    return isinstance(factor, Load)


def _tests(program: Program, found: GuardedSum, load: Load, axes: Sequence[Axis | None]) -> tuple[Expr, ...]:
    """Return what must hold of sizes so that a sum can lose its conditions."""
    tests, kernel, bounds = list[Expr](), program.kernel, found.ranges
    for axis, size in zip(axes, kernel.sizes_of(load.buffer), strict=True):
        if axis is not None:
            tests += (axis.first >= 0, axis.last < size)
            if axis.padded:
                tests.append(affine.simplified(axis.high - axis.low) < Const(MAX_PADDING, INT) * size)
    model = program.model
    (leaf,) = (leaf for leaf in model.leaves if leaf.node is found.node)
    for access in leaf.accesses:
        if access.node == load or not access.index:
            continue
        sizes = kernel.sizes_of(access.target)
        for axis_, (index, size) in enumerate(zip(access.node.index, sizes, strict=True)):
            low, high = (ranges.extreme(index, bounds, up=up) for up in (False, True))
            if low is None or high is None or is_inside_in_loops(model, leaf, access, axis_, found.loops):
                continue
            tests += (affine.simplified(low) >= 0, affine.simplified(high) < size)
    return tuple(test for test in dict.fromkeys(tests) if not program.model.holds(test))


def _axes(
    kernel: Kernel, found: GuardedSum, load: Load, bounds: Collection[int]
) -> tuple[Axis | None, ...] | None:
    """Return the conditions of a sum by axes of an operand; None if one is about something else.

    Those of the axes ``bounds`` are bounds of loops.
    """
    variables = {loop.var for loop in found.loops}
    limits: dict[int, tuple[list[Expr], list[Expr]]] = {}
    for form in found.forms:
        limit = limit_of_axis(form, load, variables)
        if limit is None:
            return None
        if limit.axis not in bounds:
            ends = limits.setdefault(limit.axis, ([], []))
            ends[limit.upper].append(affine.from_linear(limit.bound, {**found.leaves, **limit.leaves}))
    of_loops = found.ranges
    axes = [
        None if axis in bounds else _axis(index, of_loops, limits.get(axis))
        for axis, index in enumerate(load.index)
    ]
    known = [e for axis in axes if axis is not None for e in (axis.first, axis.last)]
    if any(axes[axis] is None for axis in limits) or variables_of(*known) - {*kernel.attributes}:
        return None
    return tuple(axes)


def _axis(index: Expr, bounds: ranges.Ranges, limits: tuple[list[Expr], list[Expr]] | None) -> Axis | None:
    """Return the range of an index; None where that does not follow from sizes."""
    low, high = ranges.extreme(index, bounds, up=False), ranges.extreme(index, bounds, up=True)
    if low is None or high is None or variables_of(low, high) & bounds.keys() or loads_of(low, high):
        return None
    # one operand of a clamp is a bound as well: the copy may be a little longer, and proofs have fewer pieces
    low, high = affine.simplified(_shortest(low, up=False)), affine.simplified(_shortest(high, up=True))
    lower, upper = limits or ([], [])
    first, last = affine.extreme("max", (low, *lower)), affine.extreme("min", (high, *upper))
    return Axis(low, high, affine.simplified(first), affine.simplified(last), padded=limits is not None)


def _shortest(bound: Expr, *, up: bool) -> Expr:
    """Return a bound with the shortest operand in place of each clamp: no less than it, or no more."""
    match bound:
        case Op(name="min" | "max" as clamp) if (clamp == "min") == up:
            operands = (_shortest(e, up=up) for e in affine.operands(clamp, bound))
            # a constant says nothing about sizes
            return min(operands, key=lambda e: (isinstance(e, Const), len(list(walk(e)))))
        case Op(name="+" | "-" as sign, args=(a, b)):
            return operate(sign, _shortest(a, up=up), _shortest(b, up=up == (sign == "+")))
    return bound


# the copies


@dataclass(frozen=True)
class _Made:
    """What comes in place of a nest, and all buffers and copies with it."""

    body: tuple[Stmt, ...]
    buffers: Mapping[str, Buffer]
    copies: Copies


def _with_copies(
    kernel: Kernel, nest: For, found: Sequence[Padding], used_names: set[str], known: Copies
) -> _Made:
    """Return what comes instead of a nest: copies, the nest that reads them, the old one for infinities."""
    buffers, body, copies = dict(kernel.buffers), list[Stmt](), dict(known)
    bare = dict[int, Stmt]()
    tests = tuple(dict.fromkeys(test for padding in found for test in padding.tests))
    for padding in found:
        load, key = padding.load, (padding.load.buffer, padding.axes, tests)
        if not any(padding.axes):
            bare[id(padding.sum.top)] = _without_conditions(padding, load)
            continue
        name = copies.get(key)
        if name is None:
            name = unused(f"{load.buffer}_padded", used_names)
            shape, copy = _copy(kernel, padding, name, used_names)
            buffers[name] = Buffer(name, load.type.dtype, shape, "local", load.line, zeroed=True)
            body.append(copy)
            copies |= {key: name} if kernel.buffers[load.buffer].role == "input" else {}
        index = tuple(
            i if axis is None else affine.simplified(i - axis.low)
            for i, axis in zip(load.index, padding.axes, strict=True)
        )
        bare[id(padding.sum.top)] = _without_conditions(padding, replace(load, buffer=name, index=index))
    changed = with_replaced(nest, bare)
    checked = list(dict.fromkeys(name for padding in found for name in padding.factors))
    before: list[Stmt] = []
    conditions = list(tests)
    if checked:
        flag = Var(unused("is_finite", used_names), BOOL)
        before = [Assign(flag.name, TRUE, "", nest.line)]
        body += (_check(kernel, name, flag, used_names, nest.line) for name in checked)
        conditions.append(flag)
    if tests and body:
        body = [If(affine.conjunction(tests), tuple(body), (), nest.line)]
    if conditions:
        exact = renamed_copy(replace(nest, body=_in_order(nest.body)), "_exact", used_names)
        changed = If(affine.conjunction(conditions), (changed,), (exact,), nest.line)
    return _Made((*before, *body, changed), buffers, copies)


def _copy(kernel: Kernel, padding: Padding, name: str, used_names: set[str]) -> tuple[tuple[Expr, ...], Stmt]:
    """Return the shape of a padded copy, and the loops that fill its inside."""
    load, shape, source, target = padding.load, list[Expr](), list[Expr](), list[Expr]()
    bounds: list[tuple[str, Expr, Expr]] = []
    for axis, size in zip(padding.axes, kernel.sizes_of(load.buffer), strict=True):
        var = unused(f"{name}_e{len(bounds)}", used_names)
        here = Var(var, INT)
        source.append(here)
        if axis is None:
            shape.append(size)
            target.append(here)
            bounds.append((var, Const(0, INT), size))
        else:
            length = ranges.length(axis.low, axis.high + 1)
            most = [Const(MAX_PADDING, INT) * size if axis.padded else size] if padding.tests else []
            shape.append(affine.extreme("min", (length, *most)))  # no memory for a copy that is not made
            target.append(affine.simplified(here - axis.low))
            bounds.append((var, axis.first, affine.simplified(axis.last + 1)))
    store = Store(name, tuple(target), replace(load, index=tuple(source)), "", load.line)
    return tuple(shape), nested([For(*bound, (), load.line) for bound in bounds], store)


def _without_conditions(padding: Padding, load: Load) -> Stmt:
    """Return the sum in loops without conditions, which reads ``load``."""
    loops = list[For]()
    for loop in padding.sum.free_first if padding.bounds else padding.sum.inner:
        lows = [e for bound in padding.bounds if bound.var == loop.var for e in bound.lows]
        highs = [e for bound in padding.bounds if bound.var == loop.var for e in bound.highs]
        lo, hi = affine.extreme("max", (loop.lo, *lows)), affine.extreme("min", (loop.hi, *highs))
        loops.append(replace(loop, lo=lo, hi=hi))
    return nested(loops, rewrite(padding.sum.node, lambda e: load if e == padding.load else e))


def _in_order(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """Return a body whose loops stay as they are: infinities are rare, and every pass takes its time."""
    nodes = (replace(node, hint="border") if isinstance(node, For) else node for node in body)
    return tuple(with_bodies(node, _in_order) for node in nodes)


def _check(kernel: Kernel, buffer: str, flag: Var, used_names: set[str], line: int) -> Stmt:
    """Return the loops that clear a flag if an element of a tensor is infinite or no number."""
    sizes = kernel.sizes_of(buffer)
    loops = [unused(f"{buffer}_f{axis}", used_names) for axis in range(len(sizes))]
    element = Load(buffer, tuple(Var(v, INT) for v in loops), Type(kernel.buffers[buffer].dtype), line)
    return nested(loops_over(loops, sizes, line), Assign(flag.name, call("isfinite", element), "min", line))
