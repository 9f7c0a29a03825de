"""Turn scattered additions into loops over the target's elements that gather them.

    for i in range(n):                     for i in range(n + 2):
        for p in range(3):                     y_all = 0.0
            y[i + p] += x[i] * w[p]   ->       for p in range(max(0, i - n + 1), min(3, i + 1)):
                                                   y_all += x[i - p] * w[p]
                                               y[i] += y_all

One iteration makes all additions to an element, so iterations can be threads and lanes. With a stride, as in
``y[2 * i + p]``, elements fall into *phases*: their index modulo the stride. Each phase runs its own part of
loop ``p``:

                                           for p_phase in range(2):
                                               for i in range(...):
                                                   for p in range(ceil_div(3 - p_phase, 2)):
                                                       y_all += x[i - p] * w[2 * p + p_phase]
                                                   y[2 * i + p_phase] += y_all

The adjoint of a stencil or of a convolution is such a nest, and so is a transposed convolution. Hückelheim
et al., Automatic differentiation of stencil loops with threading, arXiv 1907.02818 (2019).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ...core.locks import cached_property
from ..analysis import affine
from ..analysis.bounds import is_inside, is_inside_once_checked
from ..analysis.polyhedra import Access, Leaf, Model
from ..analysis.shifted_stores import Shift, are_shifted, shifts
from ..ir.derivatives import number
from ..ir.grammar import (
    INT,
    Assign,
    Const,
    Expr,
    For,
    If,
    Kernel,
    Size,
    Stmt,
    Store,
    Type,
    Var,
    call,
    names_of,
    perfect,
    statements,
    unused,
)
from ..ir.note import Note
from ..ir.rewriter import Place, substitute, with_statements
from ..ir.types import kind
from ..ir.uses import loads_of, tensors_of, variables_of
from ..program import AnyProgram
from .index_set_splitting import renamed_copy


@dataclass(frozen=True)
class Addition:
    """``target[index] += value`` where all of ``tests`` hold."""

    store: Store
    tests: tuple[Expr, ...] = ()


def scatter_to_gather(program: AnyProgram) -> AnyProgram:
    """Return the program in which nests that scatter additions gather them, element by element.

    A nest stays as it is if it does anything else, reads what it adds to, or has a loop that the author's
    schedule names.
    """
    kernel, notes, used_names = program.kernel, list[Note](), names_of(program.kernel)
    if not any(isinstance(s, Store) and s.op == "+" for s in statements(kernel.body)):
        return program

    kept = program.kept_loops()

    @functools.cache
    def model() -> Model:
        return Model(kernel, program.session)

    def change(node: Stmt, _: Place) -> list[Stmt] | None:
        if not isinstance(node, For):
            return None
        nest = _Nest.of(kernel, node, used_names)
        if nest is None or nest.loops.keys() & kept:
            return None
        writes = _writes(model(), nest)
        are_inside = all(is_inside(model(), leaf, access) for leaf, access in writes)
        if not are_inside and not _are_refused(model(), nest, writes):
            return None
        least = [] if are_inside else nest.least_indices(_unproved(writes))
        if any(isinstance(index, Const) for index in least):  # some count from the end
            return None
        text = f"{nest.target}: each element collects what is added to it"
        notes.append(Note(nest.additions[0].store.line, text, "scatter_to_gather"))
        if not least:
            return [nest.gathered()]
        around = renamed_copy(node, "_around", used_names)  # an index may count from the end
        return [*affine.guarded([index >= 0 for index in least], nest.gathered(), orelse=(around,))]

    body = with_statements(kernel.body, change)
    return program.with_(*notes, kernel=replace(kernel, body=body)) if notes else program


def _writes(model: Model, nest: _Nest) -> list[tuple[Leaf, Access]]:
    """Return the writes of a nest's additions."""
    stores = {id(a.store) for a in nest.additions}
    return [(x, a) for x in model.leaves if id(x.node) in stores for a in x.accesses if a.write]


def _unproved(writes: Sequence[tuple[Leaf, Access]]) -> set[int]:
    """Return the axes along which an addition may count from the end."""
    return {axis for _, access in writes for axis, index in enumerate(access.index) if index is None}


def _are_refused(model: Model, nest: _Nest, writes: Sequence[tuple[Leaf, Access]]) -> bool:
    """Whether a call with an addition beyond the tensor is refused before anything runs.

    A range of elements inside the tensor drops such an addition, where the author must see an error. For a
    derived kernel the forward has refused the call.
    """
    if model.kernel.derived:
        shifted = [k for k, axis in enumerate(nest.axes) if axis is not None]
        is_affine = all(access.index[k] is not None for _, access in writes for k in shifted)
        return is_affine or not nest.is_guarded
    return all(
        is_inside_once_checked(model, leaf, access, axis)
        for leaf, access in writes
        for axis in range(len(access.index))
    )


class _Nest:
    """A nest of additions to one tensor. ``axes``: the shift of each axis, or None if its index stays."""

    def __init__(
        self,
        kernel: Kernel,
        loops: list[For],
        additions: list[Addition],
        axes: list[Shift | None],
        used_names: set[str],
    ) -> None:
        self.kernel, self.additions, self.axes, self.used_names = kernel, additions, axes, used_names
        self.target = additions[0].store.buffer
        self.loops = {loop.var: loop for loop in loops}
        self.owned = {axis.owner for axis in axes if axis is not None}
        self.leaves: dict[str, Expr] = {}
        for addition in additions:
            for index in addition.store.index:
                found = affine.linear_with_terms(index)
                self.leaves |= {} if found is None else found[1]

    @classmethod
    def of(cls, kernel: Kernel, node: For, used_names: set[str]) -> _Nest | None:
        """Return the nest that starts with a loop, or None if it is not one of shifted additions."""
        loops = perfect(node)
        found = [_addition(s) for s in loops[-1].body]
        additions = [a for a in found if a is not None]
        if len(additions) < len(found) or not additions or not _is_box(loops):
            return None
        stores, variables = [a.store for a in additions], [loop.var for loop in loops]
        if len({s.buffer for s in stores}) > 1 or not are_shifted(stores, variables) or _reads(additions):
            return None
        axes = shifts(stores, variables)
        if axes is None:
            return None
        nest = cls(kernel, loops, additions, axes, used_names)
        return nest if all(nest.kept_tests(a) == nest.common for a in additions) else None

    @cached_property
    def common(self) -> list[Expr]:
        """The conditions that read no moved loop. They guard the final store."""
        return self.kept_tests(self.additions[0])

    def kept_tests(self, addition: Addition) -> list[Expr]:
        """Return the conditions of an addition that read no moved loop. They may keep an index in range."""
        moved = {v for v in self.loops if v in self.owned or self._is_inner(v)}
        return [test for test in addition.tests if not variables_of(test) & moved]

    def least_indices(self, places: Collection[int]) -> list[Expr]:
        """Return the least indices along some axes, if no loop is empty, without those never negative."""
        least = [
            affine.simplified(self._ends(axis, number)[0])
            for place, axis in enumerate(self.axes)
            if axis is not None and place in places
            for number in range(len(self.additions))
        ]
        return [index for index in dict.fromkeys(least) if not _is_never_negative(index)]

    @property
    def is_guarded(self) -> bool:
        """Whether conditions keep additions inside the tensor."""
        return any(a.tests for a in self.additions)

    def gathered(self) -> Stmt:
        """Return the loops over elements."""
        first = self.additions[0].store
        of = Type(first.value.type.dtype)
        total = Var(unused(f"{first.buffer}_all", self.used_names), of)
        phases = self._phases()
        index = tuple(
            at if axis is None else self._element(axis, phases)
            for at, axis in zip(first.index, self.axes, strict=True)
        )
        copies = [self._added(number, total, phases, index) for number in range(len(self.additions))]
        body: tuple[Stmt, ...] = (
            Assign(total.name, number(0.0, of) if kind(of) == "f" else Const(0, of), "", first.line),
            *copies,
            Store(first.buffer, index, total, "+", first.line),
        )
        left = [*self.common, *self._mixed_tests(index)]
        for loop in reversed(self._around(phases, index)):
            here = [test for test in left if loop.var in variables_of(test)]
            left = [test for test in left if test not in here]
            body = (replace(loop, body=affine.guarded(here, *body)),)
        (nest,) = affine.guarded(left, *body)
        return nest

    def _mixed_tests(self, index: Sequence[Expr]) -> Iterator[Expr]:
        """Yield range checks for a kept axis whose index only conditions on moved loops keep in range.

        An addition out of range is an error, so no valid one is lost.
        """
        mixed = variables_of(*(t for a in self.additions for t in a.tests if t not in self.common))
        sizes = self.kernel.buffers[self.target].shape
        for at, size, axis in zip(index, sizes, self.axes, strict=True):
            if axis is None and variables_of(at) & mixed:
                yield at >= (
                    affine.simplified(Const(0, INT) - size) if self.kernel.derived else Const(0, INT)
                )
                yield at < size

    # the loops

    def _around(self, phases: Mapping[str, Phase], index: Sequence[Expr]) -> list[For]:
        """Return the loops over phases, and those over elements in the order of the axes."""
        line = self.additions[0].store.line
        loops = [For(p.var, Const(0, INT), self._count(var, p), (), line) for var, p in phases.items()]
        for place, (at, axis) in enumerate(zip(self.additions[0].store.index, self.axes, strict=True)):
            if axis is not None:
                lo, hi = self._range(place, axis, phases, index[place])
                loops.append(replace(self.loops[axis.owner], lo=lo, hi=hi))
                continue
            used = variables_of(at)
            loops += (loop for var, loop in self.loops.items() if var in used and loop not in loops)
        return loops

    def _phases(self) -> dict[str, Phase]:
        """Return the phases by the variable of the loop that they divide."""
        found: dict[str, Phase] = {}
        for axis in (a for a in self.axes if a is not None and a.step > 1):
            for var, factor in axis.inner[0].items():
                count = axis.step // math.gcd(axis.step, factor)
                if count > 1:
                    found[var] = Phase(unused(f"{var}_phase", self.used_names), count)
        return found

    def _count(self, var: str, phase: Phase) -> Expr:
        """Return the number of phases that add anything.

        A gradient runs all of them, so each element is stored and needs no zero first.
        """
        count, loop = Const(phase.count, INT), self.loops[var]
        if self.kernel.derived:
            return count
        return affine.extreme("min", (count, affine.simplified(loop.hi - loop.lo)))

    def _element(self, axis: Shift, phases: Mapping[str, Phase]) -> Expr:
        """Return the index along an axis of the element that the loops over elements are at."""
        here: Expr = Var(axis.owner, INT)
        if axis.step == 1:
            return here
        here = Const(axis.step, INT) * here + self._written(axis.rest[0])
        for var, factor in axis.inner[0].items():
            if var in phases:
                here = here + Const(factor, INT) * (self.loops[var].lo + Var(phases[var].var, INT))
        return affine.simplified(here)

    def _range(
        self, place: int, axis: Shift, phases: Mapping[str, Phase], element: Expr
    ) -> tuple[Expr, Expr]:
        """Return the elements of the tensor that any addition reaches along an axis."""
        loop = self.loops[axis.owner]
        lows, highs = [], []
        for inner, rest in zip(axis.inner, axis.rest, strict=True):
            low, high = loop.lo, loop.hi
            for var, factor in inner.items():
                lo, hi = self._whole(var, phases)
                by = Const(abs(self._moves(axis, var, factor, phases)), INT)
                low, high = (
                    (low + by * lo, high + by * (hi - 1))
                    if factor > 0
                    else (low - by * (hi - 1), high - by * lo)
                )
            known = self._written(rest) if axis.step == 1 else Const(0, INT)
            lows.append(affine.simplified(low + known))
            highs.append(affine.simplified(high + known))
        low, high = affine.extreme("min", lows), affine.extreme("max", highs)
        if self._is_inside(place, axis):
            return low, high
        size = self.kernel.buffers[self.target].shape[place]
        if axis.step == 1:
            return affine.extreme("max", (low, Const(0, INT))), affine.extreme("min", (high, size))
        step = Const(axis.step, INT)
        start = affine.simplified(element - step * Var(axis.owner, INT))
        first, last = (call("ceil_div", affine.simplified(e), step) for e in (-start, size - start))
        return affine.extreme("max", (low, first)), affine.extreme("min", (high, last))

    def _is_inside(self, place: int, axis: Shift) -> bool:
        """Whether the ends of all loops together stay in the tensor, whatever the sizes are.

        Where one loop is empty nothing is added, and the ends of the others may reach beyond the tensor.
        """
        size = self.kernel.buffers[self.target].shape[place]
        ends = [self._ends(axis, number) for number in range(len(self.additions))]
        return all(_is_never_negative(e) for first, last in ends for e in (first, size - 1 - last))

    def _ends(self, axis: Shift, number: int) -> tuple[Expr, Expr]:
        """Return the least and the greatest index of an addition along an axis, if no loop is empty."""
        first = last = self._written(axis.rest[number])
        for var, factor in {axis.owner: axis.step, **axis.inner[number]}.items():
            ends = [Const(factor, INT) * end for end in (self.loops[var].lo, self.loops[var].hi - 1)]
            first, last = first + ends[factor < 0], last + ends[factor > 0]
        return first, last

    def _whole(self, var: str, phases: Mapping[str, Phase]) -> tuple[Expr, Expr]:
        """Return the range of an inner loop, in a phase."""
        loop = self.loops[var]
        if var not in phases:
            return loop.lo, loop.hi
        left = affine.simplified(loop.hi - loop.lo - Var(phases[var].var, INT))
        return Const(0, INT), call("ceil_div", left, Const(phases[var].count, INT))

    def _moves(self, axis: Shift, var: str, factor: int, phases: Mapping[str, Phase]) -> int:
        """Return by how many owner iterations an inner one moves the target, within its phase."""
        return factor * (phases[var].count if var in phases else 1) // axis.step

    # what is added

    def _added(self, number: int, total: Var, phases: Mapping[str, Phase], index: Sequence[Expr]) -> Stmt:
        """Return the loops that add to the total of one element."""
        addition = self.additions[number]
        values: dict[str, Expr] = {}
        tests: list[Expr] = []
        bounds = {v: self._whole(v, phases) for v in self.loops if v not in self.owned and self._is_inner(v)}
        for var, phase in phases.items():
            values[var] = affine.simplified(
                self.loops[var].lo + Const(phase.count, INT) * Var(var, INT) + Var(phase.var, INT)
            )
        for axis in self.axes:
            if axis is not None:
                inner = {v: self._moves(axis, v, c, phases) for v, c in axis.inner[number].items()}
                rest = axis.rest[number] if axis.step == 1 else {}
                shift = affine.simplified(self._written(rest) + self._written(inner))
                values[axis.owner] = affine.simplified(Var(axis.owner, INT) - shift)
                tests += self._limits(axis.owner, inner, self._written(rest), bounds)
        tests += self._open_tests(addition, values, index)
        node: Stmt = Assign(total.name, substitute(addition.store.value, values), "+", addition.store.line)
        outside = [t for t in tests if not variables_of(t) & bounds.keys()]
        (node,) = affine.guarded([t for t in tests if t not in outside], node)
        for var, (lo, hi) in reversed(bounds.items()):
            name = var if number == 0 else unused(var, self.used_names)
            inside = substitute(node, {var: Var(name, INT)})
            node = replace(self.loops[var], var=name, lo=lo, hi=hi, body=(inside,))
        (node,) = affine.guarded(outside, node)
        return node

    def _is_inner(self, var: str) -> bool:
        """Whether no kept axis of the target uses a loop."""
        kept = (at for at, axis in zip(self.additions[0].store.index, self.axes, strict=True) if axis is None)
        return var not in variables_of(*kept)

    def _limits(
        self, owner: str, inner: affine.Linear, known: Expr, bounds: dict[str, tuple[Expr, Expr]]
    ) -> list[Expr]:
        """Restrict an addition to its original iterations: narrow an inner range, or return conditions.

        The original iteration is ``owner - known - inner``.
        """
        loop, element = self.loops[owner], affine.simplified(Var(owner, INT) - known)
        (var, factor), *more = inner.items() or [("", 0)]
        if not var and len(self.additions) == 1:
            return []
        if var in bounds and not more and abs(factor) == 1 and len(self.additions) == 1:
            lo, hi = bounds[var]
            first, end = (element - (loop.hi - 1), element - (loop.lo - 1))
            if factor < 0:
                first, end = loop.lo - element, loop.hi - element
            first, end = affine.simplified(first), affine.simplified(end)
            bounds[var] = call("max", lo, first), call("min", hi, end)
            return []
        if not var:
            first, end = affine.simplified(loop.lo + known), affine.simplified(loop.hi + known)
            return [Var(owner, INT) >= first, Var(owner, INT) < end]
        place = affine.simplified(element - self._written(inner))
        return [place >= loop.lo, place < loop.hi]

    def _open_tests(
        self, addition: Addition, values: Mapping[str, Expr], index: Sequence[Expr]
    ) -> Iterator[Expr]:
        """Yield the conditions of an addition that do not follow from the range of the elements."""
        sizes = self.kernel.buffers[self.target].shape
        inside = [
            affine.nonnegative(test)
            for at, size, axis in zip(index, sizes, self.axes, strict=True)
            for test in (at >= 0, at < size)
            if axis is not None
        ]
        for test in (t for t in addition.tests if t not in self.common):
            changed = substitute(test, values)
            if _form(affine.nonnegative(changed)) not in map(_form, inside):
                yield changed

    def _written(self, form: affine.Linear) -> Expr:
        return affine.from_linear(form, {**self.leaves, **{v: Var(v, INT) for v in self.loops}})


@dataclass(frozen=True)
class Phase:
    """A loop is divided into ``count`` interleaved parts; ``var`` is the number of the part."""

    var: str
    count: int


def _form(found: tuple[affine.Linear, object] | None) -> affine.Linear | None:
    """Return the form of an inequality without zeros, so that equal ones are the same."""
    return None if found is None else {n: c for n, c in found[0].items() if c}


def _addition(node: Stmt) -> Addition | None:
    """Return the only addition of a statement, with the tests around it; None for anything else."""
    tests: list[Expr] = []
    while isinstance(node, If) and not node.orelse and len(node.body) == 1:
        tests += affine.operands("and", node.condition)
        (node,) = node.body
    return Addition(node, tuple(tests)) if isinstance(node, Store) and node.op == "+" else None


def _reads(additions: Sequence[Addition]) -> bool:
    """Whether additions read what they add to."""
    values = [e for a in additions for e in (a.store.value, *a.store.index, *a.tests)]
    return additions[0].store.buffer in tensors_of(*values)


def _is_box(loops: Sequence[For]) -> bool:
    """Whether no bound depends on another loop of the nest, or on data."""
    inside = {loop.var for loop in loops}
    bounds = [e for loop in loops for e in (loop.lo, loop.hi)]
    return (
        not variables_of(*bounds) & inside and not loads_of(*bounds) and not any(loop.hint for loop in loops)
    )


def _is_never_negative(expr: Expr) -> bool:
    """Whether an expression of sizes is a sum of multiples of them."""
    form, leaves = affine.linear_with_terms(expr) or ({"": -1}, {})
    return all(c >= 0 and (not name or isinstance(leaves[name], Size)) for name, c in form.items())
