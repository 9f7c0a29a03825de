"""Apply the steps of the author's schedule that change loops, in their order.

    polyop.Schedule().interchange("i", "j")

    for j in range(n):                     for i in range(m):
        for i in range(m):            ->       for j in range(n):
            y[i, j] = x[i, j]                      y[i, j] = x[i, j]

Each step is proved legal or refused. The loops that it names are then left alone by ``interchange_fuse``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NoReturn

from ...core.errors import ScheduleError
from ..analysis.loop_names import listed, loop_names
from ..analysis.refused import refused
from ..analysis.strides import depends
from ..analysis.tree import Branch, Loop, Node, Rearrangement, paths_of, perfect_nest, replaced, statements_of
from ..ir.grammar import For
from ..ir.note import Note
from ..ir.schedule import STEPS, Step
from ..ir.stops import stop_flags
from ..program import Program
from .interchange_fuse import in_order, joined, same_range
from .strip_mine import loop_of, tiled, trips, unrolled

REASONS = {
    "apply_schedule": "as the schedule says",
    "loop_tiling": "as loads and stores are adjacent along different loops",
}
"""Why a step was taken, by the pass that took it."""


def apply_schedule(program: Program) -> Program:
    """Return the program with its loops changed by the author's steps.

    Raises ``ScheduleError`` for a step that is not legal, or that names a loop that does not exist.
    """
    program = program.with_(loops=loop_names(program.kernel, program.loops))
    if not program.schedule:
        return program
    work, done = _Work(program), [*program.applied]
    for step in program.schedule.steps:
        if not STEPS[step.word].changes:
            continue
        if step in done:
            done.remove(step)
        else:
            work.apply(step)
    for step in program.schedule.steps:
        if not STEPS[step.word].changes and step.loops:
            work.find(step, step.loops[0])
    return work.done()


def with_steps(program: Program, steps: Sequence[Step], by: str) -> Program | None:
    """Return the program changed by steps that a pass chose, or None where one of them is not legal."""
    work = _Work(program, by)
    try:
        for step in steps:
            work.apply(step)
    except ScheduleError:
        return None
    return work.done()


class _Work:
    """A program while steps are applied to it; ``by`` is the name of the pass that chose them."""

    def __init__(self, program: Program, by: str = "apply_schedule") -> None:
        self.program, self.notes, self.by = program, list[Note](), by
        self.names = dict(program.loops)
        self.frozen = set(program.frozen)
        self.replaced: dict[str, str] = {}
        """By name of a loop that a step has replaced, what became of it."""
        self.loops = Rearrangement(program.model)

    def apply(self, step: Step) -> None:
        """Apply a step, or raise ``ScheduleError``."""
        loops = [self.find(step, name) for name in step.loops]
        if len(set(loops)) < len(loops):
            self.refuse(step, f"{' and '.join(step.loops)} are one loop: they were fused", loops[0])
        self.frozen |= {loop.var for loop in loops}
        APPLY[step.word](self, step, loops)
        self.notes.append(Note(loops[0].node.line, f"{REASONS[self.by]}: {step}", self.by))
        self.program = self.program.with_(applied=(*self.program.applied, step))

    def done(self) -> Program:
        """Return the program after all steps."""
        self.flush()
        return self.program.with_(*self.notes, loops=self.names, frozen=frozenset(self.frozen))

    def find(self, step: Step, name: str) -> Loop:
        """Return the loop of a name, or raise ``ScheduleError``."""
        var = self.names.get(name)
        found = next((loop for loop in _all(self.loops.tree) if loop.var == var), None)
        if found is not None:
            return found
        rule = f"there is no loop {name}"
        if name in self.replaced:
            rule = f"{rule} any more: {self.replaced[name]}"
        elif var is not None:
            rule = f"the loop {name} is not there: nothing that it does is used, or the compiler wrote it out"
        kernel = replace(self.program.kernel, body=statements_of(self.loops.tree))
        raise refused(kernel, step, rule, hint=f"the loops are {listed(self.names, kernel)}")

    def refuse(self, step: Step, rule: str, loop: Loop, hint: str = "") -> NoReturn:
        """Raise ``ScheduleError``, with the line of a loop."""
        raise refused(self.program.kernel, step, rule, line=loop.node.line, hint=hint)

    def rearrange(self, step: Step, tree: tuple[Node, ...], rule: str) -> None:
        """Take another tree, or raise ``ScheduleError`` if that reverses the order of two accesses."""
        conflict = self.loops.legality.broken(paths_of(tree))
        if conflict is not None:
            raise refused(self.program.kernel, step, rule.format(conflict.target), conflict)
        self.loops.tree = tree

    def flush(self) -> None:
        """Make the program have the loops of the tree."""
        body = statements_of(self.loops.tree)
        if body != self.program.kernel.body:
            self.program = self.program.with_(kernel=replace(self.program.kernel, body=body))

    def put(self, program: Program) -> None:
        """Continue with another program."""
        self.program, self.loops = program, Rearrangement(program.model)

    def rename(self, name: str, new: Mapping[str, str], why: str) -> None:
        """Give the loops that a step made from one loop their names; a variable "" is no loop."""
        if not new.get(name):
            self.replaced[name] = why
            del self.names[name]
        made = {name: var for name, var in new.items() if var}
        self.names = loop_names(self.program.kernel, {**self.names, **made})
        self.frozen |= set(made.values())


def _all(tree: Sequence[Node]) -> Iterator[Loop]:
    """Yield the loops of a tree, outer ones first."""
    for node in tree:
        match node:
            case Loop():
                yield node
                yield from _all(node.body)
            case Branch():
                yield from _all((*node.body, *node.orelse))


def _interchange(work: _Work, step: Step, order: list[Loop]) -> None:
    """Put the loops of a perfect nest into another order."""
    nest = next((loop for loop in order if all(other in _all((loop,)) for other in order)), None)
    chain = perfect_nest(nest) if nest is not None else order
    if nest is None or set(chain[: len(order)]) != set(order):
        more = next((loop for loop in chain if loop in order and len(loop.body) > 1), None)
        beside = (
            f": beside a loop in {more.var} there is more" if nest is not None and more is not None else ""
        )
        work.refuse(step, f"the loops are not directly inside one another{beside}", more or chain[0])
    made = in_order(order, chain[len(order) - 1].body)
    if made is None:
        inner = {loop.var: frozenset(other.var for other in order[n + 1 :]) for n, loop in enumerate(order)}
        loop = next(x for x in order if any(depends(e, inner[x.var]) for e in (x.node.lo, x.node.hi)))
        work.refuse(step, f"the range of {loop.var} follows from a loop that would be inside it", loop)
        return
    tree = replaced(work.loops.tree, nest, (made,))
    work.rearrange(step, tree, "the order of two accesses to {} would change")


def _fuse(work: _Work, step: Step, loops: list[Loop]) -> None:
    """Make one loop of neighbours."""
    var, names = loops[0].var, step.loops
    for name in names[1:]:
        first, second = (work.find(step, each) for each in (names[0], name))
        if not same_range(first.node, second.node):
            work.refuse(step, f"the loops {names[0]} and {name} have different ranges", second)
        tree = joined(work.loops.tree, first, second)
        if tree is None:
            rule = f"the loops {names[0]} and {name} are not neighbours with only statements between them"
            work.refuse(step, rule, second)
        work.rearrange(step, tree, "the order of two accesses to {} would change")
        for alias in [n for n, other in work.names.items() if other == second.var]:
            work.names[alias] = var


def _tile(work: _Work, step: Step, loops: list[Loop]) -> None:
    """Divide a loop into blocks: the loop itself becomes the inner one."""
    (name,), loop = step.loops, _divisible(work, step, loops[0])
    program, outer = tiled(work.program, loop, step.factor)
    work.put(program)
    work.rename(name, {f"{name}.outer": outer, f"{name}.inner": loop.var}, "it was tiled")


def _unroll(work: _Work, step: Step, loops: list[Loop]) -> None:
    """Write out some iterations of a loop, or all."""
    (name,), loop = step.loops, _divisible(work, step, loops[0])
    count = trips(loop)
    if count is not None and count < step.factor:
        work.refuse(step, f"the loop {name} has {count} iterations", loops[0])
    program, main, rest = unrolled(work.program, loop, step.factor)
    work.put(program)
    work.rename(name, {name: main, f"{name}.rest": rest}, "it was written out")


def _divisible(work: _Work, step: Step, loop: Loop) -> For:
    """Return a loop whose iterations can be in blocks, as it is in the kernel."""
    work.flush()
    node = loop_of(work.program.kernel, loop.var)
    if stop_flags(node):
        work.refuse(step, f"the loop {step.loops[0]} may end early", loop, "leave the step out")
    return node


APPLY: Mapping[str, Callable[[_Work, Step, list[Loop]], None]] = {
    "tile": _tile,
    "interchange": _interchange,
    "fuse": _fuse,
    "unroll": _unroll,
}
"""By word of a step that changes loops, what applies it."""
