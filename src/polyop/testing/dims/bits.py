"""The check that a row has the same bits alone and in a batch of any size, on any number of threads.

::

    f([x0 x1 ... x36])          on all threads and on one: the same bytes
    f([x0]), f([x1 x2]), ...    the same bytes as these rows of the whole
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from ...core.errors import InferError
from ...kernels.threads import get_num_threads, set_num_threads
from ..case import Array, BrokenRuleError, Case, NotRunError
from ..compare import same_bits
from .join import Piece, UntriedError, pieces
from .outcome import claimed
from .parts import Dimension, cut, resized, result_entries, sizes_of
from .rule import DimsRule, rule_of
from .trial import results_of

ROWS = 37
"""Rows of the batch: whole vectors and register tiles, and a remainder of each."""
BOUNDS = (0, 1, 3, 8, 20, ROWS)
THREADS = 4


def same_bits_in_a_batch(case: Case) -> str:
    """Compare the bytes of rows alone, in slices, and in a batch, on one thread and on several.

    It runs for loop kernels of which ``polyop explain`` says so.
    """
    from ...kernels.loop.kernel import LoopKernel

    rule = rule_of(case)
    kernel = next((k for k in case.operator.kernels if isinstance(k, LoopKernel)), None)
    if kernel is None:
        raise NotRunError("no loop kernel: nothing is proved of its bits")
    said = kernel.explain_bits(case.prepare().inputs, case.attributes())
    if not said.startswith("the same"):
        raise NotRunError(f"the bits {said}" if said else "no dimension is a batch")
    tried = [name for name in claimed(case, rule.dims, "parallel") if _compare(case, rule, Dimension(name))]
    if not tried:
        raise NotRunError("no batch of another size can be made of the sample")
    return f"along {', '.join(tried)}"


def _compare(case: Case, rule: DimsRule, dimension: Dimension) -> bool:
    """Raise ``BrokenRuleError`` if bytes differ; return whether the operator takes such a batch."""
    dims = rule.dims
    try:
        batch = resized(case, dims, dimension.with_size(sizes_of(case, dims), ROWS))
        with threads(THREADS):
            whole = results_of(batch)
        with threads(1):
            same_bits("one thread", results_of(batch), whole, f"{THREADS} threads")
            for part in pieces(BOUNDS, (0, 0)):
                alone = results_of(cut(batch, dims, dimension, part.start, part.stop))
                what = f"rows {part.start}:{part.stop} of {dimension.name} alone"
                rows = _rows(case, rule, dimension, whole, part)
                same_bits(what, alone, rows, f"the batch of {ROWS}")
    except (UntriedError, InferError):
        return False
    except BrokenRuleError as problem:
        raise BrokenRuleError(f"the bits of a row depend on its batch: {problem}") from None
    return True


def _rows(case: Case, rule: DimsRule, dimension: Dimension, whole: list[Array], part: Piece) -> list[Array]:
    """Return the rows of a part of the outputs; an output without the dimension is the same in each part."""
    rows = []
    for entry, output in zip(result_entries(case, rule.dims), whole, strict=True):
        axis = dimension.axis(entry)
        before = 0 if axis is None else axis % output.ndim
        piece = (slice(None),) * before + (slice(part.start, part.stop),)
        rows.append(output if axis is None else output[piece])
    return rows


@contextlib.contextmanager
def threads(count: int) -> Iterator[None]:
    """Run with this number of threads."""
    before = get_num_threads()
    set_num_threads(count)
    try:
        yield
    finally:
        set_num_threads(before)
