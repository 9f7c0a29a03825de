"""The exchange of edges in JAX's programs: each device gets what it needs, in as few permutes as that takes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("jax", reason="JAX is not installed")

from polyop.hosts.jax.halo import exchange
from polyop.sharding.ranges import Range, chunks


@st.composite
def needs(draw):
    """The size of a dimension, and what each device needs of it."""
    count, chunk = draw(st.integers(1, 6)), draw(st.integers(1, 5))
    position = st.integers(0, count * chunk)
    rows = [sorted((draw(position), draw(position))) for _ in range(count)]
    return count * chunk, [Range(*row) for row in rows]


def extended(edges, have, device):
    """The positions in the extended array of a device; None where nobody sends."""
    for edge in edges:
        sender = edge.senders[device]
        begin = have[sender].begin + edge.starts[sender]
        yield from range(begin, begin + edge.width) if sender >= 0 else [None] * edge.width


@given(needs())
def test_each_device_gets_what_it_needs(row):
    size, needed = row
    have = chunks(size, len(needed))
    plan = exchange(("x",), range(len(needed)), size, needed)
    for device, need in enumerate(needed):
        positions = list(extended(plan.edges, have, device))
        taken = [at for piece in plan.pieces[device] for at in positions[piece.begin : piece.end]]
        assert taken == list(range(*need))


@given(needs())
def test_only_those_who_are_needed_send_and_each_device_has_one_permute_less_than_there_are(row):
    size, needed = row
    have = chunks(size, len(needed))
    plan = exchange(("x",), range(len(needed)), size, needed)
    permutes = [edge for edge in plan.edges if not edge.is_own]
    assert len(permutes) < len(needed)
    for edge in permutes:
        pairs = [(sender, device) for device, sender in enumerate(edge.senders) if sender >= 0]
        assert len({sender for sender, _ in pairs}) == len(pairs)
        assert all(have[sender].intersect(needed[device]).size for sender, device in pairs)


def test_two_devices_exchange_their_edges_at_once():
    needed = [Range(0, 4), Range(1, 6)]
    (edge,) = [edge for edge in exchange(("x",), (0, 1), 6, needed).edges if not edge.is_own]
    assert (edge.width, edge.senders) == (2, (1, 0))


def test_many_devices_have_one_permute_to_each_side():
    needed = [Range(max(0, 3 * i - 1), min(12, 3 * i + 4)) for i in range(4)]
    before, own, after = exchange(("x",), range(4), 12, needed).edges
    assert before.senders == (-1, 0, 1, 2)
    assert own.is_own
    assert after.senders == (1, 2, 3, -1)


def test_edges_from_several_devices_come_in_the_order_of_positions():
    needed = [Range(max(0, 3 * i - 5), min(15, 3 * i + 8)) for i in range(5)]
    plan = exchange(("x",), range(5), 15, needed)
    assert [len(pieces) for pieces in plan.pieces] == [1] * 5  # no slice is put together again
