"""The schedule that an author gives a loop kernel: steps that are applied in order.

    polyop.Schedule().tile("i", 32).interchange("i.outer", "j", "i.inner").parallel("i.outer")

It is a value: each method returns another schedule. What the steps do is in ``passes/apply_schedule.py``
(those that change loops) and ``schedule/roles.py`` (those that say what a loop becomes).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...core.errors import ArgumentTypeError, ArgumentValueError


@dataclass(frozen=True)
class Step:
    """One step: a word of :data:`STEPS`, the loops that it names, and its factor (0: it has none)."""

    word: str
    loops: tuple[str, ...]
    factor: int = 0

    def __str__(self) -> str:
        """Return the step as it is written: ``tile("i", 32)``."""
        arguments = [f'"{name}"' for name in self.loops] + [str(self.factor)] * bool(self.factor)
        return f"{self.word}({', '.join(arguments)})"


@dataclass(frozen=True)
class StepKind:
    """A row of the table of steps.

    ``loops`` are the fewest and the most loops that it names, ``factor`` whether it has one. ``rule`` says
    what makes it legal. ``changes``: whether it changes the loops; a step that does not is a role.
    """

    word: str
    loops: tuple[int, int]
    factor: bool
    changes: bool
    rule: str


MAX_LOOPS = 99
"""The most loops that a step names."""
STEPS: Mapping[str, StepKind] = {
    row.word: row
    for row in (
        StepKind("tile", (1, 1), True, True, "the loop does not end early"),
        StepKind("interchange", (2, MAX_LOOPS), False, True, "no pair of accesses changes its order"),
        StepKind("fuse", (2, MAX_LOOPS), False, True, "no pair of accesses changes its order"),
        StepKind("unroll", (1, 1), True, True, "the loop does not end early"),
        StepKind("parallel", (1, 1), False, False, "no two iterations conflict, or threads can share them"),
        StepKind("vectorize", (1, 1), False, False, "no two iterations conflict, or they add to a scalar"),
        StepKind("deterministic", (0, 0), False, False, "no loop on threads adds to what they share"),
    )
}
"""Every kind of step, by its word."""


@dataclass(frozen=True, repr=False)
class Schedule:
    """What the loops of a kernel become: steps, applied in order. The compiler chooses the rest.

    A loop is named by its variable; ``"j#2"`` is the second loop over ``j`` of the text. A schedule is a
    value: each method returns another one, and its text gives it back.

    >>> schedule = Schedule().tile("i", 32).parallel("i.outer").vectorize("j")
    >>> schedule
    polyop.Schedule().tile("i", 32).parallel("i.outer").vectorize("j")
    >>> schedule == Schedule().tile("i", 32).parallel("i.outer").vectorize("j")
    True

    A step that is not legal for a kernel raises ``ScheduleError`` when the kernel is compiled, at the first
    call. The methods raise ``ArgumentTypeError`` and ``ArgumentValueError`` for arguments of a wrong kind.
    """

    steps: tuple[Step, ...] = ()

    def tile(self, loop: str, size: int) -> Schedule:
        """Divide a loop into blocks of ``size`` iterations: ``i`` becomes ``i.outer`` around ``i.inner``."""
        return self._with("tile", (loop,), size)

    def interchange(self, *loops: str) -> Schedule:
        """Put loops that are directly inside one another into this order, outermost first."""
        return self._with("interchange", loops)

    def fuse(self, *loops: str) -> Schedule:
        """Make one loop of neighbours with the same range. It has the name of the first one."""
        return self._with("fuse", loops)

    def unroll(self, loop: str, factor: int) -> Schedule:
        """Write out ``factor`` iterations of a loop, one after the other.

        The rest of them runs in a loop ``i.rest``. If the loop has just so many iterations, it is written out
        as a whole, before all other steps.
        """
        return self._with("unroll", (loop,), factor)

    def parallel(self, loop: str) -> Schedule:
        """Run a loop on all threads."""
        return self._with("parallel", (loop,))

    def vectorize(self, loop: str) -> Schedule:
        """Make the iterations of a loop the lanes of vectors."""
        return self._with("vectorize", (loop,))

    def deterministic(self) -> Schedule:
        """Keep each sum in one thread, and let the C compiler fuse nothing.

        So a row has the same bits in a batch of any size, on any number of threads of a CPU. On a GPU nothing
        is promised: threads share sums there, by the number of rows.
        """
        return self._with("deterministic", ())

    @property
    def is_deterministic(self) -> bool:
        """Whether ``deterministic`` is one of the steps."""
        return any(step.word == "deterministic" for step in self.steps)

    def for_derived(self, steps: Schedule) -> Schedule:
        """Return these steps of a derived kernel, ``deterministic`` added if this schedule has it."""
        inherits = self.is_deterministic and not steps.is_deterministic
        return steps.deterministic() if inherits else steps

    def _with(self, word: str, loops: tuple[Any, ...], factor: Any = 0) -> Schedule:
        kind, subject = STEPS[word], f"Schedule.{word}"
        for name in loops:
            if not isinstance(name, str):
                rule = 'names a loop by its variable, as "i"'
                raise ArgumentTypeError(subject, rule, type(name).__name__)
        if not kind.loops[0] <= len(loops) or len(set(loops)) < len(loops):
            rule = f"takes the names of {kind.loops[0]} loops or more, each once"
            raise ArgumentValueError(subject, rule, ", ".join(loops) or "none")
        if kind.factor and (not isinstance(factor, int) or isinstance(factor, bool)):
            raise ArgumentTypeError(subject, "takes a number of iterations", type(factor).__name__)
        if kind.factor and not 1 <= factor <= MAX_FACTOR[word]:
            rule = f"takes a number of iterations from 1 to {MAX_FACTOR[word]}"
            raise ArgumentValueError(subject, rule, factor)
        return Schedule((*self.steps, Step(word, loops, factor)))

    def __bool__(self) -> bool:
        """Whether it has steps."""
        return bool(self.steps)

    def __repr__(self) -> str:
        """Return an expression for the schedule."""
        return "".join(["polyop.Schedule()", *(f".{step}" for step in self.steps)])

    def named(self, word: str) -> set[str]:
        """Return the loops that steps of a kind name."""
        return {name for step in self.steps if step.word == word for name in step.loops}


MAX_FACTOR = {"tile": 2**31, "unroll": 64}
"""The largest factors: to write out more iterations would take the C compiler too long."""
NOTHING = Schedule()
"""The schedule without steps: the compiler chooses everything."""
