"""A step that puts a loop on threads, inside of loops that the compiler makes."""

import numpy as np
import pytest

import polyop


def windows(d, x, like):
    w = np.zeros((d.shape[0], x.shape[0], like.shape[0]), x.dtype)
    for o in range(w.shape[0]):
        for c in range(w.shape[1]):
            for p in range(w.shape[2]):
                for i in range(d.shape[1]):
                    w[o, c, p] += d[o, i] * x[c, i + p]
    return w


@pytest.mark.filterwarnings("ignore::polyop.UninitialisedWarning")
@pytest.mark.parametrize("loop", ["o", "c", "p"])
def test_a_loop_inside_of_blocks_is_on_threads(loop):
    chosen = polyop.kernel(windows, name=f"chosen_threads::{loop}", schedule=polyop.Schedule().parallel(loop))
    random = np.random.default_rng(0)
    d, x = (random.integers(-3, 4, size).astype(np.float32) for size in ((4, 600), (3, 604)))
    wanted = np.stack([[[(row * of[p : p + 600]).sum() for p in range(5)] for of in x] for row in d])
    np.testing.assert_array_equal(chosen(d, x, np.zeros(5, np.float32)), wanted)
