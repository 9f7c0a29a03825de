"""isl's quota: questions that a compilation can do without end before it does."""

import islpy as isl

from polyop.loops.analysis.session import IslSession


def test_a_subset_that_isl_cannot_tell_in_time_is_none_and_the_quota_begins_anew():
    session = IslSession()
    text = "[n, m] -> {{ [i, j] : 0 <= 5 i + 2 j < n and 0 <= 3 i - j {} m and i >= 0 }}"
    small, large = (isl.Set(text.format(sign), session.context) for sign in ("<", "<="))
    assert session.is_subset(small, large) and not session.is_subset(large, small)
    session.context.set_max_operations(10)
    assert not session.is_subset(small, large)
    session.context.set_max_operations(10_000)
    assert session.is_subset(small, large)
