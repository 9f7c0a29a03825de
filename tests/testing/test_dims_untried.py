"""``check`` reports what of a claim it could not try: refused slices, a wide halo, results of zeros."""

import itertools

import numpy as np

import polyop
from polyop.testing import check

_numbers = itertools.count()


def row(check_name, kernel, sample, **claims):
    """Return (status, detail) of one check of an operator with ``dims="n -> n"``."""
    name = f"check_dims_untried::op{next(_numbers)}"
    op = polyop.operator(f"{name}(Tensor x) -> Tensor", kernel, dims="n -> n", **claims)
    report = check(op, sample, hosts=["numpy"], raise_on_failure=False)
    return next((r.status, r.detail) for r in report.results if r.check == check_name)


def at_least_two(x):
    if len(x) < 2:
        raise ValueError("x has 2 elements or more")
    return x * 2


def test_a_slice_that_is_refused_is_reported_beside_a_claim_that_passed():
    status, detail = row("dims, parallel", at_least_two, np.ones(4), parallel="n")
    assert status == "passed"
    assert detail.startswith('parallel="n" (the slice 0:1 of n (x float64[1]) is refused: ')
    assert "x has 2 elements or more" in detail


def lag(x):
    """Return the sum of each element and the one 6 positions before it."""
    return x + np.pad(x, (6, 0))[: len(x)]


def test_a_halo_is_tried_where_slices_leave_elements_out():
    status, detail = row("dims, halo", lag, np.ones(4), halo={"n": (5, 0)})
    assert status == "failed"
    assert "for n=7, the slices 0:6, 6:7 of n differ from the whole" in detail
    wide = {"n": (6, 0)}
    assert row("dims, halo", lag, np.ones(4), halo=wide) == ("passed", 'halo={"n": (6, 0)}')
    status, detail = row("dims, halo", lag, np.arange(4), halo=wide)  # of integers: no dimension grows
    assert status == "not run"
    assert "the halo is so wide that n needs a size of 8 or more in the sample" in detail


def test_results_that_are_all_zero_show_nothing():
    status, detail = row("dims, parallel", np.cumsum, np.zeros(4), parallel="n")
    assert status == "not run"
    assert "all elements of the results are 0" in detail
