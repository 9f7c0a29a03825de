"""Calls of PyTorch's own test database (``op_db``) through ``polyop.aten``, and what becomes of each.

Every entry has samples of arguments. An entry is called by name, in four modes: NumPy, JAX, jitted JAX, and
gradients in JAX. The outcome of a mode is "" if the results are PyTorch's, else the category of what
happened with the first sample that has other results. The categories of ``NOT_COUNTED`` are of entries that
have nothing to compare in the mode.
"""

from __future__ import annotations

import re
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import torch
from torch.testing._internal import common_utils
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._python_dispatch import TorchDispatchMode

from polyop.core.errors import InferError, PolyopError
from polyop.hosts.torch import tensors
from polyop.providers.aten import aten

MODES = ("numpy", "jax", "jit", "grad")
SAMPLES = 3
CALLS = 6
DTYPES = (torch.float32, torch.float64, torch.complex64, torch.int64, torch.bool)
FEW = (
    torch.bfloat16,
    torch.float16,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
)  # of entries that take no others

NO_OPERATOR = "calls no operator that returns new tensors"
NO_GRADIENT = "nothing to differentiate in PyTorch"
NO_CPU = "needs a GPU in PyTorch"
SPARSE = "sparse tensors"
NOT_COUNTED = {
    NO_OPERATOR: "PyTorch itself runs none",
    NO_CPU: "PyTorch itself refuses it on a CPU",
    SPARSE: "an argument or a result is a sparse tensor, which arrays cannot be",
    NO_GRADIENT: "supports_autograd is false, or no call has a derivative by any of its arguments",
}
"""The categories of entries that have nothing to compare, and why."""

CATEGORIES = (  # regular expression in the error's text, the category
    (r"[jJ]iterator|has no dtype on a CPU", NO_CPU),
    (r"[sS]parse", SPARSE),
    (r"has a schema that|returns .*, and an operator of polyop|returns a list beside", "schema"),
    (
        r"the shapes of its outputs depend on the data|needs the data to find the shapes",
        "shapes depend on data, and PyTorch takes no size",
    ),
    (r"returns a Python value that depends on data", "a Python value of data"),
    (r"does not know the shapes of its outputs", "no fake kernel"),
    (r"must be a strided tensor of|complex32", "a result of a dtype that no host has"),
    (r"layout|dtype Long|data pointer", "a result that is no plain array"),
    (r"draws random numbers", "random without a key"),
    (r"not differentiable|cannot differentiate|is not implemented", "no derivative"),
    (r"was written, as its statistics", "writes statistics"),
    (r"must have the result's shape", "resizes an argument"),
    (r"is written in place|writes an argument", "writes an argument"),
    (r"undefined", "undefined result"),
    (r"must give .*, as PyTorch said|as the program has it", "PyTorch's kernel without data differs"),
    (r"must be .*, but got", "an argument of another type"),
    (r"setStorage", "reads beyond its argument"),
    (r"col_major", "needs a layout that arrays of JAX do not have"),
    (r"PyTorch raised", "error of PyTorch"),
    (r"", "other"),
)


def entries():
    """Return the entries by name, in the order of PyTorch."""
    return {f"{op.name}{'.' + op.variant_test_name if op.variant_test_name else ''}": op for op in op_db}


class Call:
    """A call of one overload, with the tensors among its arguments apart."""

    in_jax = False
    size = None

    def __init__(self, overload, args, kwargs):
        self.theirs, self.args, self.kwargs = overload, args, kwargs
        self.ours = aten(overload)
        types = [str(argument.type) for argument in overload._schema.arguments]
        self.places = {
            a.name for a, kind in zip(overload._schema.arguments, types, strict=True) if "Tensor" in kind
        }
        self.names = [argument.name for argument in overload._schema.arguments]
        typed = [
            x for name, x in (*zip(self.names, args, strict=False), *kwargs.items()) if name in self.places
        ]
        self.tensors = [x for x in flat(typed) if isinstance(x, torch.Tensor)]

    def call(self, operator, tensors):
        """Call an operator with other tensors in the place of the sample's; attributes stay constants."""
        remaining = iter(tensors)
        is_ours = operator is self.ours

        def value(name, given):
            if name in self.places:
                return replaced(given, remaining)
            return self._constant(given) if is_ours else given

        args = [value(*pair) for pair in zip(self.names, self.args, strict=False)]
        kwargs = {key: value(key, given) for key, given in self.kwargs.items()}
        if is_ours and self.size is not None:
            kwargs["size"] = self.size
        if is_ours and self.in_jax and self.is_random:
            kwargs["generator"] = jax.random.key(0)
        elif is_ours and not self.ours.schema.tensor_positions and not self.ours.function.result_kinds:
            kwargs["host"] = "jax" if self.in_jax else "numpy"
        return operator(*args, **kwargs)

    def _constant(self, given):
        if isinstance(given, (list, tuple)):
            return [self._constant(item) for item in given]
        return array(given) if isinstance(given, torch.Tensor) else given

    @property
    def is_random(self):
        """Whether the operator draws random numbers, so that only shapes and dtypes can be compared."""
        return torch.Tag.nondeterministic_seeded in self.theirs.tags

    def written(self, tensors):
        """Return those of the tensors that the call writes and does not return."""
        if not self.theirs._schema.is_mutable:
            return []
        schema = self.ours.schema
        returned = [schema.alias_of(i) for i, r in enumerate(schema.returns) if r.type.alias]
        remaining, found = iter(tensors), []
        for name, given in (*zip(self.names, self.args, strict=False), *self.kwargs.items()):
            if name not in self.places:
                continue
            here = flat(replaced(given, remaining))
            place = self.names.index(name)
            if schema.arguments[place].type.writes and place not in returned:
                found += [x for x in here if x is not None]
        return found


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


def calls(op, sample, mode):
    """Return the calls of a sample: that of the entry's overload, or else those that its function makes, if any."""
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
    recorded = _recorded(op, args, kwargs, mode == "grad" and _is_smooth(sample.input))
    return [Call(function, *kept) for function, kept in list(recorded.calls.items())[:CALLS]]


def _is_smooth(value):
    return isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())


def _recorded(op, args, kwargs, with_gradient):
    args = copied(args)
    if with_gradient:  # some functions call another operator then
        args[0].requires_grad_()
    with _Recorded() as recorded:
        op.op(*args, **copied(kwargs))
    return recorded


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
    kind = next((d for d in (*DTYPES, *FEW) if d in op.supported_dtypes("cpu")), None)
    if kind is None:
        raise PolyopError(op.name, "has no dtype on a CPU")
    return samples_in(op, kind)


def samples_in(op, kind):
    """Return the first samples in a dtype, the same ones each time.

    ``op.sample_inputs`` looks for the test that runs, in the source files of all callers: far slower.
    """
    common_utils.set_rng_seed(0)
    made = iter(op.sample_inputs_func(op, "cpu", kind, requires_grad=False))
    found = []
    while len(found) < SAMPLES:
        common_utils.set_rng_seed(common_utils.SEED)
        try:
            found.append(next(made))
        except StopIteration:
            break
    return found


def array(tensor):
    """Return a tensor as a NumPy array of its own."""
    if tensor.layout is not torch.strided:
        raise PolyopError("sample", "has the layout of a sparse tensor")
    if tensor._is_zerotensor():
        tensor = torch.zeros(tensor.shape, dtype=tensor.dtype)
    tensors.spec(tensor)
    return np.array(tensors.to_numpy(tensors.dense(tensor.detach().resolve_conj().resolve_neg())))


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
    if mode == "grad" and not op.supports_autograd:
        return NO_GRADIENT
    called = compared = False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for sample in samples(op):
                for call in calls(op, sample, mode):
                    called, equal = True, _run(call, mode)
                    if equal is False:
                        return "wrong"
                    compared = compared or equal is not None
    except Exception as problem:
        text = str(problem)
        return next(category for pattern, category in CATEGORIES if re.search(pattern, text))
    if not called:
        return NO_OPERATOR
    return "" if compared else NO_GRADIENT


def _run(call, mode):
    """Return whether a call gives PyTorch's results; None if there is nothing to compare."""
    arrays = [array(tensor) for tensor in call.tensors]
    call.in_jax = mode != "numpy"
    if mode != "numpy":
        arrays = [jnp.asarray(one) for one in arrays]
    if mode == "grad":
        return _gradients(call, arrays)
    clones = [x.clone() for x in call.tensors]
    theirs = call.call(call.theirs, clones)
    ours = _jitted(call, arrays, theirs) if mode == "jit" else call.call(call.ours, arrays)
    theirs = [*flat(theirs), *call.written(clones)]
    ours = [*flat(ours), *(call.written(arrays) if mode == "numpy" else ())]
    ours = ours[: len(theirs)]  # in JAX, the statistics that batch norm writes come last
    if call.is_random or _is_unwritten(call):
        return _shapes(theirs) == _shapes(ours)
    return same(_cut(call, ours, theirs), theirs)


def _jitted(call, arrays, theirs):
    """Return the results of a jitted call; with the longest size of the true results, if it needs a size."""
    try:
        return jax.jit(lambda *arrays: call.call(call.ours, arrays))(*arrays)
    except InferError as problem:
        if "shapes of its outputs depend on the data" not in str(problem):
            raise
        call.size = max((size for x in flat(theirs) for size in x.shape), default=0)
        try:
            return jax.jit(lambda *arrays: call.call(call.ours, arrays))(*arrays)
        except PolyopError:
            raise problem from None


def _cut(call, ours, theirs):
    """Return results with the sizes of PyTorch's, where a size was given."""
    if call.size is None:
        return ours
    pairs = zip(ours, theirs, strict=True)
    return [x if x.shape == y.shape else x[tuple(map(slice, y.shape))] for x, y in pairs]


def _shapes(values):
    return [None if x is None else tuple(x.shape) for x in flat(values)]


def _is_unwritten(call):
    """Whether results have memory that PyTorch leaves as it was."""
    return "empty" in call.ours.name or "_ctc_loss" in call.ours.name


def _gradients(call, arrays):
    found = _expected(call)
    if found is None:
        return None
    wanted, is_end, expected = found

    def run(*values):
        inner = list(arrays)
        for i, value in zip(wanted, values, strict=True):
            inner[i] = value
        outputs = flat(call.call(call.ours, inner))[: len(is_end)]
        return [x for x, end in zip(outputs, is_end, strict=True) if end]

    results, pull = jax.vjp(run, *(arrays[i] for i in wanted))
    ours = pull([jnp.ones_like(x) for x in results])
    ours = [jnp.conj(x) for x in ours]  # JAX's convention for complex numbers is the conjugate
    return _shapes(ours) == _shapes(expected) if call.is_random else same(ours, expected)


def _expected(call):
    """Return (the tensors that PyTorch differentiates by, a flag for each output, the gradients), or None.

    Where PyTorch has no derivative of all outputs by all tensors, those tensors count that have one alone;
    else those outputs, such as the eigenvalues beside the eigenvectors.
    """
    smooth = [i for i, x in enumerate(call.tensors) if _is_smooth(x)]
    found = _differentiated(call, smooth)
    if found is None:
        wanted = [i for i in smooth if _differentiated(call, [i])]
        found = _differentiated(call, wanted)
    if found is None and smooth:
        with torch.no_grad():
            count = len(flat(call.call(call.theirs, [x.clone() for x in call.tensors])))
        each = (_differentiated(call, smooth, output) for output in range(count))
        found = next((one for one in each if one is not None), None)
    return found


def _differentiated(call, wanted, output=None):
    """Return the gradients of all outputs, or of one of them; None if PyTorch has no derivative."""
    if not wanted:
        return None
    leaves = [x.detach().clone() for x in call.tensors]
    for i in wanted:
        leaves[i].requires_grad_()
    state = torch.get_rng_state()
    try:
        inner = [x.clone() for x in leaves]  # a leaf may not be written
        outputs = [*flat(call.call(call.theirs, inner)), *call.written(inner)]
        is_end = [
            isinstance(x, torch.Tensor) and x.requires_grad and output in (None, i)
            for i, x in enumerate(outputs)
        ]
        ends = [x for x, end in zip(outputs, is_end, strict=True) if end]
        if not ends:
            return None
        inputs, seeds = [leaves[i] for i in wanted], [torch.ones_like(x) for x in ends]
        grads = torch.autograd.grad(ends, inputs, seeds, allow_unused=True, materialize_grads=True)
    except RuntimeError as problem:
        if re.search(_NO_DERIVATIVE, str(problem)):
            return None
        raise
    finally:
        torch.set_rng_state(state)
    return wanted, is_end, grads


_NO_DERIVATIVE = (
    r"not differentiable|is not implemented|automatic differentiation|linalg_eig_backward"
    r"|Autograd not support|does not require grad"
)
