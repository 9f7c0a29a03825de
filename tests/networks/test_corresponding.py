"""The table of corresponding functions: every expression against PyTorch, with numbers."""

import contextlib
import importlib
import importlib.util
import math

import ml_dtypes  # noqa: F401 - NumPy knows bfloat16 by its name then
import numpy as np
import pytest

torch = pytest.importorskip("torch")

from corresponding_cases import CASES, INDICES, RANDOM  # noqa: E402

from polyop.networks import corresponding  # noqa: E402
from polyop.networks.corresponding_expression import TensorArgument, names  # noqa: E402
from polyop.networks.traced import _of_run, bound  # noqa: E402

HERE = {
    "jax": importlib.util.find_spec("jax") is not None,
    "numpy": np.__version__ >= "2",
    "mindspore": importlib.util.find_spec("mindspore") is not None,
}
MODULES = {
    "jax": {"jax": "jax", "jnp": "jax.numpy"},
    "numpy": {"np": "numpy", "scipy": "scipy"},
    "mindspore": {"ms": "mindspore", "ops": "mindspore.ops"},
}
TARGETS = [pytest.param(one, marks=pytest.mark.skipif(not there, reason=f"{one} is not installed")) for one, there in HERE.items()]


def overload(name):
    base, _, rest = name.partition(".")
    return getattr(getattr(torch.ops.aten, base), rest or "default")


def given(name, args, keywords):
    """Return the arguments by name, once as a trace knows them and once with their tensors."""
    schema = overload(name)._schema
    return bound(schema, args, keywords, _of_run), bound(schema, args, keywords, lambda value: value)


def array(value, target):
    if isinstance(value, torch.Tensor):
        value = value.detach().resolve_conj().numpy()
        if target == "numpy":
            return value
        return importlib.import_module("jax.numpy").asarray(value) if target == "jax" else importlib.import_module("mindspore").Tensor(value)
    if isinstance(value, (list, tuple)):
        return [array(one, target) for one in value]
    return value


def arrays(result):
    if isinstance(result, (list, tuple)):
        return [one for part in result for one in arrays(part)]
    if isinstance(result, torch.Tensor):
        if result.dtype == torch.bfloat16:
            return [result.float().numpy().astype("bfloat16")]
        return [result.detach().resolve_conj().numpy()]
    return [result.asnumpy() if hasattr(result, "asnumpy") else np.asarray(result)]


def value_of(expression, tensors, target):
    modules = {name: importlib.import_module(module) for name, module in MODULES[target].items()}
    importlib.import_module("scipy.special")
    scope = {**modules, "math": math, **{name: array(value, target) for name, value in tensors.items()}}
    return eval(expression, scope)


def check(name, args, keywords, target):
    """Compare one call with PyTorch; return whether there is a counterpart."""
    traced, tensors = given(name, args, keywords)
    found = corresponding.answer(name, traced, target)
    if found.expression is None:
        return False
    read = names(found.expression)
    if "key" in read and target == "jax":
        tensors["key"] = importlib.import_module("jax").random.key(0)
    tensors = {key: value for key, value in tensors.items() if key in read}
    expected = arrays(overload(name)(*args, **keywords))
    with contextlib.ExitStack() as stack:
        if target == "jax":
            stack.enter_context(importlib.import_module("jax").enable_x64(True))
        got = arrays(value_of(found.expression, tensors, target))
    assert len(got) == len(expected), found.expression
    for ours, theirs in zip(got, expected, strict=True):
        assert ours.shape == theirs.shape, found.expression
        if target == "mindspore" or name in INDICES:  # it has 32 bits for some integers
            assert ours.dtype.kind in "iu" and theirs.dtype.kind in "iu" or ours.dtype == theirs.dtype, found.expression
        else:
            assert ours.dtype == theirs.dtype, (found.expression, ours.dtype, theirs.dtype)
        if name in RANDOM:
            continue
        if ours.dtype.name == "bfloat16":
            ours, theirs = ours.astype("float32"), theirs.astype("float32")
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-5, err_msg=found.expression)
    return True


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", sorted(corresponding.table()))
def test_an_expression_gives_the_values_of_pytorch(name, target):
    function = corresponding.row_of(name).functions.get(target)
    if function is None or "::" in name:
        return
    made = [check(name, args, keywords, target) for args, keywords in CASES[name]]
    assert any(made), "no call of the cases has a counterpart"
