"""The compiler: a typed kernel in, its plan and its C out. Every pass keeps the meaning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from .analysis.bounds import Bounds, demanded, describe, find_bounds
from .analysis.dependence import Kind, classify, conflicts
from .analysis.initialisation import starts
from .analysis.polyhedra import Model, session
from .emit.c.program import TARGETS, Program, print_program
from .emit.c.rows import once_a_row
from .ir.grammar import Kernel
from .ir.verify import unowned
from .passes.array_privatisation import privatise
from .passes.index_set_splitting import has_conditions, split
from .passes.inline import inline
from .passes.interchange_fuse import Report, restructure
from .passes.loop_distribution import distribute
from .passes.pack_transposed import turn
from .passes.reciprocals import reciprocals
from .passes.remove_empty_loops import busy
from .passes.scalar_replacement import accumulate
from .passes.simplify import propagate, unroll
from .passes.strip_gradient_marks import computed
from .schedule.plan import Plan, Planner
from .schedule.shift_and_peel import together
from .schedule.thread_partition import shares


@dataclass(frozen=True)
class Scheduled:
    """A kernel after all passes, with what was decided and why (line, text)."""

    kernel: Kernel
    plan: Plan
    bounds: Bounds
    owners: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    notes: tuple[tuple[int, str], ...] = ()
    checked: bool = False
    fallback: str = ""
    """Why the author's order was kept although another was asked for."""

    def source(self, target: str, function: str, *, precise: bool = False, checked: bool = False) -> str:
        """Return the C file for an instruction set, or the CUDA file for "cuda"."""
        if target == "cuda":
            from .emit.cuda.program import print_cuda

            return print_cuda(
                self.kernel,
                self.plan,
                self.bounds,
                self.owners,
                self.kinds,
                function=function,
                checked=checked,
            )
        return self.program(target, function, precise=precise, checked=checked).text()

    def program(self, target: str, function: str, *, precise: bool = False, checked: bool = False) -> Program:
        """Return the C text for an instruction set."""
        return print_program(
            self.kernel,
            self.plan,
            self.bounds,
            self.owners,
            target=TARGETS[target],
            function=function,
            precise=precise,
            checked=checked,
        )

    def told(self, target: str) -> tuple[tuple[int, str], ...]:
        """Return what was decided for an instruction set, or for "cuda", and why (line, text)."""
        if target != "cuda":
            return tuple(sorted(once_a_row(self.notes, self.kernel, self.plan, self.bounds)))
        from .emit.cuda.program import mapped

        mapper = mapped(self.kernel, self.plan, self.bounds, self.owners, self.kinds)
        mapper.pieces(self.kernel.body)
        kept = [note for note in self.notes if note not in self.plan.notes]
        return tuple(sorted([*kept, *mapper.notes]))


def schedule(kernel: Kernel) -> Scheduled:
    """Return the kernel with its loops arranged, and what each of them becomes."""
    kernel = computed(kernel)
    with session():
        kernel = unroll(busy(propagate(kernel)))
        early = demanded(kernel)
        kernel = starts(kernel)
        report = Report()
        kernel, report.done = inline(kernel)
        kernel = distribute(kernel, report)
        before = kernel
        kernel, owners = privatise(kernel)
        kernel = turn(restructure(kernel, owners, report), report)
        kernel, owners = privatise(kernel)
        kernel = reciprocals(accumulate(kernel, owners))
        model = Model(kernel, owners)
        kinds = classify(model, found := conflicts(model))
        if has_conditions(kernel):
            kernel, owners, borders = split(kernel, kinds, owners)
            if borders:
                report.done += borders
                model = Model(kernel, owners)
                kinds = classify(model, found := conflicts(model))
        bounds = replace(find_bounds(model, early), sizes=[], bad={})  # isl's values end with the session
        shared = shares(kernel, model, found, kinds, owners)
        plan = Planner(kernel, kinds, bounds, owners, shared).run()
        together(kernel, model, found, plan, owners)
    if faults := unowned(before, kernel, owners):
        raise AssertionError("; ".join(faults))
    notes = (*report.done, *plan.notes, *describe(bounds, kernel))
    return Scheduled(kernel, plan, bounds, owners, kinds, tuple(sorted(notes)))


def original(kernel: Kernel, why: str = "", fallback: str = "") -> Scheduled:
    """Return the kernel in the author's order, on one thread: what is done when anything is in doubt."""
    return Scheduled(computed(kernel), Plan(), Bounds(), notes=((0, why),), checked=True, fallback=fallback)
