"""Attributes whose value the registration gives: all functions of a library see them, each operator its own."""

import numpy as np
import pytest

from polyop import Custom, CustomRegOp
from polyop.build import build
from polyop.call.foreign import digest

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def information(name="axis", **values):
    return CustomRegOp().input(0, "x").output(0, "y").attr(name, "required", "int", **values).target("CPU").get_op_info()  # fmt: skip


@pytest.fixture(params=["library", "source"])
def func(request, sources, tmp_path):
    """The reference to a kernel that sums along ``axis``."""
    path = sources / "sum_along.cc"
    return f"{build([path], output=tmp_path / 'libsum.so') if request.param == 'library' else path}:SumAlong"


def test_constants_are_seen_by_the_inference(func):
    """``InferShape`` and ``InferType`` get the attributes that ``Init`` and the kernel get."""
    for axis in (0, 1):
        op = Custom(func, None, None, "aot", reg_info=information(value=axis))
        np.testing.assert_array_equal(op(X), X.sum(axis))


def test_one_kernel_with_two_constants_is_two_operators(func):
    ops = [Custom(func, None, None, "aot", reg_info=information(value=axis)) for axis in (0, 1, 0)]
    for _ in range(2):
        for axis, op in zip((0, 1, 0), ops, strict=True):
            np.testing.assert_array_equal(op(X), X.sum(axis))
    assert len({op.name for op in ops}) == 3
    contents = [digest(op.operator).partition(".")[0] for op in ops]
    assert contents[0] != contents[1], "a program must not run with the constant of another operator"


def test_two_constants_in_frameworks(func):
    ops = [Custom(func, None, None, "aot", reg_info=information(value=axis)) for axis in (0, 1)]
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    compiled = torch.compile(lambda x: (ops[0](x), ops[1](x)), fullgraph=True, backend="aot_eager")
    for result, axis in zip(compiled(torch.tensor(X)), (0, 1), strict=True):
        np.testing.assert_array_equal(result, X.sum(axis))
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    for result, axis in zip(jax.jit(lambda x: (ops[0](x), ops[1](x)))(X), (0, 1), strict=True):
        np.testing.assert_array_equal(result, X.sum(axis))


@pytest.mark.parametrize("name", ["axis", "lambda"])
def test_attributes_of_a_call_are_seen_under_their_own_names(sources, tmp_path, name):
    """A name that no schema can have reaches the inference as it reaches the kernel."""
    text = (sources / "sum_along.cc").read_text().replace('"axis"', f'"{name}"')
    (tmp_path / "count.h").write_text((sources / "count.h").read_text())
    (tmp_path / "named.cc").write_text(text)
    op = Custom(f"{tmp_path / 'named.cc'}:SumAlong", None, None, "aot", reg_info=information(name))
    np.testing.assert_array_equal(op(X, 1), X.sum(1))
    np.testing.assert_array_equal(op(X, 0), X.sum(0))
