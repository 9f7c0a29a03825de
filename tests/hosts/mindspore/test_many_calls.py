"""A process may have any number of different calls in graphs."""

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor

import polyop

SCALED = polyop.operator(
    "ms_many::scaled(Tensor x, float a) -> Tensor", lambda x, a: (x * a).astype(x.dtype), infer="x"
)
CALLS, PER_GRAPH = 1100, 100


@pytest.mark.slow
def test_more_calls_than_a_table_would_have():
    """Each value of the attribute is another call; eleven graphs have a hundred of them each."""
    x = Tensor(np.ones(2, np.float32))
    for first in range(0, CALLS, PER_GRAPH):

        @ms.jit
        def total(x, first=first):
            result = x * 0
            for k in range(first, first + PER_GRAPH):
                result = result + SCALED(x, k + 0.5)
            return result

        expected = sum(k + 0.5 for k in range(first, first + PER_GRAPH))
        np.testing.assert_allclose(total(x).asnumpy(), np.full(2, expected), rtol=1e-5)
