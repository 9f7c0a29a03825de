"""The scope of a buffer: the loops whose iterations each have a private copy of it."""

from __future__ import annotations

from collections.abc import Iterable

from ..analysis.initialisation import Coverage
from ..analysis.polyhedra import Model
from ..analysis.session import IslSession
from ..ir.grammar import Kernel

Scopes = dict[str, tuple[str, ...]]
"""For each buffer the loops, outermost first, whose iterations each have it for themselves."""


def scopes_of(kernel: Kernel, session: IslSession, names: Iterable[str]) -> Scopes:
    """Return the scopes of buffers: an iteration of them reads of a buffer only what it wrote itself."""
    coverage = Coverage(Model(kernel, session))
    scopes: Scopes = {}
    for name in names:
        if not coverage.writes(name):
            continue
        loops = coverage.shared_loops(name)
        levels = range(len(loops), 0, -1)
        level = next((n for n in levels if coverage.uncovered_read(name, n) is None), 0)
        scopes[name] = loops[:level]
    return scopes
