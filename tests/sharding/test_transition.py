"""Which collective brings a tensor from one layout to another, and the bytes that a device receives."""

import pytest

from polyop.sharding.placement import REPLICATE, Partial, Shard
from polyop.sharding.transition import is_possible, local_bytes, transition

R, P, S0, S1 = REPLICATE, Partial("sum"), Shard(0), Shard(1)
M = Partial("max")


def steps(size, mesh, source, target):
    return [(one.kind, one.axis, one.bytes) for one in transition("t", size, mesh, source, target)]


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [  # 480 bytes on 4 devices: a slice has 120
        (S0, R, [("all-gather", 0, 360)]),
        (P, R, [("all-reduce", 0, 720)]),
        (M, R, [("all-reduce", 0, 720)]),
        (P, S0, [("reduce-scatter", 0, 360)]),
        (S0, S1, [("all-to-all", 0, 90)]),
        (R, S1, []),
        (R, P, []),
        (R, R, []),
        (S1, S1, []),
        (P, P, []),
    ],
    ids=lambda value: str(value),
)
def test_one_axis(source, target, expected):
    assert steps(480, (4,), (source,), (target,)) == expected


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [  # 480 bytes on 2 x 4 devices: inner axes come first
        ((S0, S1), (R, R), [("all-gather", 1, 180), ("all-gather", 0, 240)]),
        ((P, S0), (S1, S0), [("reduce-scatter", 0, 60)]),
        ((P, P), (R, R), [("all-reduce", 0, 480), ("all-reduce", 1, 720)]),
        ((P, S0), (S1, R), [("all-gather", 1, 360), ("reduce-scatter", 0, 240)]),
        ((S0, S0), (R, S1), [("all-to-all", 1, 45), ("all-gather", 0, 60)]),
        # a slice of a slice is gathered before the slice around it changes, and is cut in the end
        ((S0, S0), (R, S0), [("all-gather", 1, 180), ("all-gather", 0, 240)]),
        ((S0, S0), (S1, S0), [("all-gather", 1, 180), ("all-to-all", 0, 120)]),
        ((R, S0), (S0, S0), [("all-gather", 1, 360)]),
        ((P, S0), (S0, S0), [("all-gather", 1, 360), ("reduce-scatter", 0, 240)]),
        ((S1, S0), (S0, S1), [("all-gather", 1, 180), ("all-to-all", 0, 120)]),
        ((R, S0), (S0, R), [("all-gather", 1, 360)]),
        ((R, R), (S0, S0), []),
        ((S0, R), (S0, R), []),
    ],
    ids=lambda value: str([*map(str, value)]),
)
def test_two_axes(source, target, expected):
    assert steps(480, (2, 4), source, target) == expected


def test_one_device_receives_nothing():
    for source in (R, P, S0, S1):
        assert steps(480, (1,), (source,), (R,)) == []


def test_slices_are_rounded_up():
    assert local_bytes(10, (4,), (S0,)) == 3
    assert local_bytes(10, (4, 2), (S0, S1)) == 2
    assert local_bytes(10, (4, 2), (R, P)) == 10


@pytest.mark.parametrize("source", [R, P, S0, S1, M], ids=str)
def test_only_sums_are_made_from_whole_tensors(source):
    assert is_possible(source, R)
    assert is_possible(source, S0)
    assert is_possible(source, M) == (source == M)
    assert is_possible(source, P) == (source in (P, R))
