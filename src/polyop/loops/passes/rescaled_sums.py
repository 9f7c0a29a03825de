"""Rescaled sums: what is rescaled whenever a running maximum changes becomes a plain sum.

    for j in range(n):                         for j in range(n):
        new = max(top, x[j])                       top = max(top, x[j])
        total = total * exp(top - new)    ->   total = 0.0
        total = total + exp(x[j] - new)        for j in range(n):
        top = new                                  total += exp(x[j] - top)

An online softmax reads its row once. Its iterations depend on one another, and each has two exponentials.
After the pass the maximum is found first, and the loops that follow are a reduction and sums: they become
vector lanes and register tiles. With the values ``total0`` and ``top0`` at the start, ``total`` is
``total0 * exp(top0 - top) + sum(exp(x[j] - top))`` before and after the pass. Only rounding differs, as that
of a sum in another order does.

What the exponentials need is stored in temporaries of one element for each iteration. If the first score and
the start are both minus infinity, the online form is NaN from then on. The plain form would not be, so its
sums start from ``0.0 * exp(top0 - max(top0, x[0]))``, which is 0 or NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..analysis.ranges import span
from ..analysis.tree import with_distinct_loops
from ..ir.grammar import (
    BOOL,
    INT,
    Assign,
    Buffer,
    Const,
    Expr,
    For,
    Kernel,
    Load,
    Op,
    Stmt,
    Store,
    Var,
    names_of,
    statements,
    unused,
    walk,
)
from ..ir.note import Note
from ..ir.rewriter import Place, substitute, with_statements
from ..ir.uses import accesses_of, tensors_of, used_by
from ..program import AnyProgram
from .recurrences import WEIGHT, Recurrence, Sum, counts_up, recurrence
from .rows_of_scalars import Rows


def rescaled_sums(program: AnyProgram) -> AnyProgram:
    """Return the program with sums that a running maximum rescales as plain sums."""
    return _rewritten(program, keeps_nan=True)


def rescaled_sums_of_derivations(program: AnyProgram) -> AnyProgram:
    """Return the program with such sums as plain ones, to be differentiated.

    Where the sums are NaN because the first score is minus infinity, the derivatives may be finite.
    """
    return _rewritten(program, keeps_nan=False)


def rescaled_sums_of_forwards(program: AnyProgram) -> AnyProgram:
    """Return the program of a forward that saves temporaries for its gradient, with such sums as plain ones.

    What it returns is NaN where the author's sums are. The start of a sum is marked with ``stop_gradient``:
    its derivative is 0, so nothing of it is saved.
    """
    return _rewritten(program, keeps_nan=True, marks=True)


def _rewritten(program: AnyProgram, *, keeps_nan: bool, marks: bool = False) -> AnyProgram:
    kernel = program.kernel
    if not any(isinstance(e, Op) and e.name == "exp" for s in statements(kernel.body) for e in walk(s)):
        return program
    rewriter = _Rewriter(kernel, program.kept_loops(), keeps_nan, marks)
    body = with_statements(kernel.body, rewriter.change)
    if not rewriter.notes:
        return program
    buffers = {**kernel.buffers, **rewriter.buffers}
    return program.with_(*rewriter.notes, kernel=replace(kernel, body=body, buffers=buffers))


class _Rewriter:
    """Rewrites a kernel's body; ``buffers`` are the new temporaries.

    With ``marks``, a sum that starts as zero starts with ``stop_gradient``.
    """

    def __init__(self, kernel: Kernel, named: set[str], keeps_nan: bool, marks: bool) -> None:
        self.kernel, self.named, self.keeps_nan, self.marks = kernel, named, keeps_nan, marks
        self.taken = names_of(kernel)
        self.buffers: dict[str, Buffer] = {}
        self.notes: list[Note] = []

    def change(self, node: Stmt, place: Place) -> Sequence[Stmt] | None:
        if not isinstance(node, For) or node.var in self.named:
            return None
        found = recurrence(node, self.kernel)
        return self._plain(found, place.before, place.loops) if found else None

    def _plain(
        self, found: Recurrence, before: Sequence[Stmt], loops: tuple[For, ...]
    ) -> Sequence[Stmt] | None:
        """Return the statements in place of a loop, or None if the size of its temporaries is not known."""
        ends = span(found.loop, loops)
        if ends is None:
            return None
        steps = _Steps(self, found, Rows(found.loop, ends, self.new), before, loops)
        self.notes.append(
            Note(
                found.loop.line,
                f"loop {found.loop.var}: {found.top.name} is found first, so that sums need not be rescaled",
                "rescaled_sums",
            )
        )
        made = steps.all()
        self.buffers |= {row.name: row for row in steps.rows.buffers.values()}
        return made

    def new(self, name: str) -> str:
        """Return a name that nothing else has."""
        return unused(name, self.taken)


@dataclass
class _Steps:
    """Makes the loops in place of one loop."""

    owner: _Rewriter
    found: Recurrence
    rows: Rows
    before: Sequence[Stmt]
    loops: tuple[For, ...]
    start: Var | None = None
    """The scalar that holds the maximum at the start, if a sum needs it."""

    def all(self) -> tuple[Stmt, ...]:
        """Return the loops: what needs no maximum, the maximum, the weights and scalar sums, other sums."""
        found, line, result = self.found, self.found.line, list[Stmt]()
        plain = [one for one in found.sums if not one.loops]
        nested = [one for one in found.sums if one.loops]
        if found.free:  # the loops behind it read what they need of it from rows
            for name, type_ in found.kept.items():
                self.rows.add(name, type_, line)
            result.append(self._over(*found.free, *self.rows.filled()))
        starts = self._starts()
        if starts and self.start is not None:
            result.append(Assign(self.start.name, found.top, "", line))
        here = Var(found.loop.var, INT)
        score = self.rows.moved(found.score, here)
        result += [self._over(Assign(found.top.name, score, "max", line)), *starts]
        exp = Op("exp", (Op("-", (score, found.top), score.type),), found.weight.type)
        if nested:
            self.rows.add(WEIGHT, exp.type, line, "weights")
            place = self.rows.place(WEIGHT, here)
            weight: Expr = place
            first: Stmt = Store(place.buffer, place.index, exp, "", line)
        else:
            weight = scalar = Var(self.owner.new("weight"), exp.type)
            first = Assign(scalar.name, exp, "", line)
        terms = {one: self.rows.moved(substitute(one.term, {WEIGHT: weight}), here) for one in found.sums}
        result.append(self._over(first, *(_sum(one, terms[one], "+") for one in plain)))
        result += [self._over(_sum(one, terms[one], "+")) for one in nested]
        return with_distinct_loops(result, self.owner.new)

    def _over(self, *body: Stmt) -> For:
        """Return a loop over the same iterations."""
        return replace(self.found.loop, body=body)

    def _starts(self) -> list[Stmt]:
        """Return the statements that start the sums."""
        result: list[Stmt] = []
        factors: dict[bool, Expr] = {}
        for one in self.found.sums:
            zero = self._starts_as_zero(one)
            if zero not in factors:
                factors[zero] = self._factor(result, zero)
            factor = factors[zero]
            value = factor if zero else Op("*", (one.target, factor), factor.type)
            result.append(_sum(one, value, ""))
        return result

    def _factor(self, result: list[Stmt], zero: bool) -> Expr:
        """Return the start of a sum that is zero before the loop; else the factor for what it holds there."""
        top, loop = self.found.top, self.found.loop
        number = Const(0.0 if zero else 1.0, top.type)
        if zero and not self.owner.keeps_nan:
            return number
        if self.start is None:
            self.start = Var(self.owner.new(f"{top.name}_start"), top.type)

        def fall(one: Expr, other: Expr) -> Expr:
            return Op("exp", (Op("-", (one, other), top.type),), top.type)

        value = fall(self.start, top)
        if self.owner.keeps_nan:
            first = Op("max", (self.start, self.rows.moved(self.found.score, loop.lo)), top.type)
            value = Op("*", (fall(self.start, first), number if zero else fall(first, top)), top.type)
        some = Op("<", (loop.lo, loop.hi), BOOL)
        name = self.owner.new("zero" if zero else "shrink")
        value = Op("select", (some, value, number), top.type)
        if zero and self.owner.marks:
            value = Op("stop_gradient", (value,), top.type)
        result.append(Assign(name, value, "", self.found.line))
        return Var(name, top.type)

    def _starts_as_zero(self, one: Sum) -> bool:
        """Whether a sum is zero before the loop, for certain."""
        target = one.target
        if isinstance(target, Load):
            return bool(self.loops) and self._is_untouched(target)
        last = next((s for s in reversed(self.before) if target.name in used_by((s,))), None)
        return isinstance(last, Assign) and not last.op and _is_zero(last.value)

    def _is_untouched(self, target: Load) -> bool:
        """Whether each iteration of the loops around has elements of its own, which are still zeros."""
        kernel, around = self.owner.kernel, self.loops[-1]
        if kernel.buffers[target.buffer].role not in ("output", "local") or not all(
            map(counts_up, self.loops)
        ):
            return False
        indices = [a.index for a in accesses_of(around.body) if a.buffer == target.buffer]
        everywhere = [a for a in accesses_of(kernel.body) if a.buffer == target.buffer]
        inside = list(statements(around.body))
        before = inside[: next(k for k, s in enumerate(inside) if s is self.found.loop)]
        touched = tensors_of(*before) | {s.buffer for s in before if isinstance(s, Store)}
        return (
            len(indices) == len(everywhere)
            and target.buffer not in touched
            and all(
                any(
                    all(index[axis] == Var(loop.var, INT) for index in indices)
                    for axis in range(len(target.index))
                )
                for loop in self.loops
            )
        )


def _sum(one: Sum, value: Expr, op: str) -> Stmt:
    """Return the statement of a sum, in its loops."""
    if isinstance(one.target, Var):
        return Assign(one.target.name, value, op, one.line)
    node: Stmt = Store(one.target.buffer, one.target.index, value, op, one.line)
    for loop in reversed(one.loops):
        node = replace(loop, body=(node,))
    return node


def _is_zero(value: Expr) -> bool:
    return isinstance(value, Const) and value.value == 0
