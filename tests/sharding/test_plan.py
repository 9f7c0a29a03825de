"""A plan gives the whole's values, moves the fewest bytes, and moves nothing where nothing has to be moved."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import numpy_mesh
from claimed_samples import samples
from polyop.core.dtypes import dtype
from polyop.core.spec import Spec
from polyop.sharding.placement import REPLICATE, Partial, Shard
from polyop.sharding.plan import combinations, plan, plan_with
from polyop.sharding.rule import AxisStrategy, ShardingRule

SAMPLES = [*samples()]
MESHES = st.sampled_from([(1,), (2,), (3,), (8,), (1, 2), (2, 2), (4, 2), (2, 1, 3)])


@st.composite
def layouts(draw, specs, mesh):
    """Placements of each tensor on a mesh."""

    def one(spec):
        options = [REPLICATE, Partial("sum"), *(Shard(dim) for dim in range(len(spec.shape)))]
        return tuple(draw(st.sampled_from(options)) for _ in mesh)

    return tuple(map(one, specs))


@st.composite
def calls(draw):
    """An operator with arguments, its rule, a mesh, how the inputs lie, and how the outputs have to."""
    bound, arguments, _ = draw(st.sampled_from(SAMPLES))
    rule, mesh = numpy_mesh.rule_of(bound, arguments), draw(MESHES)
    wanted = tuple(
        draw(st.one_of(st.none(), layouts((spec,), mesh).map(lambda x: x[0]))) for spec in rule.outputs
    )
    wanted = tuple(
        want if want is None or not any(isinstance(p, Partial) for p in want) else None for want in wanted
    )
    return bound, arguments, rule, mesh, draw(layouts(rule.inputs, mesh)), wanted


@pytest.mark.slow
@given(calls())
@settings(max_examples=150)
def test_a_plan_is_the_whole_with_the_fewest_bytes(call):
    bound, arguments, rule, mesh, inputs, wanted = call
    best = plan(rule, mesh, inputs, wanted)
    others = (plan_with(rule, mesh, strategies, inputs, wanted) for strategies in combinations(rule, mesh))
    assert best.bytes == min(other.bytes for other in others if other is not None)
    parts = numpy_mesh.run(bound, arguments, mesh, best)
    for one, other in zip(parts, numpy_mesh.whole_outputs(bound, arguments), strict=True):
        np.testing.assert_allclose(one, other, 1e-9, 1e-9)
    assert (best.bytes == 0) == (not any(collective.bytes for collective in best.collectives))


@given(calls())
def test_each_collective_has_its_reason(call):
    """A tensor that lies as it should is not moved, but for the neighbours that a halo reads."""
    _, _, rule, mesh, inputs, wanted = call
    best = plan(rule, mesh, inputs, wanted)
    for one in best.collectives:
        kind, number = one.tensor.split()
        assert mesh[one.axis] > 1
        if one.kind == "permute":
            strategy = best.strategies[one.axis]
            assert strategy.has_halo or strategy.placed
        else:
            have = (inputs if kind == "input" else best.outputs)[int(number)]
            need = (best.inputs if kind == "input" else wanted)[int(number)]
            assert have[one.axis] != REPLICATE
            if have[one.axis] == need[one.axis]:  # a slice of a slice, around which the outer one changes
                split = have[one.axis]
                assert isinstance(split, Shard)
                assert any((have[i] == split) != (need[i] == split) for i in range(one.axis))


@pytest.mark.slow
@given(calls(), st.data())
def test_a_call_that_lies_as_it_needs_moves_only_neighbours(call, data):
    _, _, rule, mesh, _, _ = call
    strategies = data.draw(st.sampled_from([*combinations(rule, mesh)]))
    inputs = numpy_mesh.plan_with(strategies).inputs
    own = plan_with(rule, mesh, strategies, inputs, (None,) * len(rule.outputs))
    assert {collective.kind for collective in own.collectives} <= {"permute"}
    assert plan(rule, mesh, inputs).bytes <= own.bytes
    if not any(strategy.has_halo for strategy in strategies):
        assert plan(rule, mesh, inputs).bytes == 0


def rule(*rows, inputs=((8, 8),), outputs=((8, 8),)):
    whole = AxisStrategy("", (REPLICATE,) * len(inputs), (REPLICATE,) * len(outputs))
    specs = ([Spec(shape, dtype("float32")) for shape in shapes] for shapes in (inputs, outputs))
    return ShardingRule("ns::f", *map(tuple, specs), (whole, *rows))


ROWS = AxisStrategy("i", (Shard(0),), (Shard(0),), 8)
COLUMNS = AxisStrategy("j", (Shard(1),), (Partial("sum"),), 8)
LARGEST = AxisStrategy("k", (Shard(0),), (Partial("max"),), 8)
PLACED = AxisStrategy("m", (Shard(1),), (Shard(1),), 8, placed=True)
HALO = AxisStrategy("n", (Shard(0),), (Shard(0),), 8, 1, 1)
SMALL = AxisStrategy("s", (Shard(0),), (Shard(0),), 1)


def names(*rows, mesh):
    return {" ".join(one.name or "-" for one in each) for each in combinations(rule(*rows), mesh)}


def test_which_strategies_can_be_combined():
    assert names(ROWS, mesh=(2, 2)) == {"- -", "- i", "i -", "i i"}
    assert names(HALO, mesh=(2, 2)) == {"- -", "- n", "n -"}, "a halo is cut once"
    assert names(PLACED, mesh=(2, 2)) == {"- -", "- m", "m -"}, "a slice knows one place"
    assert "j k" not in names(COLUMNS, LARGEST, mesh=(2, 2)), "a maximum of sums is no sum of maxima"
    assert {"j i", "i j", "j j"} <= names(ROWS, COLUMNS, mesh=(2, 2))
    assert names(SMALL, mesh=(2,)) == {"-"}, "one element stays whole"
    assert names(SMALL, mesh=(1,)) == {"-", "s"}


def test_the_fewest_bytes_by_hand():
    """256 bytes on 4 devices: rows as they lie cost nothing, and a sum costs an all-reduce."""
    both = rule(ROWS, COLUMNS)
    assert plan(both, (4,), [(Shard(0),)]).bytes == 0
    assert plan(both, (4,), [(Shard(0),)]).strategies == (ROWS,)
    by_columns = plan(both, (4,), [(Shard(1),)], [(REPLICATE,)])
    assert [(one.kind, one.tensor, one.bytes) for one in by_columns.collectives] == [
        ("all-gather", "input 0", 64 * 3)  # an all-reduce of the output would be 2 * 256 * 3 / 4
    ]
    scattered = plan(both, (4,), [(Shard(1),)], [(Shard(0),)])
    assert [(one.kind, one.bytes) for one in scattered.collectives] == [("all-to-all", 64 * 3 // 4)]


def test_the_neighbours_of_a_halo_by_hand():
    """A row of 8 float32 has 32 bytes, and each of the 4 devices reads one before and one after."""
    own = plan(rule(HALO), (4,), [(Shard(0),)])
    assert [(one.kind, one.bytes) for one in own.collectives] == [("permute", 2 * 32)]
