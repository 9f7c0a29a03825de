"""What the passes hand to one another: a kernel, with what is known and decided about it."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .analysis.bounds import Bounds
from .analysis.dependence import Conflict, Kind, classify, conflicts
from .analysis.polyhedra import Model
from .ir.grammar import Kernel
from .ir.plan import Plan


@dataclass(frozen=True, order=True)
class Note:
    """What a pass did or decided, for the author of the line. Tools ask for ``kind``, never for words.

    ``kind`` is the pass, or "check" of an index that is not proved; ``subject`` is the tensor of a check.
    """

    line: int
    text: str
    kind: str = ""
    subject: str = ""


@dataclass(frozen=True)
class Program:
    """A kernel on its way through the passes. A pass returns a new one; printers read the last one.

    Analyses are made when they are asked for and belong to one program: a pass that changes the kernel
    returns a program without them.
    """

    kernel: Kernel
    owners: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Of a buffer that iterations have for themselves: the loops, outermost first."""
    before_privatisation: Kernel | None = None
    """The kernel in which all iterations share their buffers; the verifier compares with it."""
    assumed: Bounds | None = None
    """What the author's text demands of the sizes: every proof may rely on it."""
    bounds: Bounds = field(default_factory=Bounds)
    """Which indices are checked, and where."""
    plan: Plan = field(default_factory=Plan)
    notes: tuple[Note, ...] = ()
    checked: bool = False
    """Whether every index is checked at each access."""
    fallback: str = ""
    """Why the author's order was kept although another was asked for."""

    @functools.cached_property
    def model(self) -> Model:
        """The kernel as isl sees it; it ends with the session."""
        return Model(self.kernel, self.owners)

    @functools.cached_property
    def conflicts(self) -> list[Conflict]:
        """The pairs of accesses that touch the same element, one of them a write."""
        return conflicts(self.model)

    @functools.cached_property
    def kinds(self) -> Mapping[str, Kind]:
        """By loop: parallel, reduction or sequential."""
        return classify(self.model, self.conflicts)

    def with_(self, *notes: Note, **changes: Any) -> Program:
        """Return this program with changed fields and further notes.

        Analyses are kept where nothing changes that they read.
        """
        if "kernel" in changes and changes["kernel"] is self.kernel:
            del changes["kernel"]
        made = replace(self, **changes, notes=(*self.notes, *notes))
        if not changes.keys() & {"kernel", "owners", "assumed"}:
            for name in ("model", "conflicts", "kinds"):
                if name in self.__dict__:
                    made.__dict__[name] = self.__dict__[name]
        return made

    def without_isl(self) -> Program:
        """Return this program for after the session, when isl's values are gone; the kinds of loops stay."""
        made = replace(self, bounds=replace(self.bounds, sizes=[], bad={}), assumed=None)
        if "kinds" in self.__dict__:
            made.__dict__["kinds"] = self.kinds
        else:
            made.__dict__["kinds"] = {}
        return made
