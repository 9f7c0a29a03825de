"""The pieces of a program for a device: launches, and the control flow of the host around them."""

from __future__ import annotations

from dataclasses import dataclass

from ...ir.grammar import For, If, Load, Stmt


@dataclass(frozen=True)
class Threads:
    """One thread for each iteration of ``loops``, neighbours along the last one.

    ``atomic``: buffers into which the iterations reduce by atomic operations.
    """

    loops: tuple[For, ...]
    body: tuple[Stmt, ...]
    atomic: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Rows:
    """A group of threads for each iteration of ``loops``."""

    loops: tuple[For, ...]
    body: tuple[Stmt, ...]


@dataclass(frozen=True)
class Tiles:
    """Blocks of ``row`` times ``lane``, for each iteration of ``loops``.

    ``guarded`` are the loads that are inside their tensor only because of a condition around them.
    """

    loops: tuple[For, ...]
    row: For
    lane: For
    guarded: frozenset[Load]


@dataclass(frozen=True)
class Sums:
    """Partial results of ``over``; ``shared``: a group of threads for each iteration, not one thread."""

    loops: tuple[For, ...]
    body: tuple[Stmt, ...]
    over: tuple[tuple[str, str], ...]
    shared: bool


@dataclass(frozen=True)
class Each:
    """A loop on the host."""

    loop: For
    pieces: tuple[Piece, ...]


@dataclass(frozen=True)
class Branch:
    """A condition on the host."""

    node: If
    pieces: tuple[Piece, ...]
    orelse: tuple[Piece, ...]


@dataclass(frozen=True)
class Guard:
    """A condition on scalars in device memory: each launch tests it first."""

    node: If
    pieces: tuple[Piece, ...]
    orelse: tuple[Piece, ...]


@dataclass(frozen=True)
class Alone:
    """Statements in order, by one block."""

    body: tuple[Stmt, ...]


Piece = Threads | Rows | Tiles | Sums | Each | Branch | Guard | Alone
