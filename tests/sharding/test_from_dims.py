"""The strategies that ``dims=`` gives, and that each of them is right on numbers."""

import pytest

import numpy_mesh
from claimed_samples import samples

SAMPLES = [pytest.param(*row, id=row[0].schema.name) for row in samples()]
MESHES = ((1,), (2,), (3,), (11,), (2, 2), (3, 2))


@pytest.mark.parametrize(("bound", "arguments", "expected"), SAMPLES)
def test_the_strategies(bound, arguments, expected):
    rule = numpy_mesh.rule_of(bound, arguments)
    assert tuple(map(str, rule.splits)) == expected
    assert not rule.strategies[0].name


@pytest.mark.parametrize(("bound", "arguments", "expected"), SAMPLES)
def test_every_combination_is_the_whole(bound, arguments, expected):
    assert numpy_mesh.check_every_strategy(bound, arguments, MESHES) >= 2 * len(expected) + 1
