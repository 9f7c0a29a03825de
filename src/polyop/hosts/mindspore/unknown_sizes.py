"""Shapes of outputs where sizes of inputs are unknown: -1 for a size, (-2,) for the number of dimensions.

The infer rule is asked with numbers in their place. What is the same for all that it accepts is known. Where
there are too many combinations to ask, no size of the outputs is.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

Shape = tuple[int, ...]
UNKNOWN_RANK = (-2,)
_SIZES = (120, 240, 1, 315, 983_040)  # many divisors; 1 broadcasts; an odd one; one beyond what rules clip at
_RANKS = (1, 2, 3, 4)
_launches: dict[tuple[str, str], Any] = {}  # by the text of a call and the names of its dtypes
_MAX_QUESTIONS = 2500  # questions, which take some 50 us each while a graph is compiled


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


def may_be_equal(one: Any, other: Any) -> bool:
    """Whether two shapes that the compiler passes to a Python function differ in nothing that is known.

    >>> may_be_equal((None, 3), (2, 3)), may_be_equal((None, 3), (3,)), may_be_equal((-2,), (3,))
    (True, False, True)
    """
    shapes = [one, other]
    if any(not isinstance(shape, (tuple, list)) or -2 in shape for shape in shapes):
        return True
    pairs = zip(one, other, strict=False)
    return len(one) == len(other) and all(
        a is None or b is None or a < 0 or b < 0 or a == b for a, b in pairs
    )


def is_unknown(shapes: Sequence[Shape]) -> bool:
    """Whether a size, or the number of dimensions, is not known."""
    return any(size < 0 for shape in shapes for size in shape)


def shapes_for(shapes: Sequence[Shape], infer: Callable[[list[Shape]], list[Shape]]) -> list[Shape]:
    """Return the shapes of the outputs; raises the first error of ``infer`` if it accepts no numbers."""
    if not is_unknown(shapes):
        return infer(list(shapes))
    problems: list[Exception] = []

    def attempt(filled: list[Shape]) -> list[Shape] | None:
        try:
            return infer(filled)
        except Exception as problem:  # noqa: BLE001 - of PyTorch too: a size of the table may be too large
            problems.append(problem)
            return None

    found, is_asked_all = [], True
    for rank in _RANKS if UNKNOWN_RANK in shapes else (0,):
        ranked = [(-1,) * rank if shape == UNKNOWN_RANK else shape for shape in shapes]
        questions, are_all = _filled(ranked)
        is_asked_all = is_asked_all and are_all
        found += [outputs for outputs in map(attempt, questions) if outputs is not None]
    if not found:
        raise problems[0]
    common = [_common(column) for column in zip(*found, strict=True)]
    return common if is_asked_all else [s if s == UNKNOWN_RANK else (-1,) * len(s) for s in common]


def _filled(shapes: Sequence[Shape]) -> tuple[Iterator[list[Shape]], bool]:
    """Return the shapes with each combination of numbers, and True; if too many, with one number for all."""
    sizes = dict.fromkeys([*_SIZES, *(size for shape in shapes for size in shape if size >= 0)])
    count = sum(size < 0 for shape in shapes for size in shape)
    are_all = len(sizes) ** count <= _MAX_QUESTIONS
    numbers = itertools.product(sizes, repeat=count) if are_all else ((size,) * count for size in sizes)
    return (_with_numbers(shapes, iter(row)) for row in numbers), are_all


def _with_numbers(shapes: Sequence[Shape], numbers: Iterator[int]) -> list[Shape]:
    return [tuple(size if size >= 0 else next(numbers) for size in shape) for shape in shapes]


def _common(shapes: Sequence[Shape]) -> Shape:
    if len({len(shape) for shape in shapes}) > 1:
        return UNKNOWN_RANK
    return tuple(sizes[0] if len(set(sizes)) == 1 else -1 for sizes in zip(*shapes, strict=True))
