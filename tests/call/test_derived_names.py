"""Messages say what their author wrote, not the names of the operators and kernels that polyop derives."""

# ruff: noqa: F821 - the words of the loop language need no import

import os
import re
import subprocess
import sys

import numpy as np
import pytest

import polyop
from polyop.call import registry
from polyop.call.batching import warn_of_loop
from polyop.core.derived_names import derived_name, in_words
from polyop.core.errors import BuildError, FallbackWarning, GradientError, PolyopError, SchemaError

DERIVED = re.compile(r"\w__\w|_backward_of|_batched|_functional|_traceable|_keyed|polyop_aten")


@polyop.kernel(compile_attrs={"tape_bytes": 100})
def limited(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        s = x[i]
        for _ in range(x.shape[0]):
            s = sin(s) * s if s > 0.5 else cos(s) * s
        y[i] = s
    return y


@polyop.kernel
def waves(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = exp(sin(x[i]) * x[i]) * x[i]
    return y


DOUBLING = """
import numpy as np
import polyop

@polyop.kernel(compile_attrs={"tape_bytes": 100})
def doubling(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        s = x[i]
        for _ in range(x.shape[0]):
            s = sin(s) * s
        y[i] = s
    return y

doubling.vjp(np.ones(300))[1](np.ones(300))
"""

PARTS = {  # by the end of the name, the words
    "backward": "the gradient of {}",
    "tangent": "the tangent of {}",
    "batched": "vmap of {}",
    "backward__batched": "vmap of the gradient of {}",
    "backward__tangent": "the tangent of the gradient of {}",
    "placed": "{}",
    "saving_float64_1": "{}",
}


@pytest.mark.parametrize("suffix", PARTS)
def test_an_error_of_a_part(suffix):
    part = registry.obtain(f"{limited.name}__{suffix}")
    if part is None:  # nothing is worth saving
        part = registry.obtain(f"{limited.name}__backward")
        suffix = "backward"
    with pytest.raises(PolyopError) as caught:
        part()
    message = str(caught.value)
    assert message.startswith(f"{PARTS[suffix].format(limited.name)}: needs argument"), message
    assert not DERIVED.search(message.replace(part.schema.signature, "")), message


def in_torch():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    limited(torch.ones(300, requires_grad=True)).sum().backward()


def in_torch_compiled():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    step = torch.compile(lambda x: limited(x).sum(), backend="aot_eager")
    step(torch.ones(300, requires_grad=True)).backward()


def in_jax():
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    jax.jit(jax.grad(lambda x: limited(x).sum()))(np.ones(300, np.float32)).block_until_ready()


def in_jax_vmap():
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    jax.vmap(jax.grad(lambda x: limited(x).sum()))(np.ones((2, 300), np.float32)).block_until_ready()


def in_numpy():
    limited.vjp(np.ones(300))[1](np.ones(300))


@pytest.mark.parametrize("call", [in_numpy, in_torch, in_torch_compiled, in_jax, in_jax_vmap])
def test_a_gradient_that_fails(call):
    with pytest.raises(Exception, match=r"the gradient of limited: s changes after this line") as caught:
        call()
    assert not DERIVED.search(str(caught.value))


def test_a_gradient_that_fails_and_was_derived_by_an_earlier_process(tmp_path):
    (tmp_path / "doubling.py").write_text(DOUBLING)
    env = {**os.environ, "PYTHONPATH": str(tmp_path), "POLYOP_CACHE_DIR": str(tmp_path / "cache")}
    program = [sys.executable, "-c", "import doubling"]
    for _ in range(2):
        done = subprocess.run(program, check=False, env=env, capture_output=True, text=True)
        assert "GradientError: the gradient of doubling: s changes after this line" in done.stderr, (
            done.stderr
        )
    assert not DERIVED.search(done.stderr)


def test_a_gradient_of_another_layout():
    """The call of the gradient is planned by the first one."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    x = torch.ones(3, requires_grad=True)
    rule = "must be a strided tensor, but got torch.sparse_coo"
    with pytest.raises(PolyopError, match=f"^{waves.name}: gradient of output 0: {rule}"):
        waves(x).backward(torch.ones(3).to_sparse())
    waves(x).backward(torch.ones(3))
    with pytest.raises(PolyopError, match=f"^the gradient of {waves.name}: argument d_out0: {rule}"):
        waves(x).backward(torch.ones(3).to_sparse())


def test_operators_of_pytorch():
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    pytest.importorskip("torch", reason="PyTorch is not installed")
    singular = np.zeros((2, 3, 3), np.float32)
    with pytest.raises(Exception, match=r"vmap of aten::linalg_cholesky: PyTorch raised") as caught:
        jax.vmap(polyop.aten("linalg_cholesky"))(singular)
    assert not DERIVED.search(str(caught.value))
    with pytest.raises(PolyopError, match=r"the gradient of aten::tanh: needs argument"):
        polyop.aten("tanh").operator.gradient.operator(np.ones(3))


def test_warnings(not_warned_yet):
    part = registry.obtain(f"{limited.name}__backward")
    with pytest.warns(
        FallbackWarning, match=f"^the gradient of {limited.name}: vmap runs one call per sample$"
    ):
        warn_of_loop(part.operator, "numpy")
    assert str(FallbackWarning(f"{part.name} is slow")) == f"the gradient of {limited.name} is slow"


def test_only_what_polyop_has_derived_is_replaced():
    """An author may choose such a name, and the compiler's text has names of functions."""
    name = derived_name("words::f__backward", "backward", "words::f")
    assert in_words(f"words::g__backward, other::f__backward, a_{name}") == (
        f"words::g__backward, other::f__backward, a_{name}"
    )
    assert in_words(f"loop kernel {name}") == "the gradient of loop kernel words::f"
    assert str(GradientError(name, "fails")) == "the gradient of words::f: fails"
    assert str(SchemaError(name, "is taken")) == "words::f__backward: is taken"
    assert str(BuildError(name, "is not compiled")) == "words::f__backward: is not compiled"
