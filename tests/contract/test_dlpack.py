"""Every member, on arrays of a library that polyop does not know, returns what it returns on NumPy arrays."""

import cases
import numpy as np
import pytest
from test_contract import compare

from polyop.core.errors import HostError, UnsupportedError

xp = pytest.importorskip("array_api_strict", reason="not run: array-api-strict is not installed")
ARRAY = type(xp.asarray(0))


def taken(array):
    """Whether the library has the dtype."""
    return hasattr(xp, str(array.dtype))


def foreign(case):
    """Return the case with arrays of the library."""
    return case.mapped(lambda _, x: xp.asarray(x.copy()))


def runs(name):
    """Whether the library has the dtypes of a member's tensors."""
    return all(taken(x) for _, x in cases.all_members()[name].case.tensors())


def test_nearly_all_members_run():
    names = cases.names("eager")
    assert sum(map(runs, names)) > 0.8 * len(names)


def listed(results):
    return list(results) if isinstance(results, (tuple, list)) else [] if results is None else [results]


@pytest.mark.parametrize("name", cases.names("eager"))
def test_a_member_on_arrays_of_another_library(name):
    if not runs(name):
        pytest.skip("not run: array-api-strict lacks a dtype of it")
    case = foreign(cases.all_members()[name].case)
    args, keywords = case.operator.schema.split(case.arguments)
    expected = cases.all_members()[name].case.run()
    if not all(map(taken, expected)):
        with pytest.raises(HostError, match="of which array_api_strict makes no array"):
            case.bound(*args, **keywords)
        return
    results = listed(case.bound(*args, **keywords))
    aliased = {
        case.operator.schema.alias_of(i) for i, r in enumerate(case.operator.schema.returns) if r.type.alias
    }
    for position in aliased:  # what is returned is the argument itself
        assert any(result is case.arguments[position] for result in results)
    written = [case.arguments[i] for i, a in enumerate(case.operator.schema.arguments) if a.type.writes]
    fresh = [result for result in results if not any(result is array for array in written)]
    for number, (result, other) in enumerate(zip([*fresh, *written], expected, strict=True)):
        assert type(result) is ARRAY
        compare(name, f"output {number}", np.from_dlpack(result), other)


def test_a_gradient_is_refused():
    name = next(name for name in cases.names("differentiated") if runs(name))
    case = foreign(cases.all_members()[name].case)
    args, keywords = case.operator.schema.split(case.arguments)
    with pytest.raises(
        UnsupportedError, match="has no vjp on arrays of array_api_strict, which polyop does not diff"
    ):
        case.bound.vjp(*args, **keywords)
