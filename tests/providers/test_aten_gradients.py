"""Gradients of PyTorch's operators on NumPy and JAX, beside PyTorch's autograd: views, written arguments."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
jax = pytest.importorskip("jax", reason="JAX is not installed")

import jax.numpy as jnp  # noqa: E402

from polyop.core.errors import GradientError  # noqa: E402
from polyop.providers.aten import aten  # noqa: E402

X = np.linspace(-1.0, 1.5, 6, dtype=np.float32).reshape(2, 3)
Z = X + 1j * X[::-1]
ONES, ZEROS = np.ones(3, np.float32), np.zeros(3, np.float32)
STATISTICS = (ONES, ZEROS, ZEROS + 0.5, ONES * 2)  # weight, bias, running mean and variance
INDICES, OFFSETS = np.array([0, 1, 0]), np.array([0, 1])

READ = [  # operator, arguments: what returns its input or a view of it, or outputs that nobody reads
    ("positive", (X,)),
    ("real", (X,)),
    ("resolve_conj", (X,)),
    ("resolve_neg", (X,)),
    ("atleast_1d", (X,)),
    ("contiguous", (X,)),
    ("type_as", (X, X)),
    ("to.dtype", (X, "float32")),
    ("to.dtype", (X, "float16")),
    ("dropout", (X, 0.5, False)),
    ("native_dropout", (X, 0.5, False)),
    ("sgn", (X,)),
    ("tensor_split.sections", (X, 2, 1)),
    ("tensor_split.indices", (X, [1], 1)),
    ("embedding_bag", (X, INDICES, OFFSETS)),
    ("embedding_bag", (X, INDICES, OFFSETS, False, 2)),
    ("embedding_bag", (X, INDICES, np.array([0, 1, 3]), False, 1, False, None, True)),
    ("_native_batch_norm_legit.no_stats", (X, ONES, ZEROS, True, 0.1, 1e-5)),
    ("_native_batch_norm_legit_functional", (X, *STATISTICS, True, 0.1, 1e-5)),
    ("batch_norm", (X, *STATISTICS, False, 0.1, 1e-5, False)),
    ("native_batch_norm", (X, *STATISTICS, False, 0.1, 1e-5)),
    ("batch_norm", (X, ONES, ZEROS, None, None, True, 0.1, 1e-5, False)),
]
WRITTEN = [  # operator, arguments, positions that it writes and does not return
    ("add_.Tensor", (X, X), ()),
    ("mul_.Tensor", (X, X + 1), ()),
    ("sigmoid_", (X,), ()),
    ("addcmul_", (X, X + 1, X + 2), ()),
    ("batch_norm", (X, *STATISTICS, True, 0.1, 1e-5, False), (3, 4)),
    ("native_batch_norm", (X, *STATISTICS, True, 0.1, 1e-5), (3, 4)),
    ("_native_batch_norm_legit", (X, *STATISTICS, True, 0.1, 1e-5), (3, 4)),
    ("_batch_norm_with_update", (X, *STATISTICS, 0.1, 1e-5), (3, 4)),
    ("instance_norm", (X.reshape(1, 3, 2), *STATISTICS, True, 0.1, 1e-5, False), (3, 4)),
]


def label(value):
    return value if isinstance(value, str) else ""


def flat(value):
    return [item for one in value for item in flat(one)] if isinstance(value, (list, tuple)) else [value]


def loss(outputs, weights, real):
    """Return one number, which depends on every element of the floating outputs in another way."""
    return sum((real(w) * o.reshape(-1)).sum() for o, w in zip(outputs, weights, strict=True) if len(w))


def in_pytorch(name, args, written=()):
    """Return the outputs and the gradient by the first argument, as PyTorch gives them."""
    tensors = [torch.tensor(a) if isinstance(a, np.ndarray) else a for a in args]
    leaf = tensors[0].requires_grad_()
    if name.split(".")[0].endswith("_"):
        tensors[0] = leaf.clone()
    kinds = {"float32": torch.float32, "float16": torch.float16}
    outputs = flat(aten(name).torch(*(kinds.get(a, a) if isinstance(a, str) else a for a in tensors)))
    outputs += [tensors[i].clone() for i in written]
    smooth = [o.is_floating_point() and o.requires_grad for o in outputs]
    weights = [np.cos(np.arange(o.numel() if s else 0)) for o, s in zip(outputs, smooth, strict=True)]
    total = loss(outputs, weights, lambda w: torch.tensor(w, dtype=torch.float32))
    (grad,) = torch.autograd.grad(total, leaf)
    return [o.detach().numpy() for o in outputs], (torch.zeros_like(leaf) + grad).detach().numpy(), weights


def same(actual, expected):
    for one, other in zip(flat(actual), flat(expected), strict=True):
        assert (one.shape, one.dtype.kind) == (other.shape, other.dtype.kind)  # JAX has 32-bit integers here
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def in_jax(name, args, written=()):
    outputs, grad, weights = in_pytorch(name, args, written)
    op = aten(name)
    arrays = [jnp.asarray(a) if isinstance(a, np.ndarray) else a for a in args]

    def total(x):
        return loss(flat(op(x, *arrays[1:])), weights, lambda w: jnp.asarray(w, jnp.float32))

    same(op(*arrays), outputs)
    same(jax.jit(lambda x: op(x, *arrays[1:]))(arrays[0]), outputs)
    same(jax.grad(total)(arrays[0]), grad)
    same(jax.jit(jax.grad(total))(arrays[0]), grad)
    np.testing.assert_array_equal(arrays[0], args[0])


@pytest.mark.slow(4)
@pytest.mark.parametrize(("name", "args"), READ, ids=label)
def test_what_is_read(name, args):
    outputs, grad, weights = in_pytorch(name, args)
    results, pull = aten(name).vjp(*args)
    same(results, outputs)
    grads = [
        w.reshape(o.shape).astype(np.float32) if len(w) else None
        for o, w in zip(outputs, weights, strict=True)
    ]
    same(pull(grads if isinstance(results, (list, tuple)) else grads[0])[0], grad)
    in_jax(name, args)


@pytest.mark.slow(3)
@pytest.mark.parametrize(("name", "args", "written"), WRITTEN, ids=label)
def test_what_is_written_is_a_result_in_jax(name, args, written):
    in_jax(name, args, written)
    _, pull = aten(name).vjp(*(jnp.asarray(a) if isinstance(a, np.ndarray) else a for a in args))
    _, grad, weights = in_pytorch(name, args, written)
    shapes = [o.shape for o in in_pytorch(name, args, written)[0]]
    grads = [
        jnp.asarray(w, jnp.float32).reshape(s) if len(w) else None
        for w, s in zip(weights, shapes, strict=True)
    ]
    same(pull(grads if len(grads) > 1 else grads[0])[0], grad)


def test_numpys_arrays_are_written():
    arrays = [a.copy() if isinstance(a, np.ndarray) else a for a in WRITTEN[4][1]]
    out = aten("batch_norm")(*arrays)
    outputs, _, _ = in_pytorch("batch_norm", WRITTEN[4][1], (3, 4))
    same([out, *arrays[3:5]], outputs)


def test_vmap_of_what_is_written():
    x = jnp.asarray(X)
    rows = jax.vmap(jax.grad(lambda row: aten("sigmoid_")(row).sum()))(x)
    s = 1 / (1 + np.exp(-X))
    np.testing.assert_allclose(rows, s * (1 - s), rtol=1e-5)


def test_random_numbers_have_no_gradient_outside_pytorch():
    rule = "draws random numbers, and its gradient would draw others"
    with pytest.raises(GradientError, match=f"aten::dropout: {rule}\n.*train=False"):
        jax.grad(lambda x: aten("dropout")(x, 0.5, True).sum())(jnp.asarray(X))
    with pytest.raises(GradientError, match=f"aten::dropout_: {rule}"):
        jax.grad(lambda x: aten("dropout_")(x, 0.5, True).sum())(jnp.asarray(X))


def test_a_written_argument_that_changes_its_shape():
    with pytest.raises(Exception, match=r"argument self: must have the result's shape \(3, 2\)"):
        aten("t_")(jnp.asarray(X))
