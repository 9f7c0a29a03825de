"""``Program``: a kernel and everything that passes have decided about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from ..core.locks import cached_property
from .analysis.bounds import Bounds
from .analysis.dependence import Conflict, Kind, classify, conflicts
from .analysis.polyhedra import Model
from .analysis.session import IslSession
from .ir.grammar import Kernel
from .ir.note import Note
from .ir.plan import Plan
from .ir.schedule import NOTHING, Schedule, Step

if TYPE_CHECKING:
    from typing_extensions import Self

AnyProgram = TypeVar("AnyProgram", bound="Program")
"""Program or a subclass: what a pass returns has the type of what it takes."""


@dataclass(frozen=True)
class Program:
    """A kernel during compilation. Each pass returns a new program, and the emitters print the last one.

    Each analysis runs at its first use. It is kept while kernel, session and owners stay the same.
    """

    kernel: Kernel
    session: IslSession = field(default_factory=IslSession)
    """The isl context of this compilation. One thread uses a program and all programs made from it."""
    owners: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Maps each private buffer to the loops whose iterations have their own copy of it, outermost first."""
    before_privatisation: Kernel | None = None
    """The kernel before array privatisation. The verifier compares shapes with it."""
    assumed: Bounds | None = None
    """The bounds of the kernel as its author wrote it. Each call is checked, so proofs may assume them."""
    bounds: Bounds = field(default_factory=Bounds)
    """How each access of the final kernel stays inside its tensor."""
    plan: Plan = field(default_factory=Plan)
    notes: tuple[Note, ...] = ()
    schedule: Schedule = NOTHING
    """The steps that the author gives."""
    loops: Mapping[str, str] = field(default_factory=dict)
    """Maps a loop's name in a schedule to its variable; see ``analysis/loop_names.py``."""
    frozen: frozenset[str] = frozenset()
    """The variables of loops that steps have changed: the compiler's own passes leave them where they are."""
    applied: tuple[Step, ...] = ()
    """The steps that changed loops so far, the author's and the compiler's."""
    checked: bool = False
    """Whether every index is checked at each access."""
    fallback: str = ""
    """Why the loops stay in the author's order because passes failed; "" if they did not."""

    def named_loops(self) -> set[str]:
        """Return the variables of the loops that the author's schedule names."""
        names = {name for step in self.schedule.steps for name in step.loops}
        return {var for name, var in self.loops.items() if name in names}

    def kept_loops(self) -> set[str]:
        """Return the variables of the loops that passes must not change: those that the schedule names.

        A schedule that names loops made by passes was printed by polyop, and keeps none.
        """
        names = {name for step in self.schedule.steps for name in step.loops}
        made = {name for name in names - self.loops.keys() if "." not in name}
        return set() if made else self.named_loops()

    @cached_property
    def model(self) -> Model:
        """The kernel as isl sees it."""
        return Model(self.kernel, self.session, self.owners)

    @cached_property
    def conflicts(self) -> list[Conflict]:
        """The pairs of accesses that touch the same element, one of them a write."""
        return conflicts(self.model)

    @cached_property
    def kinds(self) -> Mapping[str, Kind]:
        """By loop: parallel, reduction or sequential."""
        return classify(self.model, self.conflicts)

    def with_(self, *notes: Note, **changes: Any) -> Self:
        """Return this program with changed fields and further notes.

        Analyses are kept if none of the fields that they read changes.
        """
        if "kernel" in changes and changes["kernel"] is self.kernel:
            del changes["kernel"]
        result = replace(self, **changes, notes=(*self.notes, *notes))
        if not changes.keys() & {"kernel", "session", "owners"}:
            for name in ("model", "conflicts", "kinds"):
                if name in self.__dict__:
                    result.__dict__[name] = self.__dict__[name]
        return result

    def without_isl(self) -> Program:
        """Return this program without isl's values, whose memory is freed; the kinds of loops stay."""
        bounds = replace(self.bounds, sizes=[], errors={})
        result = replace(self, bounds=bounds, assumed=None, session=IslSession())
        kinds = self.__dict__.get("kinds", {})
        result.__dict__["kinds"] = {loop: replace(kind, because=None) for loop, kind in kinds.items()}
        return result
