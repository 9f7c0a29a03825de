"""Shapes of outputs where sizes of inputs are unknown: -1 for a size, (-2,) for the number of dimensions.

The infer rule is asked with numbers in their place. What is the same for all that it accepts is known.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...core.errors import PolyopError

Shape = tuple[int, ...]
UNKNOWN_RANK = (-2,)
_SIZES = (120, 240, 1)  # many numbers divide the first two; 1 is special where a rule broadcasts
_RANKS = (1, 2, 3, 4)
_launches: dict[tuple[str, str], Any] = {}  # by the text of a call and the names of its dtypes
_MOST = 256  # questions, which take some 50 us each while a graph is compiled


def register(text: str, dtypes: str, launch: Any) -> None:
    """Make a launch the one that answers for a call with tensors of these dtypes."""
    _launches[text, dtypes] = launch


def asked_by_mindspore(text: str, dtypes: str, shapes: list[list[int]]) -> list[Shape] | str:
    """Return the shapes of a call's outputs, or the text of an error. The native core calls it."""
    launch = _launches.get((text, dtypes))
    if launch is None:
        return "polyop: a graph with unknown sizes runs only in the process that has compiled it"
    given = [tuple(shape) for shape in shapes]
    try:
        outputs: list[Shape] = launch.output_shapes(given)
    except Exception as problem:  # noqa: BLE001 - MindSpore shows the text alone
        if not is_unknown(given):
            return f"{type(problem).__name__}: {problem}"
        outputs = [UNKNOWN_RANK] * launch.output_count  # Launch.__infer__ is next: its error is whole
    return outputs


def is_known(shape: Any) -> bool:
    """Whether a shape that the compiler passes to a Python function has all its sizes."""
    return isinstance(shape, (tuple, list)) and all(isinstance(size, int) and size >= 0 for size in shape)


def is_unknown(shapes: Sequence[Shape]) -> bool:
    """Whether a size, or the number of dimensions, is not known."""
    return any(size < 0 for shape in shapes for size in shape)


def shapes_for(shapes: Sequence[Shape], infer: Callable[[list[Shape]], list[Shape]]) -> list[Shape]:
    """Return the shapes of the outputs; raises the first error of ``infer`` if it accepts no numbers."""
    if not is_unknown(shapes):
        return infer(list(shapes))
    problems: list[PolyopError] = []

    def attempt(filled: list[Shape]) -> list[Shape] | None:
        try:
            return infer(filled)
        except PolyopError as problem:
            problems.append(problem)
            return None

    found = []
    for rank in _RANKS if UNKNOWN_RANK in shapes else (0,):
        ranked = [(-1,) * rank if shape == UNKNOWN_RANK else shape for shape in shapes]
        found += [outputs for outputs in map(attempt, _filled(ranked)) if outputs is not None]
    if not found:
        raise problems[0]
    return [_common(column) for column in zip(*found, strict=True)]


def _filled(shapes: Sequence[Shape]) -> Iterator[list[Shape]]:
    """Yield the shapes with numbers: each combination of them, or where these are too many, one for all."""
    sizes = dict.fromkeys([*_SIZES, *(size for shape in shapes for size in shape if size >= 0)])
    count = sum(size < 0 for shape in shapes for size in shape)
    same = ((size,) * count for size in sizes)
    for numbers in same if len(sizes) ** count > _MOST else itertools.product(sizes, repeat=count):
        remaining = iter(numbers)
        yield [tuple(size if size >= 0 else next(remaining) for size in shape) for shape in shapes]


def _common(shapes: Sequence[Shape]) -> Shape:
    if len({len(shape) for shape in shapes}) > 1:
        return UNKNOWN_RANK
    return tuple(sizes[0] if len(set(sizes)) == 1 else -1 for sizes in zip(*shapes, strict=True))
