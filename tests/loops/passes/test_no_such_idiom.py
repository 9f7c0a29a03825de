"""Loops that look like an online softmax or a search, and are none: the passes leave their meaning."""
# ruff: noqa: F821 - the language's words are not names of this module

import numpy as np
import pytest

import polyop

RANDOM = np.random.default_rng(7)
SCORES, VALUES = RANDOM.standard_normal((3, 4, 5)), RANDOM.standard_normal((3, 5))


def blocks(s, v):
    """Attention with its state in memory: an outer loop comes back to each sum."""
    out = output_tensor((s.shape[1],), s.dtype)
    for b in range(s.shape[0]):
        for i in range(s.shape[1]):
            top = 0.0
            for j in range(s.shape[2]):
                new = max(top, s[b, i, j])
                out[i] = out[i] * exp(top - new) + exp(s[b, i, j] - new) * v[b, j]
                top = new
    return out


def blocks_numpy(s, v):
    out = np.zeros(s.shape[1])
    for b, i in np.ndindex(s.shape[:2]):
        top = 0.0
        for j in range(s.shape[2]):
            new = max(top, s[b, i, j])
            out[i] = out[i] * np.exp(top - new) + np.exp(s[b, i, j] - new) * v[b, j]
            top = new
    return out


def rescaled_in_each(s, v):
    """The inner loop rescales one element in each of its iterations."""
    out = output_tensor((s.shape[1],), s.dtype)
    for i in range(s.shape[1]):
        top = 0.0
        for j in range(s.shape[2]):
            new = max(top, s[0, i, j])
            for d in range(v.shape[0]):
                out[i] = out[i] * exp(top - new) + exp(s[0, i, j] - new) * v[d, j]
            top = new
    return out


def rescaled_in_each_numpy(s, v):
    out = np.zeros(s.shape[1])
    for i in range(s.shape[1]):
        top = 0.0
        for j in range(s.shape[2]):
            new = max(top, s[0, i, j])
            for d in range(v.shape[0]):
                out[i] = out[i] * np.exp(top - new) + np.exp(s[0, i, j] - new) * v[d, j]
            top = new
    return out


@pytest.mark.filterwarnings("ignore:out is read before it is written")
@pytest.mark.parametrize(
    ("function", "expected"), [(blocks, blocks_numpy), (rescaled_in_each, rescaled_in_each_numpy)]
)
def test_sums_that_are_rescaled_in_another_way(function, expected):
    kernel = polyop.kernel(function)
    np.testing.assert_allclose(kernel(SCORES, VALUES), expected(SCORES, VALUES), rtol=1e-12)
    _, pull = kernel.vjp(SCORES, VALUES)
    gradient, step = pull(np.ones(4))[1], 1e-6
    moved = VALUES + step * np.eye(15)[:, None].reshape(15, 3, 5)
    slopes = [(expected(SCORES, m).sum() - expected(SCORES, VALUES).sum()) / step for m in moved]
    np.testing.assert_allclose(gradient.ravel(), slopes, rtol=1e-4, atol=1e-6)


def stores_at_the_best(x):
    y = output_tensor(x.shape, x.dtype)
    best = 0
    for j in range(x.shape[0]):
        if x[j] > x[best]:
            best = j
            y[best] = x[j]
    return y


def test_a_store_at_a_remembered_place_stays_in_the_loop():
    x = np.arange(20.0)
    np.testing.assert_array_equal(polyop.kernel(stores_at_the_best)(x), x)


def pair_at_a_place_it_holds(y, z):
    y[int(abs(y[0]))] = z[1]
    return y


def test_the_place_of_a_complex_number_is_found_once():
    y, z = np.zeros(5, complex), np.array([0, 3 + 4j])
    np.testing.assert_array_equal(polyop.kernel(pair_at_a_place_it_holds)(y, z), [3 + 4j, 0, 0, 0, 0])


def counts_from_the_end(s, v):
    """Each element is visited twice: at d - 3 and at d."""
    out = output_tensor((3,), s.dtype)
    for d in range(3):
        out[d] = 0.0
    top = 0.0
    for j in range(s.shape[2]):
        new = max(top, s[0, 0, j])
        for d in range(-3, 3):
            out[d] = out[d] * exp(top - new) + exp(s[0, 0, j] - new) * v[d, j]
        top = new
    return out


def test_elements_that_are_visited_twice():
    expected, top = np.zeros(3), 0.0
    for j in range(5):
        new = max(top, SCORES[0, 0, j])
        for d in range(-3, 3):
            expected[d] = expected[d] * np.exp(top - new) + np.exp(SCORES[0, 0, j] - new) * VALUES[d, j]
        top = new
    found = polyop.kernel(counts_from_the_end)(SCORES, VALUES)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
