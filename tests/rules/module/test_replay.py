"""The steps of a dry run, run again on arrays of NumPy."""

import numpy as np

from polyop.rules.module.replay import Replay


def test_a_pair_of_sizes_is_not_taken_for_a_tensor():
    x = np.arange(6.0)
    steps = [("view", "reshape", (("tensor", 0), (2, 3)), [1]), ("copy", "", (("tensor", 1),), [2])]
    np.testing.assert_array_equal(Replay(np, {0: x}, steps).value(2), [[0, 1, 2], [3, 4, 5]])


def test_sizes_of_a_single_number_are_not_taken_for_a_tensor():
    steps = [("view", "reshape", (("tensor", 0), ()), [1])]
    assert Replay(np, {0: np.array([7.0])}, steps).value(1) == 7
