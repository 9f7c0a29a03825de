"""Calls of PyTorch's own test database (``op_db``) through ``polyop.aten``, and what becomes of each.

Every entry has samples of arguments. An entry is called by name, in four modes: NumPy, JAX, jitted JAX, and
gradients in JAX. The outcome of a mode is "" if the results are PyTorch's, else the category of what
happened with the first sample that has other results.
"""

from __future__ import annotations

import itertools
import random
import re
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._python_dispatch import TorchDispatchMode

from polyop.core.errors import PolyopError
from polyop.hosts.torch import tensors
from polyop.providers.aten import aten

MODES = ("numpy", "jax", "jit", "grad")
SAMPLES = 3
CALLS = 6
DTYPES = (torch.float32, torch.float64, torch.complex64, torch.int64, torch.bool)

CATEGORIES = (  # regular expression in the error's text, the category
    (r"calls no operator", "calls no operator that returns new tensors"),
    (r"has no dtype that every host has", "no dtype that every host has"),
    (r"Jiterator", "needs a GPU in PyTorch"),
    (r"has a schema that|returns .*, and an operator of polyop|returns a list beside", "schema"),
    (r"the shapes of its outputs depend on the data", "shapes depend on data"),
    (r"does not know the shapes of its outputs", "no fake kernel"),
    (r"[sS]parse|layout|dtype Long|data pointer", "a result that is no plain array"),
    (r"draws random numbers", "random without a key"),
    (
        r"not differentiable|cannot differentiate|not implemented|automatic differentiation|linalg_eig_backward",
        "no derivative in PyTorch",
    ),
    (r"was written, as its statistics", "writes statistics"),
    (r"is written in place|writes an argument", "writes an argument"),
    (r"undefined", "undefined result"),
    (
        r"must give .*, as PyTorch said|as the program has it",
        "PyTorch's kernel without data differs",
    ),
    (r"must be .*, but got", "an attribute that is a tensor, or a number for a tensor"),
    (r"setStorage", "reads beyond its argument"),
    (r"PyTorch raised", "error of PyTorch"),
    (r"", "other"),
)


def entries():
    """Return the entries by name, in the order of PyTorch."""
    return {f"{op.name}{'.' + op.variant_test_name if op.variant_test_name else ''}": op for op in op_db}


class Call:
    """A call of one overload, with the tensors among its arguments apart."""

    def __init__(self, overload, args, kwargs):
        self.theirs, self.args, self.kwargs = overload, args, kwargs
        self.ours = aten(overload)
        self.tensors = [x for x in flat((args, kwargs)) if isinstance(x, torch.Tensor)]

    def call(self, operator, tensors):
        """Call an operator with other tensors in the place of the sample's."""
        remaining = iter(tensors)
        args = replaced(self.args, remaining)
        kwargs = {key: replaced(value, remaining) for key, value in self.kwargs.items()}
        if operator is self.ours and self.in_jax and self.is_random:
            kwargs["generator"] = jax.random.key(0)
        elif operator is self.ours and not self.tensors:
            kwargs["host"] = "jax" if self.in_jax else "numpy"
        return operator(*args, **kwargs)

    in_jax = False

    @property
    def is_random(self):
        """Whether the operator draws random numbers, so that only shapes and dtypes can be compared."""
        return torch.Tag.nondeterministic_seeded in self.theirs.tags


class _Recorded(TorchDispatchMode):
    """Notes the calls that reach PyTorch's kernels, without those that write an argument."""

    def __init__(self):
        super().__init__()
        self.calls = {}

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if not function._schema.is_mutable and function.namespace == "aten":
            kept = [copied(value) for value in args], {k: copied(v) for k, v in kwargs.items()}
            self.calls.setdefault(function, kept)
        return function(*args, **kwargs)


def calls(op, sample):
    """Return the calls of a sample: that of the entry's overload, or else those that its function makes."""
    args, kwargs = (sample.input, *sample.args), sample.kwargs
    name = op.aten_name.rsplit(".", 1)[-1]
    packet = getattr(torch.ops.aten, name, None)
    if isinstance(packet, torch._ops.OpOverloadPacket):
        try:
            resolved = torch._C._jit_resolve_packet(f"aten::{name}", *args, **kwargs)
            overload = getattr(packet, resolved or "default")
            overload(*copied(args), **copied(kwargs))
        except (RuntimeError, TypeError, AttributeError, IndexError):
            pass  # the arguments are those of the Python function, not of the operator
        else:
            return [Call(overload, args, kwargs)]
    with _Recorded() as recorded:
        op.op(*copied(args), **copied(kwargs))
    if not recorded.calls:
        raise PolyopError(op.name, "calls no operator that returns new tensors")
    return [Call(function, *kept) for function, kept in list(recorded.calls.items())[:CALLS]]


def copied(value):
    """Return a value with copies of its tensors, which a call may write."""
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [copied(item) for item in value]
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


def flat(value):
    """Return the values in lists and dictionaries."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [item for one in value for item in flat(one)]
    return [value]


def replaced(value, tensors):
    """Return a value with the next tensors in the place of its own."""
    if isinstance(value, (list, tuple)):
        return [replaced(item, tensors) for item in value]
    return next(tensors) if isinstance(value, torch.Tensor) else value


def samples(op):
    """Return the first samples of an entry, the same ones each time."""
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002 - PyTorch's samples draw from it
    torch.manual_seed(0)
    kind = next((d for d in DTYPES if d in op.supported_dtypes("cpu")), None)
    if kind is None:
        raise PolyopError(op.name, "has no dtype that every host has")
    return list(itertools.islice(op.sample_inputs("cpu", kind, requires_grad=False), SAMPLES))


def array(tensor):
    """Return a tensor as a NumPy array of its own."""
    if tensor.dtype is torch.bfloat16:
        return tensor.detach().view(torch.uint16).numpy().view(jnp.bfloat16).copy()
    if tensor.layout is not torch.strided:
        raise PolyopError("sample", "has the layout of a sparse tensor")
    if tensor._is_zerotensor():
        tensor = torch.zeros(tensor.shape, dtype=tensor.dtype)
    tensors.spec(tensor)
    return np.array(tensor.detach().resolve_conj().resolve_neg().numpy())


def same(ours, theirs):
    """Whether results have the shapes, dtypes and values of PyTorch's, up to rounding."""
    ours, theirs = flat(ours), flat(theirs)
    if len(ours) != len(theirs):
        return False
    for x, y in zip(ours, theirs, strict=True):
        if y is None or x is None:
            if x is not y:
                return False
            continue
        if not isinstance(y, torch.Tensor):  # a Python value
            if x != y:
                return False
            continue
        result, want = np.asarray(x), array(y)
        if result.shape != want.shape or result.dtype != want.dtype:
            return False
        if not np.allclose(
            result.astype(complex), want.astype(complex), rtol=1e-4, atol=1e-4, equal_nan=True
        ):
            return False
    return True


def outcome(op, mode):
    """Return "" if all samples of an entry give PyTorch's results, else a category."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for sample in samples(op):
                for call in calls(op, sample):
                    problem = _mutation(call) or _run(call, mode)
                    if problem:
                        return problem
    except Exception as problem:
        text = str(problem)
        return next(category for pattern, category in CATEGORIES if re.search(pattern, text))
    return ""


def _mutation(call):
    return "writes an argument" if call.ours.schema.mutates else ""


def _run(call, mode):
    arrays = [array(tensor) for tensor in call.tensors]
    call.in_jax = mode != "numpy"
    if mode != "numpy":
        arrays = [jnp.asarray(one) for one in arrays]
    if mode == "grad":
        return _gradients(call, arrays)
    theirs = call.call(call.theirs, [x.clone() for x in call.tensors])
    if mode == "jit":
        ours = jax.jit(lambda *arrays: call.call(call.ours, arrays))(*arrays)
    else:
        ours = call.call(call.ours, arrays)
    ours = flat(ours)[: len(flat(theirs))]  # in JAX, what is written comes last
    if call.is_random or _is_unwritten(call):
        return "" if _shapes(theirs) == _shapes(ours) else "wrong"
    return "" if same(ours, theirs) else "wrong"


def _shapes(values):
    return [None if x is None else tuple(x.shape) for x in flat(values)]


def _is_unwritten(call):
    """Whether results have memory that PyTorch leaves as it was."""
    return "empty" in call.ours.name or "_ctc_loss" in call.ours.name


def _gradients(call, arrays):
    smooth = [i for i, x in enumerate(arrays) if jnp.issubdtype(x.dtype, jnp.inexact)]
    if not smooth:
        return ""
    leaves = [x.detach().clone() for x in call.tensors]
    for i in smooth:
        leaves[i].requires_grad_()
    outputs = [x for x in flat(call.call(call.theirs, leaves)) if isinstance(x, torch.Tensor)]
    ends = [x for x in outputs if x.requires_grad]
    if not ends:
        return ""
    inputs = [leaves[i] for i in smooth]
    seeds = [torch.ones_like(x) for x in ends]
    expected = torch.autograd.grad(ends, inputs, seeds, allow_unused=True, materialize_grads=True)

    def run(*values):
        inner = list(arrays)
        for i, value in zip(smooth, values, strict=True):
            inner[i] = value
        return [x for x in flat(call.call(call.ours, inner)) if jnp.issubdtype(x.dtype, jnp.inexact)]

    results, pull = jax.vjp(run, *(arrays[i] for i in smooth))
    is_end = iter(x.requires_grad for x in outputs if x.is_floating_point() or x.is_complex())
    ours = pull([jnp.ones_like(x) if next(is_end) else jnp.zeros_like(x) for x in results])
    ours = [jnp.conj(x) for x in ours]  # JAX's convention for complex numbers is the conjugate
    equal = _shapes(ours) == _shapes(expected) if call.is_random else same(ours, expected)
    return "" if equal else "wrong"
