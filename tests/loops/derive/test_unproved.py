# ruff: noqa: F821, F841, SIM108 - kernels, whose words are no names here
"""If isl exceeds its quota, a gradient is derived with unknown indices: it tapes more, and is correct."""

import warnings

import numpy as np
import pytest

import polyop
from derive_samples import differences
from polyop import Custom
from polyop.call.explain import explain
from polyop.core.dtypes import dtype
from polyop.core.errors import GradientError
from polyop.core.spec import Spec
from polyop.loops.analysis.session import IslSession
from polyop.loops.derive import proved as derivation
from polyop.loops.derive.forms import tangent
from polyop.loops.derive.functional import functional
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.interpret import interpret


@pytest.fixture
def unproved(monkeypatch):
    """Let isl give up at once where it knows indices."""

    def session(operations, *, blind=False):
        return IslSession(operations if blind else 100, blind=blind)

    monkeypatch.setattr(derivation, "IslSession", session)


@pytest.mark.slow(10)
def test_all_that_has_a_derivative(smooth, helpers, unproved):
    sizes = helpers.sizes(smooth)
    arrays = helpers.arrays(smooth, sizes)
    with pytest.warns(polyop.FallbackWarning, match="takes too long to prove"):
        derived = differences.Derived(smooth.function, arrays, dict(smooth.attributes))
    differences.check_directions(derived, arrays, rough=1e-4)


SPECS = [Spec((6,), dtype("float64"), "cpu")] * 2


def iterated(x, w):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i]
    for _ in range(3):
        for i in range(1, x.shape[0]):
            y[i] = y[i] * w[i] + y[i - 1]
    return y


def test_one_warning_and_explain(unproved):
    operator = Custom(iterated, func_type="hybrid")
    x = np.linspace(0.5, 1.5, 6)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        text = operator.gradient.loops(x, x)
        operator.gradient.loops(x, x)
    said = [str(w.message) for w in seen if w.category is polyop.FallbackWarning]
    rule = "iterated: its gradient tapes whatever may change: where values come from takes too long to prove"
    assert said == [rule]
    assert "y_kept" in text
    assert "its gradient tapes whatever may change" in explain(operator, SPECS)


def test_the_error_names_the_line_if_that_fails_too(monkeypatch):
    monkeypatch.setattr(derivation, "OPERATIONS", 100)
    operator = Custom(iterated, func_type="hybrid")
    x = np.ones(4)
    with pytest.raises(GradientError, match="where its values come from takes too long to prove") as seen:
        operator.gradient.loops(x, x)
    assert "test_unproved.py:" in str(seen.value)
    assert "give bprop=" in str(seen.value)


def test_a_tangent_without_proofs_is_right(unproved):
    x, w = np.linspace(0.5, 1.5, 6), np.linspace(1.0, 2.0, 6)
    typed = functional(parse(iterated, [("float64", 1)] * 2, {}))
    kernel = tangent(typed, (True, True))
    moved = interpret(kernel, [x, w, np.ones(6), np.zeros(6)])[0]
    further, nearer = (interpret(typed, [x + h, w])[0] for h in (1e-6, -1e-6))
    np.testing.assert_allclose(moved, (further - nearer) / 2e-6, rtol=1e-6)


def many_assumptions(first, x, scale):
    y = output_tensor((x.shape[0], scale.shape[1], x.shape[2]), x.dtype)
    for i in range(2, scale.shape[2] - 1):
        for j in range(x.shape[1] - 1):
            for k in range(x.shape[0]):
                s = 2.0 * first[0]
                x[k, i, k] = scale[k, first.shape[0] - 1, j]
            s = scale[0, 0, j]
        for j in reduce(x.shape[1]):
            if first[-1] == y[0, 0, 0]:
                s = float64(j)
            else:
                s = first[-1]
    return y, x


def test_sizes_that_are_assumed_do_not_multiply_what_isl_does(monkeypatch):
    """Each loop that may be empty has sizes of several cases; the proofs must not try all their combinations."""
    sessions = []

    def session(operations, *, blind=False):
        sessions.append(blind)
        return IslSession(min(operations, 300_000), blind=blind)

    monkeypatch.setattr(derivation, "IslSession", session)
    types = [("float64", 1), ("float64", 3), ("float64", 3)]
    typed = functional(parse(many_assumptions, types, {}))  # it writes x: a copy is the second output
    assert tangent(typed, (True, True, True)).outputs
    assert sessions == [False], "isl gave up"
