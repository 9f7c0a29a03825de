"""The strategies that ``dims=`` gives, and that each of them is right on numbers."""

import numpy as np
import pytest

import numpy_mesh
import polyop
from claimed_samples import samples

SAMPLES = [pytest.param(*row, id=row[0].schema.name) for row in samples()]
MESHES = ((1,), (2,), (3,), (11,), (2, 2), (3, 2))


@pytest.mark.parametrize(("bound", "arguments", "expected"), SAMPLES)
def test_the_strategies(bound, arguments, expected):
    rule = numpy_mesh.rule_of(bound, arguments)
    assert tuple(map(str, rule.splits)) == expected
    assert not rule.strategies[0].name


@pytest.mark.slow(4)
@pytest.mark.parametrize(("bound", "arguments", "expected"), SAMPLES)
def test_every_combination_is_the_whole(bound, arguments, expected):
    assert numpy_mesh.check_every_strategy(bound, arguments, MESHES) >= 2 * len(expected) + 1


def add_rows(x, rows):
    np.add(x, 0 if rows is None else rows.reshape(-1, len(x)).sum(0), out=x)


UNSPLIT = {  # the operator, its arguments
    "only an absent tensor has ...": (
        "sharding_dims::absent(Tensor x, Tensor? rows=None) -> Tensor",
        "n, ... n -> n",
        (np.ones(4), None),
    ),
    "each slice would add to what is there": (
        "sharding_dims::written(Tensor(a!) x, Tensor rows) -> ()",
        "n, ... n ->",
        (np.ones(4), np.ones((3, 4))),
    ),
}


@pytest.mark.parametrize("name", UNSPLIT)
def test_a_sum_along_leading_dimensions_that_is_left_out(name):
    schema, dims, arguments = UNSPLIT[name]
    bound = polyop.operator(schema, add_rows, dims=dims, sum="...")
    assert numpy_mesh.rule_of(bound, arguments).splits == ()
