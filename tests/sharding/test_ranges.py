"""Which elements a device computes, has and needs."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyop.core.dtypes import dtype
from polyop.core.spec import Spec
from polyop.sharding.placement import Shard
from polyop.sharding.ranges import Range, Slice, chunks, input_range, needed, output_offset, slices, transfers
from polyop.sharding.rule import AxisStrategy, ShardingRule

SIZES, COUNTS, WIDTHS = st.integers(0, 40), st.integers(1, 9), st.integers(0, 5)


def cut(size, output_size, before, after, count):
    strategy = AxisStrategy("n", (Shard(0),), (Shard(0),), size, before, after)
    specs = (Spec((size,), dtype("float32")),), (Spec((output_size,), dtype("float32")),)
    return strategy, slices(ShardingRule("ns::f", *specs, (strategy,)), strategy, count)


@pytest.mark.parametrize(
    ("size", "count", "expected"),
    [
        (10, 4, [(0, 3), (3, 6), (6, 9), (9, 10)]),
        (5, 4, [(0, 2), (2, 4), (4, 5), (5, 5)]),
        (6, 4, [(0, 2), (2, 4), (4, 6), (6, 6)]),
        (2, 4, [(0, 1), (1, 2), (2, 2), (2, 2)]),
        (0, 2, [(0, 0), (0, 0)]),
        (7, 1, [(0, 7)]),
    ],
)
def test_chunks(size, count, expected):
    assert chunks(size, count) == expected


@given(SIZES, COUNTS)
def test_chunks_are_those_of_torch(size, count):
    torch = pytest.importorskip("torch")
    expected = [len(part) for part in torch.arange(size).chunk(count)]  # without the empty ones at the end
    sizes = [chunk.size for chunk in chunks(size, count)]
    assert sizes == (expected + [0] * count)[:count]


@pytest.mark.parametrize(
    ("size", "output_size", "halo", "count", "expected"),
    [  # own, input and output of each device
        (6, 6, (1, 1), 2, [((0, 3), (0, 4), (0, 3)), ((3, 6), (2, 6), (3, 6))]),
        (6, 4, (0, 2), 2, [((0, 2), (0, 4), (0, 2)), ((2, 6), (2, 6), (2, 4))]),
        (5, 5, (2, 0), 4, [((0, 2), (0, 2), (0, 2)), ((2, 4), (0, 4), (2, 4)), ((4, 5), (2, 5), (4, 5)),
                           ((5, 5), (5, 5), (5, 5))]),
        (6, 2, (0, 4), 3, [((0, 1), (0, 5), (0, 1)), ((1, 6), (1, 6), (1, 2)), ((2, 2), (2, 2), (2, 2))]),
        (4, 4, (9, 9), 2, [((0, 2), (0, 4), (0, 2)), ((2, 4), (0, 4), (2, 4))]),
        (3, 0, (0, 3), 2, [((0, 3), (0, 3), (0, 0)), ((0, 0), (0, 0), (0, 0))]),
    ],
)  # fmt: skip
def test_slices(size, output_size, halo, count, expected):
    _, pieces = cut(size, output_size, *halo, count)
    assert [tuple(map(tuple, piece)) for piece in pieces if piece.output.size] == [
        row for row in expected if row[2][0] < row[2][1]
    ]
    assert [piece.output for piece in pieces] == [row[2] for row in expected]


@given(SIZES, WIDTHS, WIDTHS, COUNTS)
def test_slices_cover_the_dimension_once(size, before, after, count):
    _, pieces = cut(size, size, before, after, count)
    owned = [i for piece in pieces for i in range(*piece.own)]
    assert owned == [*range(size)]
    for piece in pieces:
        reads = {i + k for i in range(*piece.own) for k in range(-before, after + 1)} & {*range(size)}
        assert {*range(*piece.input)} >= reads
        assert 0 <= piece.input.begin <= piece.input.end <= size
        if piece.output.size:
            assert output_offset(piece) == piece.own.begin - piece.input.begin >= 0


@given(st.integers(1, 40), st.integers(0, 6), COUNTS)
def test_slices_of_a_window_compute_all_outputs(size, width, count):
    output_size = max(0, size - width)
    _, pieces = cut(size, output_size, 0, width, count)
    assert [i for piece in pieces for i in range(*piece.output)] == [*range(output_size)]
    for piece in pieces:
        if piece.output.size:  # the kernel gives input - width elements
            assert output_offset(piece) + piece.output.size <= piece.input.size - width


@given(SIZES, WIDTHS, WIDTHS, COUNTS, COUNTS)
def test_what_is_sent_is_what_is_needed(size, before, after, senders, receivers):
    have = chunks(size, senders)
    need = [needed(own, before, after, size) for own in chunks(size, receivers)]
    numbers = np.arange(size)
    for receiver, wanted in enumerate(need):
        parts = [numbers[slice(*row[receiver])] for row in transfers(have, need)]
        assert [*itertools.chain(*parts)] == [*range(*wanted)]


def test_a_shorter_input_begins_at_the_same_place():
    strategy, pieces = cut(8, 8, 2, 2, 3)  # such as x; d_y has 6 elements
    assert [tuple(piece.input) for piece in pieces] == [(0, 5), (1, 8), (4, 8)]
    assert [tuple(input_range(strategy, piece, 6)) for piece in pieces] == [(0, 3), (1, 6), (4, 6)]
    assert [tuple(input_range(strategy, piece, 8)) for piece in pieces] == [tuple(p.input) for p in pieces]
    beyond = Slice(Range(7, 8), Range(7, 8), Range(7, 8))
    assert input_range(strategy, beyond, 6).size == 0
