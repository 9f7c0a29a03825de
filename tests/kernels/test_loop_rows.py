# ruff: noqa: F821 - kernels, whose words are no names here
"""Kernels that read tensors in rows where they lie: not where 64 bits may be too few for an index."""

import numpy as np
import pytest

import polyop
from polyop.core.dtypes import dtype
from polyop.core.spec import Spec
from polyop.kernels.loop.rows import CALLS_WITH_COPIES, Found, describe, launch

ROWS, COLUMNS, LONGER = 300, 400, 500
PROVED = 2**42
pytestmark = pytest.mark.filterwarnings("ignore::polyop.FallbackWarning")


def numbered(x, k: int = 0):
    y = output_tensor(x.shape, "int64")
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = int(x[i, j]) + (j + k)
    return y


@pytest.mark.parametrize(
    ("k", "row", "is_read_in_place"),
    [
        (PROVED, PROVED, True),
        (PROVED + 1, LONGER, False),
        (-PROVED - 1, LONGER, False),
        (3, PROVED + 1, False),
    ],
)
def test_sizes_that_proofs_do_not_cover_are_copied(k, row, is_read_in_place):
    op = polyop.kernel(numbered)
    loops = op.operator.kernels[0]
    spec, out = (Spec((ROWS, COLUMNS), dtype(name)) for name in ("float32", "int64"))
    for _ in range(CALLS_WITH_COPIES + 2):
        launch(loops, (spec,), (out,), {"k": k}, [Found(0, (0, 1), (ROWS, row))])
    texts = list(describe(loops, (spec,), {"k": k}))
    assert any(text.startswith("compiled for rows that are read where they lie") for text in texts) == (
        is_read_in_place
    )


def test_explain_says_that_large_attributes_get_copies():
    op = polyop.kernel(numbered)
    x = np.arange(ROWS * LONGER, dtype=np.float32).reshape(ROWS, LONGER)[:, :COLUMNS]
    k = 2**62
    for _ in range(CALLS_WITH_COPIES + 2):
        found = op(x, k)
    np.testing.assert_array_equal(found, x.astype(np.int64) + np.arange(COLUMNS) + k)
    spec = Spec(x.shape, dtype("float32"))
    (text,) = describe(op.operator.kernels[0], (spec,), {"k": k})
    assert text == "tensors in rows are copied: sizes or attributes are beyond 2**42"
