# ruff: noqa: F821 - kernels, whose words are no names here
"""Gradients of loop operators in PyTorch, from the second call on: a plan, and no Python of polyop."""

import dataclasses
import itertools

import pytest

import polyop
from entered import files_entered

torch = pytest.importorskip("torch", reason="PyTorch is not installed")


@polyop.kernel
def blend(x, y, slope: float = 0.5):
    z = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        z[i] = slope * x[i] * y[i] + x[i]
    return z


@polyop.kernel
def total(x, y):
    z = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        z[i] = x[i] + y[i]
    return z


@polyop.kernel
def both(x, y):
    s = output_tensor(x.shape, x.dtype)
    p = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        s[i] = x[i] * x[i] + y[i]
        p[i] = x[i] * y[i]
    return s, p


@polyop.kernel
def normalise(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(x.shape[1]):
            s += exp(x[i, j])
        for j in range(x.shape[1]):
            y[i, j] = exp(x[i, j]) / s
    return y


def twice_of_three_dimensions(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            for k in range(x.shape[2]):
                y[i, j, k] = 2.0 * x[i, j, k]
    return y


def leaves(*flags, shape=(5,)):
    torch.manual_seed(0)
    return [torch.randn(shape, dtype=torch.float64, requires_grad=flag) for flag in flags]


def files(action):
    """Return the files of polyop whose Python runs during an action."""
    with torch.autograd.set_multithreading_enabled(False):  # backward in this thread, which is watched
        return files_entered(action)[1]


REFERENCES = {
    blend: lambda x, y, slope=0.5: slope * x * y + x,
    total: lambda x, y: x + y,
    both: lambda x, y: (x * x + y, x * y),
}


@pytest.mark.slow(1)
@pytest.mark.parametrize("op", [blend, total, both, normalise], ids=lambda op: op.schema.name)
def test_the_third_step_runs_no_python(op):
    shape = (3, 4) if op is normalise else (5,)
    inputs = leaves(*(True,) * len(op.schema.tensor_positions), shape=shape)

    def step():
        outputs = op(*inputs)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        torch.autograd.backward(outputs, [torch.ones_like(x) for x in outputs])

    step(), step()
    allowed = (
        {"hosts/torch/direct.py"} if op is normalise else set()
    )  # it drops the temporaries that it saves
    assert files(step) <= allowed


def test_the_node_of_a_first_call_needs_python_once():
    (x,) = leaves(True, shape=(7, 1, 2))
    fresh = polyop.kernel(twice_of_three_dimensions)
    z = fresh(x)
    gradient = torch.ones_like(z)
    for _ in range(2):
        assert torch.equal(torch.autograd.grad(z, x, gradient, retain_graph=True)[0], 2 * gradient)
    assert files(lambda: z.backward(gradient, retain_graph=True)) == set()


@pytest.mark.slow(2)
@pytest.mark.parametrize("flags", [(True, True), (True, False), (False, True)])
@pytest.mark.parametrize("op", REFERENCES, ids=lambda op: op.schema.name)
def test_some_inputs_need_a_gradient(op, flags):
    inputs, count = leaves(*flags), len(op.schema.returns)
    wanted = [x for x in inputs if x.requires_grad]
    for used in itertools.product((True, False), repeat=count):
        if not any(used):
            continue
        for _ in range(3):
            rows = []
            for f in (op, REFERENCES[op]):
                outputs = f(*inputs)
                outputs = outputs if isinstance(outputs, tuple) else (outputs,)
                loss = sum((k + 2) * (x * x).sum() for k, x in enumerate(outputs) if used[k])
                rows.append(torch.autograd.grad(loss, wanted, allow_unused=True))
            for ours, theirs in zip(*rows, strict=True):
                zeros = torch.zeros(5, dtype=torch.float64)
                assert torch.allclose(zeros if ours is None else ours, zeros if theirs is None else theirs)


def test_calls_that_leave_out_an_attribute_share_a_plan():
    x, y = leaves(True, True)
    for _ in range(3):
        for arguments, slope in (((), 0.5), ((0.5,), 0.5), ((2.0,), 2.0)):
            dx, dy = torch.autograd.grad(blend(x, y, *arguments).sum(), (x, y))
            assert torch.allclose(dx, slope * y + 1) and torch.allclose(dy, slope * x)


def test_a_saved_tensor_that_is_written_raises():
    (x,), (y,) = leaves(True), leaves(False)
    for _ in range(3):
        z = blend(x, y)
        y.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            z.sum().backward()


def test_a_graph_that_was_freed_raises():
    x, y = leaves(True, True)
    for _ in range(3):
        z = blend(x, y)
        z.sum().backward()
        with pytest.raises(RuntimeError, match="second time"):
            z.sum().backward()


def test_gradients_of_gradients():
    x, y = leaves(True, True)
    for _ in range(3):
        (dx,) = torch.autograd.grad(both(x, y)[0].pow(3).sum(), x, create_graph=True)
        ours = torch.autograd.grad(dx.sum(), (x, y))
        (dx,) = torch.autograd.grad((x * x + y).pow(3).sum(), x, create_graph=True)
        for a, b in zip(ours, torch.autograd.grad(dx.sum(), (x, y)), strict=True):
            assert torch.allclose(a, b)


def test_hooks_of_saved_tensors_and_of_gradients():
    x, y = leaves(True, True)
    packed, seen = [], []
    for _ in range(3):
        packed.clear(), seen.clear()
        with torch.autograd.graph.saved_tensors_hooks(
            lambda t: packed.append(t.shape) or t.clone(), lambda t: t
        ):
            z = blend(x, y)
        z.register_hook(lambda g: seen.append(g.shape) or g * 2)
        dx, dy = torch.autograd.grad(z, (x, y), torch.ones_like(z))
        assert packed and seen == [(5,)]
        assert torch.allclose(dx, 2 * (0.5 * y + 1)) and torch.allclose(dy, x)


def test_checkpoints():
    from torch.utils.checkpoint import checkpoint

    x, y = leaves(True, True)
    for _ in range(3):
        z = checkpoint(lambda a, b: blend(a, b) * 2, x, y, use_reentrant=False)
        assert torch.allclose(torch.autograd.grad(z.sum(), x)[0], y + 2)


@pytest.mark.slow
def test_what_is_not_a_plain_call_goes_past_the_plan():
    x, y = leaves(True, True)
    for _ in range(3):
        blend(x, y).sum().backward()
    with torch.no_grad():
        assert not blend(x, y).requires_grad
    expected = 0.5 * y + 1
    loss = lambda x, y: blend(x, y).sum()  # noqa: E731 - PyTorch's transforms take it
    assert torch.allclose(torch.func.grad(loss)(x, y), expected)
    per_sample = torch.func.vmap(torch.func.grad(loss))(torch.stack([x, x]), torch.stack([y, y]))
    assert torch.allclose(per_sample, torch.stack([expected, expected]))
    batched = torch.autograd.grad(blend(x, y), x, torch.eye(5, dtype=x.dtype), is_grads_batched=True)[0]
    assert torch.allclose(batched, torch.diag(expected))
    compiled = torch.compile(blend, backend="aot_eager", fullgraph=True)
    assert torch.allclose(torch.autograd.grad(compiled(x, y).sum(), x)[0], expected)

    class Tagged(torch.Tensor):
        pass

    tagged = x.detach().as_subclass(Tagged).requires_grad_()
    assert torch.allclose(torch.autograd.grad(blend(tagged, y).sum(), tagged)[0], expected)


def test_a_new_rule_replaces_plans():
    @polyop.kernel
    def f(x):
        z = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            z[i] = 3.0 * x[i]
        return z

    (x,) = leaves(True)
    for _ in range(3):
        assert torch.autograd.grad(f(x).sum(), x)[0].tolist() == [3.0] * 5
    f.update(dataclasses.replace(f.operator, gradient=lambda x, out, grad: (7 * grad,)))
    for _ in range(3):
        assert torch.autograd.grad(f(x).sum(), x)[0].tolist() == [7.0] * 5


def test_a_warm_call_leaves_no_tensor_alive():
    import gc
    import weakref

    for _ in range(3):
        x, y = leaves(True, True)
        z = blend(x, y)
        z.sum().backward()
    alive = [weakref.ref(t) for t in (x, y, z)]
    del x, y, z
    gc.collect()
    assert [ref() for ref in alive] == [None] * 3
