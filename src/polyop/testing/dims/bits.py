"""The check that a row has the same bits alone and in a batch of any size, on any number of threads.

::

    f([x0 x1 ... x5012])        on all threads and on one: the same bytes
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
from .rule import DimsRule, rule_of
from .slices import Dimension, cut, resized, result_entries, sizes_of
from .trial import results_of

ROWS = (37, 517, 5_013, 40_037)
"""Sizes of the batch: whole vectors and register tiles, and a remainder of each."""
ENOUGH, MOST = 400_000, 4_000_000
"""Elements of the tensors: with enough of them several threads run, and no more than the most are made."""
FIRST = (0, 1, 3, 8, 20, 37)
"""The bounds of the first slices; the last rows are slices too."""
THREADS = 4


def same_bits_in_a_batch(case: Case) -> str:
    """Compare the bytes of rows alone, in slices, and in a batch, on one thread and on several.

    It runs for loop kernels of which ``polyop explain`` says so.
    """
    from ...kernels.loop.kernel import LoopKernel

    rule, prepared = rule_of(case), case.prepare()
    kernel = prepared.kernel
    if not isinstance(kernel, LoopKernel):
        raise NotRunError("no loop kernel: nothing is proved of its bits")
    said = kernel.explain_bits(prepared.inputs, case.attributes())
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
        batch, rows_of_batch = _batch(case, rule, dimension)
        with threads(THREADS):
            whole = results_of(batch)
        with threads(1):
            same_bits("one thread", results_of(batch), whole, f"{THREADS} threads")
            last = (rows_of_batch - 7, rows_of_batch - 1, rows_of_batch)
            for part in (*pieces(FIRST, (0, 0)), *pieces(last, (0, 0))):
                alone = results_of(cut(batch, dims, dimension, part.start, part.stop))
                what = f"rows {part.start}:{part.stop} of {dimension.name} alone"
                rows = _rows(case, rule, dimension, whole, part)
                same_bits(what, alone, rows, f"the batch of {rows_of_batch}")
    except (UntriedError, InferError):
        return False
    except BrokenRuleError as problem:
        raise BrokenRuleError(f"the bits of a row depend on its batch: {problem}") from None
    return True


def _batch(case: Case, rule: DimsRule, dimension: Dimension) -> tuple[Case, int]:
    """Return a batch and its rows: enough for several threads, if that takes at most ``MOST`` elements."""
    own = sizes_of(case, rule.dims)
    batch, rows = resized(case, rule.dims, dimension.with_size(own, ROWS[0])), ROWS[0]
    for size in ROWS[1:]:
        elements = sum(value.size for _, value in batch.tensors())
        if elements >= ENOUGH or elements * (size / rows) ** 2 > MOST * 10:
            break
        larger = resized(case, rule.dims, dimension.with_size(own, size))
        if sum(value.size for _, value in larger.tensors()) > MOST:
            break
        batch, rows = larger, size
    return batch, rows


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
