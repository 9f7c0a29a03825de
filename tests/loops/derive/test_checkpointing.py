# ruff: noqa: F821 - kernels, whose words are no names here
"""Checkpointing: recurrences whose tapes exceed the limit go backwards in segments, each recomputed."""

import re

import jax
import numpy as np
import pytest
import torch

from derive_samples import differences
from polyop import Custom, kernel
from polyop.call.explain import explain
from polyop.core.dtypes import dtype
from polyop.core.errors import GradientError
from polyop.core.spec import Spec
from polyop.loops.derive import checkpointing as segments
from polyop.loops.derive import forms
from polyop.loops.frontend.parse import parse
from polyop.loops.pipeline import schedule


def filtered(x, w):
    y = output_tensor(x.shape, x.dtype)
    for b in range(x.shape[0]):
        state = 0.0
        for t in range(x.shape[1]):
            state = tanh(w[t] * state + x[b, t])
            y[b, t] = state * state
    return y


def coupled(x, w):
    """Two states, each of which needs the other's."""
    y = output_tensor(x.shape, x.dtype)
    for b in range(x.shape[0]):
        position = 1.0
        speed = 0.5
        for t in range(x.shape[1]):
            force = sin(position) * x[b, t]
            speed = tanh(speed - 0.1 * speed * w[t] - force)
            position = sin(position + 0.1 * speed * position)
            y[b, t] = position
    return y


def backwards(x, w):
    y = output_tensor((x.shape[0],), x.dtype)
    for b in range(x.shape[0]):
        state = 0.5
        for t in range(x.shape[1] - 2, 0, -1):
            state = tanh(state * w[t] + x[b, t + 1] * state)
        y[b] = state
    return y


def relaxed(x, w):
    """An output that every iteration updates in place, all of it."""
    u = output_tensor((x.shape[0],), x.dtype)
    v = allocate((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        u[i] = x[i, 0]
    for t in range(x.shape[1]):
        for i in range(x.shape[0]):
            v[i] = u[i]
        for i in range(1, x.shape[0] - 1):
            u[i] = sin(v[i] + 0.1 * w[t] * (v[i - 1] * v[i + 1] - v[i]))
    return u


def branching(x, w):
    y = output_tensor((x.shape[0],), x.dtype)
    for b in range(x.shape[0]):
        state = 0.5
        for t in range(1, x.shape[1]):
            if x[b, t] > 0:  # noqa: SIM108 - a branch, no choice of values
                state = cos(state * state) + w[t]
            else:
                state = sin(state) * x[b, t]
        y[b] = state
    return y


def twice(x, w):
    """Two recurrences, the second on what the first leaves."""
    y = output_tensor((x.shape[0],), x.dtype)
    for b in range(x.shape[0]):
        state = 0.2
        for t in range(x.shape[1]):
            state = sin(state + x[b, t])
        for t in range(x.shape[1]):
            state = cos(state * state) * 0.7 + w[t]
        y[b] = state
    return y


KERNELS = (filtered, coupled, backwards, relaxed, branching, twice)
LENGTHS = (0, 1, 2, 63, 64, 65, 66, 130, 200)


def hybrid(function, **attrs):
    return Custom(kernel(function, compile_attrs=attrs), func_type="hybrid")


def inputs(rows, length):
    random = torch.Generator().manual_seed(length)
    shapes = ((rows, length), (length,))
    return [torch.randn(s, generator=random, dtype=torch.float64).requires_grad_() for s in shapes]


def explained(op, rows, length):
    specs = (Spec((rows, length), dtype("float64")), Spec((length,), dtype("float64")))
    return [line.strip() for line in explain(op, specs).splitlines()]


def taped(op, rows, length):
    (line,) = [line for line in explained(op, rows, length) if "tapes take" in line]
    return int(re.search(r"tapes take (\d+) bytes", line)[1])


@pytest.mark.slow
@pytest.mark.parametrize("function", KERNELS)
def test_the_same_gradient(function):
    free = hybrid(function)
    limit = taped(free, 3, 1000) // 3
    limited = hybrid(function, tape_bytes=limit)
    assert any("goes backwards in segments of 64 iterations" in line for line in explained(limited, 3, 1000))
    assert not any("in segments of" in line for line in explained(free, 3, 1000))
    assert taped(limited, 3, 1000) <= limit
    for length in (1, 130, 1000):
        one, other = inputs(3, length), inputs(3, length)
        free(*one).sin().sum().backward()
        limited(*other).sin().sum().backward()
        for a, b in zip(one, other, strict=True):
            torch.testing.assert_close(b.grad, a.grad, rtol=1e-11, atol=1e-13)


def in_segments(*arguments, **options):
    """Return the adjoint with checkpointing."""
    return forms.adjoint(*arguments, **{**options, "segments": True})


@pytest.mark.slow(1)
@pytest.mark.parametrize("function", KERNELS)
@pytest.mark.parametrize("length", LENGTHS)
def test_every_length(function, length, monkeypatch, tmp_path):
    """Always in segments, whatever the limit."""
    if function in (backwards, relaxed) and length < 2:
        pytest.skip("it has no first or last column")
    made = []
    monkeypatch.setitem(forms.DERIVATIONS, "backward", lambda *a, **k: made.append(1) or in_segments(*a, **k))
    monkeypatch.setenv("POLYOP_CACHE_DIR", str(tmp_path))  # which has no gradient without segments
    one, other = inputs(4, length), inputs(4, length)
    hybrid(function)(*other).sin().sum().backward()
    assert made
    monkeypatch.undo()
    hybrid(function)(*one).sin().sum().backward()
    for a, b in zip(one, other, strict=True):
        torch.testing.assert_close(b.grad, a.grad, rtol=1e-11, atol=1e-13)


@pytest.mark.slow(6)
def test_all_that_has_a_derivative(smooth, helpers, monkeypatch):
    """Short segments, wherever something is taped."""
    monkeypatch.setattr(segments, "SEGMENT_LENGTH", 2)
    monkeypatch.setattr(differences, "adjoint", in_segments)
    sizes = helpers.sizes(smooth)
    arrays = helpers.arrays(smooth, sizes)
    derived = differences.Derived(smooth.function, arrays, dict(smooth.attributes))
    differences.check_directions(derived, arrays, rough=1e-4)


@pytest.mark.slow
def test_some_of_those_have_segments(programs, helpers):
    """The test above is of something."""
    with_segments = set()
    for row in programs.PROGRAMS:
        arrays = helpers.arrays(row, helpers.sizes(row))
        typed = helpers.typed(row, arrays)
        notes = forms.adjoint(typed, [True] * len(typed.outputs), segments=True).notes
        with_segments |= {row.name} if any(note.kind == "checkpointing" for note in notes) else set()
    assert len(with_segments) >= 2


@pytest.mark.slow
def test_both_orders_of_differences():
    """The gradient's own gradient has more to tape, and the same limit."""
    op = hybrid(filtered, tape_bytes=6000)
    assert any("in segments of" in line for line in explained(op, 2, 1000))
    tensors = inputs(2, 300)
    assert torch.autograd.gradcheck(op, tensors, fast_mode=True)
    assert torch.autograd.gradgradcheck(op, tensors, fast_mode=True)


@pytest.mark.slow
def test_jax_has_it_too():
    with jax.enable_x64(True):
        free, limited = hybrid(filtered), hybrid(filtered, tape_bytes=2000)
        x, w = (t.detach().numpy() for t in inputs(3, 300))
        for wrap in (lambda f: f, jax.jit):
            grads = wrap(jax.grad(lambda a, b: (limited(a, b) ** 2).sum(), (0, 1)))(x, w)
            expected = jax.grad(lambda a, b: (free(a, b) ** 2).sum(), (0, 1))(x, w)
            for one, other in zip(grads, expected, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-13)


@pytest.mark.slow
def test_results_repeat():
    op = hybrid(coupled, tape_bytes=4000)
    x, w = inputs(5, 300)
    first = torch.autograd.grad(op(x, w).sum(), (x, w))
    for _ in range(3):
        again = torch.autograd.grad(op(x, w).sum(), (x, w))
        assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))


def triangular(x, w):
    """How many iterations the inner loop has is another number in each of the outer one's."""
    y = output_tensor(x.shape, x.dtype)
    for b in range(x.shape[0]):
        for t in range(x.shape[1]):
            s = 0.5
            for k in range(t):
                s = sin(s * w[k] + x[b, t])
            y[b, t] = s
    return y


def test_the_error_names_the_tape_if_segments_cannot_help():
    op = hybrid(triangular, tape_bytes=100)
    loss = op(*inputs(3, 200)).sum()
    with pytest.raises(GradientError, match="and tape_bytes is 100"):
        loss.backward()


@pytest.mark.slow
@pytest.mark.parametrize("function", [filtered, coupled, twice])
def test_segments_cost_no_threads_and_no_copies(function):
    typed = parse(function, [("float64", 2), ("float64", 1)], {})
    plain, checkpointed = (forms.adjoint(typed, (True,), segments=flag).kernel for flag in (False, True))
    assert schedule(checkpointed).plan.threads == schedule(plain).plan.threads
    assert schedule(checkpointed).plan.vector == schedule(plain).plan.vector
    own = {b.name for b in checkpointed.buffers.values() if b.role == "local" and "_kept" not in b.name}
    assert not any(len(checkpointed.buffers[name].shape) > 1 for name in own)


def test_loops_and_source_are_those_that_run():
    free, limited = hybrid(filtered), hybrid(filtered, tape_bytes=2000)
    specs = Spec((3, 300), dtype("float64")), Spec((300,), dtype("float64"))
    for text in (limited.gradient.loops(*specs), limited.gradient.source(*specs)):
        assert "state_of_segment" in text
    assert "state_of_segment" not in free.gradient.loops(*specs)


def test_segments_too_may_be_too_much():
    """The error names the author's own value, its line, and the bytes of the segments."""
    op = hybrid(filtered, tape_bytes=600)
    x, w = inputs(3, 1000)
    loss = op(x, w).sum()
    with pytest.raises(GradientError) as caught:
        loss.backward()
    text = str(caught.value)
    assert "the gradient of filtered: state changes after this line reads it" in text
    assert "512 bytes, all that is taped 1152, and tape_bytes is 600" in text
    assert "state = tanh(w[t] * state + x[b, t])" in text
