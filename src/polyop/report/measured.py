"""Measure for a report, in turns: the call, its gradient and its peers; and by number of threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..bench.machine import machine
from ..bench.peers import Peer
from ..bench.roofline import Roofs, measure_roofs
from ..bench.run import OURS, Settings, bench
from ..bench.timing import Spread, measure
from ..bench.work import work_of
from ..call.bound import BoundOperator
from ..core.errors import PolyopError
from ..kernels.threads import get_num_threads, set_num_threads
from ..loops.analysis.work import Work
from ..testing import samples
from .call import Called
from .gradient import Derived
from .values import Measured, Point

ROUNDS, SLICE_S = 11, 0.02
"""Slices of each call, and the seconds of one: a report takes seconds, not minutes."""


def measured(
    bound: BoundOperator,
    called: Called,
    values: Sequence[Any],
    gradient: Derived | None,
    peers: Sequence[Peer] = (),
) -> Measured:
    """Return the roofs of this machine and the times of a call, of its gradient and of its peers.

    ``values`` are tensors in place of specs; without them arrays are drawn, as ``polyop check`` draws them.
    Where a call raises an error, the result has no times and says the error.
    """
    said: list[str] = []
    try:
        calls, works, said = _that_run(bound, called, values, gradient)
        roofs = measure_roofs()
    except PolyopError as problem:
        return Measured(missing=str(problem))
    timing = measure(calls, rounds=ROUNDS, slice_s=SLICE_S)
    points = [_point(name, work, timing[name]) for (name, _), work in zip(calls, works, strict=True)]
    beside, wrong = _beside(bound, called, values, peers)
    points += [_point(name, works[0], spread, "peer") for name, spread in beside]
    level = roofs.level_of(works[0].bytes)
    return Measured(
        points=tuple(points),
        bandwidth=tuple(roofs.bandwidth.items()),
        flops=tuple(roofs.flops.items()),
        level=level,
        limits=tuple(_limits(points, roofs)),
        threads=tuple(_by_threads(calls[0][1])),
        busy=_busy(),
        notes=(*said, *_notes(works, roofs), *wrong),
    )


def _that_run(
    bound: BoundOperator, called: Called, values: Sequence[Any], gradient: Derived | None
) -> tuple[list[tuple[str, Callable[[], Any]]], list[Work], list[str]]:
    """Return calls that run: with these values or, where drawn values raise an error, with integers of zero.

    Drawn integers may be no indices. Tensors of the caller are never replaced: their error is raised.
    """
    arguments = samples.arguments(bound.operator, tuple(values) or called.given, dict(called.own), 0)
    try:
        return (*_calls(bound, called, arguments, gradient), [])
    except PolyopError:
        if values:
            raise
        tensors = set(bound.schema.tensor_positions)
        zeros = [
            np.zeros_like(x) if k in tensors and isinstance(x, np.ndarray) and x.dtype.kind in "iu" else x
            for k, x in enumerate(arguments)
        ]
        said = "Tensors of integers are zeros: the call raised an error with drawn integers."
        return (*_calls(bound, called, zeros, gradient), [said])


def _calls(
    bound: BoundOperator, called: Called, arguments: Sequence[Any], gradient: Derived | None
) -> tuple[list[tuple[str, Callable[[], Any]]], list[Work]]:
    """Return the call and the gradient's, from NumPy, with the work of each."""
    works = [work_of(bound, called.given, called.own)]
    args, keywords = bound.schema.split(arguments)
    calls: list[tuple[str, Callable[[], Any]]] = [(bound.name, lambda: bound(*args, **keywords))]
    calls[0][1]()
    if gradient is None:
        return calls, works
    outputs, pull = bound.vjp(*args, **keywords)
    several = isinstance(outputs, (tuple, list))
    grads = [np.ones_like(one) for one in outputs] if several else np.ones_like(outputs)
    calls.append(("gradient", lambda: pull(grads)))
    calls[1][1]()
    return calls, [*works, gradient.work]


def _beside(
    bound: BoundOperator, called: Called, values: Sequence[Any], peers: Sequence[Peer]
) -> tuple[list[tuple[str, Spread]], list[str]]:
    """Return the times of peers, measured in turns with the operator, and what is wrong with others."""
    if not peers:
        return [], []
    result = bench(
        bound, tuple(values) or called.given, called.own, peers, Settings(rounds=ROUNDS, slice_s=SLICE_S)
    )
    others = [entry for entry in result.entries if entry.name != OURS]
    wrong = [f"{entry.name} is left out: {entry.wrong}" for entry in others if entry.wrong]
    return [(entry.name, entry.seconds) for entry in others if entry.seconds is not None], wrong


def _point(name: str, work: Work, spread: Spread, kind: str = "") -> Point:
    kind = kind or ("gradient" if name == "gradient" else "own")
    return Point(
        name, work.flops, work.bytes, spread.median, spread.low, spread.high, work.dtype, work.exact, kind
    )


def _limits(points: Sequence[Point], roofs: Roofs) -> Iterator[tuple[str, str, float]]:
    """Yield for each point the roof above it, and the fraction of it that the point reaches."""
    for point in points:
        work = Work(point.flops, point.bytes, 0.0, point.dtype)
        if point.bytes:
            yield point.name, roofs.limit(work), roofs.seconds(work) / point.seconds


def _by_threads(call: Callable[[], Any]) -> Iterator[tuple[int, float, float, float]]:
    """Yield the times for each number of threads, from one to those that kernels use now."""
    most = get_num_threads()
    try:
        for count in _counts(most):
            set_num_threads(count)
            spread = measure([("call", call)], rounds=ROUNDS, slice_s=SLICE_S)["call"]
            yield count, spread.median, spread.low, spread.high
    finally:
        set_num_threads(most)


def _counts(most: int) -> list[int]:
    """Return the numbers of threads to measure: all up to eight, then powers of two, and the most.

    >>> _counts(2), _counts(24)
    ([1, 2], [1, 2, 3, 4, 5, 6, 7, 8, 16, 24])
    """
    powers = [2**k for k in range(4, 12) if 2**k < most]
    return sorted({*range(1, min(most, 8) + 1), *powers, most})


def _busy() -> str:
    """Return a sentence if the machine did other work, too."""
    now = machine()
    said = f"The machine did other work (load {now['load']}, {now['cores']} cores): times are too long."
    return said if now["busy"] else ""


def _notes(works: Sequence[Work], roofs: Roofs) -> Iterator[str]:
    yield f"Roofs and calls use {roofs.threads} threads and the vectors of {roofs.target}."
    if not all(work.exact for work in works):
        yield "Operations or bytes are an upper bound: a loop may end early, or indices come from data."
    yield "Bytes are those of tensors, each element once; an exponential counts as one operation."
