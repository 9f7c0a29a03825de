# ruff: noqa: F821 - kernels, whose words are no names here
"""Gradients of loops whose number of iterations depends on data: `while`, and bounds that are read from a tensor."""

import numpy as np
import pytest

import polyop
from polyop.core.errors import KernelError
from polyop.loops.derive import open_loops

torch = pytest.importorskip("torch", reason="gradients are compared with finite differences by PyTorch")


def newton(a):
    y = output_tensor(a.shape, a.dtype)
    for i in range(a.shape[0]):
        x = a[i]
        while abs(x * x - a[i]) > 1e-12:
            x = 0.5 * (x + a[i] / x)
        y[i] = x
    return y


def insertion_sort(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        v = x[i]
        j = i - 1
        while j >= 0 and y[j] > v:
            y[j + 1] = y[j]
            j -= 1
        y[j + 1] = v * v
    return y


def csr_with_state(values, x, ptr):
    y = output_tensor((ptr.shape[0] - 1,), x.dtype)
    for r in range(ptr.shape[0] - 1):
        s = 1.0
        for k in range(ptr[r], ptr[r + 1]):
            s = s * values[k] + x[k] * s
        y[r] = s
    return y


def knapsack(values, weights, capacity: int = 7):
    best = allocate((capacity + 1,), values.dtype)
    out = output_tensor((1,), values.dtype)
    for c in range(capacity + 1):
        best[c] = 0
    for i in range(values.shape[0]):
        for c in range(capacity, weights[i] - 1, -1):
            best[c] = max(best[c], best[c - weights[i]] + values[i] * values[i])
    out[0] = best[capacity]
    return out


def counted(x):
    y = output_tensor((1,), x.dtype)
    s = 1.0
    k = 0
    while k < x.shape[0]:
        s = s * x[k] + sin(x[k])
        k += 1
    y[0] = s
    return y


def nested(x, n):
    """A while in a while, and a counted loop in both: each level keeps values of its own."""
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        s = x[i]
        outer = 0
        while outer < n[i]:
            t = s
            inner = 0
            while inner < outer + 1:
                for k in range(2):
                    t = t * s + x[k]
                inner += 1
            s = 0.1 * t * t + s
            outer += 1
        y[i] = s
    return y


def left(x, n):
    """Exits of both kinds: a break and a return before the end."""
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        s = x[i]
        while True:
            if s > n[i]:
                break
            s = s * s + x[i]
        y[i] = s
        for k in range(n[i], 5):
            if k == 4:
                break
            y[i] = y[i] * s
    return y


def linear(x, n):
    """Nothing is kept but the number of iterations."""
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        s = x[i]
        k = n[i]
        while k > 0:
            s = 2 * s
            k -= 1
        y[i] = s
    return y


def in_segments(x, ends):
    """One counter runs through all segments."""
    y = output_tensor((ends.shape[0],), x.dtype)
    k = 0
    for r in range(ends.shape[0]):
        s = 1.0
        while k < ends[r]:
            s = s * x[k] + k
            k += 1
        y[r] = s
    return y


def from_where_it_was(x, ends):
    """The start of a range is a scalar that goes on: the gradient keeps it for each iteration around."""
    y = output_tensor((ends.shape[0],), x.dtype)
    k = 0
    for r in range(ends.shape[0]):
        s = 1.0
        for j in range(k, ends[r]):
            s = s * x[j] + j
        k = max(k, ends[r])
        y[r] = s
    return y


def from_both_ends(x):
    y = output_tensor((2,), x.dtype)
    i = 0
    j = x.shape[0] - 1
    s = 1.0
    while i < j:
        s = s * x[i] + sin(s * x[j])
        i += 1
        j -= 1
    y[0] = s
    y[1] = s
    k = x.shape[0]
    while True:
        k -= 2
        if k < 0:
            break
        y[1] += s * x[k] * k
    return y


def up_to_a_limit(x, n):
    """A loop with a bound and another exit; its counter is read behind it."""
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        s = x[i]
        k = 0
        while k != n.shape[0] and s < 3:
            s = s * s + x[k] * n[k]
            k += 1
        y[i] = s * k
    return y


X = torch.tensor([0.7, 1.3, 0.9], dtype=torch.float64)
KERNELS = {
    newton: (X,),
    insertion_sort: (torch.tensor([0.8, 0.3, 1.1, 0.5], dtype=torch.float64),),
    csr_with_state: (X[[0, 1, 2, 1]], X[[2, 1, 0, 0]], torch.tensor([0, 3, 3, 4])),
    knapsack: (X[[1, 0, 2, 2]] + torch.arange(4) / 10, torch.tensor([3, 4, 2, 1])),
    counted: (X,),
    nested: (X, torch.tensor([2, 0, 1])),
    left: (X, torch.tensor([3, 1, 4])),
    linear: (X, torch.tensor([3, 0, 1])),
    in_segments: (X, torch.tensor([2, 2, 3])),
    from_where_it_was: (X, torch.tensor([2, 2, 3])),
    from_both_ends: (X[[0, 1, 2, 1, 0]],),
    up_to_a_limit: (X, torch.tensor([1, 0, 2])),
}
ROWS = [pytest.param(function, arguments, id=function.__name__) for function, arguments in KERNELS.items()]


def operator_of(function):
    return polyop.kernel(function, name=f"open_loops::{function.__name__}")


def of_real(function, arguments):
    """Return a function of the real arguments alone, and these."""
    operator = operator_of(function)
    real = [x for x in arguments if x.is_floating_point()]
    others = [x for x in arguments if not x.is_floating_point()]
    return lambda *xs: operator(*xs, *others), [x.clone().requires_grad_() for x in real]


@pytest.mark.slow(2)
@pytest.mark.parametrize(("function", "arguments"), ROWS)
def test_gradients_and_tangents_are_finite_differences(function, arguments):
    call, real = of_real(function, arguments)
    assert torch.autograd.gradcheck(call, real)
    assert torch.autograd.gradcheck(call, real, check_forward_ad=True, check_backward_ad=False)


@pytest.mark.slow(kept=3)
@pytest.mark.parametrize(("function", "arguments"), ROWS)
def test_second_derivatives_are_finite_differences(function, arguments):
    call, real = of_real(function, arguments)
    assert torch.autograd.gradgradcheck(call, real)


@pytest.mark.parametrize(("function", "arguments"), ROWS)
def test_other_hosts_and_batches_have_the_same_gradient(function, arguments):
    operator = operator_of(function)
    call, real = of_real(function, arguments)
    expected = torch.autograd.grad(call(*real).sum(), real)
    value, pull = operator.vjp(*(x.numpy() for x in arguments))
    for one, other in zip(expected, pull(np.ones_like(value)), strict=False):
        np.testing.assert_allclose(other, one.numpy(), rtol=1e-12)
    both = [torch.stack([x, x.flip(0)]).detach() for x in real]
    others = [x for x in arguments if not x.is_floating_point()]
    rows = torch.func.vmap(torch.func.grad(lambda *xs: operator(*xs, *others).sum()))(*both)
    np.testing.assert_allclose(rows[0].numpy(), expected[0].numpy(), rtol=1e-12)


def test_jax_has_the_same_gradient():
    jax = pytest.importorskip("jax", reason="needs JAX")
    operator = operator_of(csr_with_state)
    arguments = [
        x.numpy().astype("float32" if x.is_floating_point() else "int32") for x in KERNELS[csr_with_state]
    ]
    call, real = of_real(csr_with_state, KERNELS[csr_with_state])
    expected = torch.autograd.grad(call(*real).sum(), real)
    gradient = jax.jit(jax.grad(lambda *xs: operator(*xs).sum(), argnums=(0, 1)))
    for one, other in zip(expected, gradient(*map(jax.numpy.asarray, arguments)), strict=True):
        np.testing.assert_allclose(np.asarray(other), one.numpy(), rtol=1e-5)


def test_a_tape_that_is_full_is_an_error_of_the_call(monkeypatch):
    monkeypatch.setattr(open_loops, "CAPACITY", 100)

    def tripled(x, n):  # a kernel that no other test has derived with another capacity
        y = output_tensor(x.shape, x.dtype)
        s = x[0]
        k = n[0]
        while k > 0:
            s = 3 * s
            k -= 1
        y[0] = s
        return y

    operator = polyop.kernel(tripled, name="open_loops::full")
    x = torch.ones(1, dtype=torch.float64, requires_grad=True)
    assert operator(x, torch.tensor([90])).sum().backward() is None
    assert x.grad.item() == pytest.approx(3.0**90)
    with pytest.raises(
        KernelError, match=r"index 100 is outside dimension 0 of \w+_kept\w*, which has size 100"
    ):
        operator(x, torch.tensor([200])).sum().backward()


def test_memory_is_used_for_what_is_kept_alone():
    """A tape of 256 MiB is reserved; a gradient that keeps a few values must not touch it."""
    import resource

    operator = operator_of(csr_with_state)
    x = torch.rand(1000, dtype=torch.float64, requires_grad=True)
    rest = torch.rand(1000, dtype=torch.float64) / 1000, torch.tensor([0, 1000])
    operator(x, *rest).sum().backward()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(5):
        operator(x, *rest).sum().backward()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before < 2000
