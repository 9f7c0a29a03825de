"""Whose failure a row of ``check`` is: the operator's, the framework's, or that of the check itself."""

import importlib.util
import itertools
import re

import numpy as np
import pytest

import polyop
from polyop.testing import check

torch = pytest.importorskip(
    "torch", reason="PyTorch is not installed: its half of the checks cannot be shown"
)
_numbers = itertools.count()


def define(kernel, schema="(Tensor x) -> Tensor", infer="x", **options):
    return polyop.operator(f"check_errors::op{next(_numbers)}{schema}", kernel, infer=infer, **options)


INTEGERS = {
    "infer": lambda x: (polyop.Spec(x.shape, polyop.dtype("int64"), x.device), x),
    "schema": "(Tensor x) -> (Tensor, Tensor)",
}


def test_outputs_may_begin_with_integers():
    op = define(
        lambda x: (np.argsort(x, -1), x * 2), gradient=lambda x, out, dout: (dout[1] * 2,), **INTEGERS
    )
    report = check(op, np.arange(6, dtype=np.float32).reshape(2, 3))
    opcheck = next(result for result in report.results if result.check == "opcheck")
    assert (opcheck.status, opcheck.detail) == (
        "passed",
        "without test_aot_dispatch_dynamic: it cannot add up integers and floats",
    )


def test_without_an_output_of_floating_dtype_nothing_has_a_gradient():
    op = define(
        lambda x: x.astype(np.int64),
        infer=lambda x: polyop.Spec(x.shape, polyop.dtype("int64"), x.device),
        gradient=lambda x, out, dout: (None,),
    )
    missing = check(op).not_run["no output of floating dtype"]
    assert set(missing) >= {"gradient", "second order", "forward mode", "compiled, gradient"}


def test_whose_code_raised_an_error(monkeypatch):
    """The operator's author, the framework, and the check itself are told apart."""
    from polyop.testing.frameworks import torch as calls

    def details(op):
        return [
            result.detail for result in check(op, hosts=["numpy", "torch"], raise_on_failure=False).failed
        ]

    def careless(x, out, dout):
        raise ValueError("by the author")

    assert "it raised ValueError: by the author" in details(define(lambda x: x * 2, gradient=careless))
    right = define(lambda x: x * 2, gradient=lambda x, out, dout: (dout * 2,))
    monkeypatch.setattr(calls, "gradients", lambda case, cotangents: torch.autograd.grad([], []))
    assert not any(
        "the check itself" in detail or "PyTorch" in detail for detail in details(right)
    )  # a test's lambda
    monkeypatch.setattr(calls, "gradients", torch.nn.functional.softmax)
    assert "PyTorch raised AttributeError: 'Case' object has no attribute 'softmax'" in details(right)
    monkeypatch.setattr(calls, "gradients", torch.relu)
    assert any(detail.startswith("the check itself raised TypeError: relu()") for detail in details(right))


def test_an_error_of_a_rule_is_named_in_paddle_too():
    pytest.importorskip("paddle", reason="Paddle is not installed")

    def careless(x, out, dout):
        raise ValueError("by the author")

    report = check(
        define(lambda x: x * 2, gradient=careless), hosts=["numpy", "paddle"], raise_on_failure=False
    )
    words = "the gradient rule must not raise, but got ValueError: by the author"
    assert [r.detail for r in report.failed if r.host == "paddle"] == [words, words]


@pytest.mark.slow(2)
@pytest.mark.parametrize("name", ["uint16", "float8_e5m2", "float8_e8m0fnu", "float4_e2m1fn"])
def test_a_dtype_that_a_framework_lacks_is_not_the_operators_failure(name):
    """PyTorch has no float4, Paddle no uint16, XLA packs float4; sums of a dtype may be missing too."""

    @polyop.kernel(name=f"check_lack::{name}")
    def twice(x):
        y = output_tensor(x.shape, x.dtype)  # noqa: F821 - a word of the loop language
        for i in range(x.shape[0]):
            y[i] = x[i] + x[i]
        return y

    report = check(twice, polyop.Spec((3,), name), raise_on_failure=False)
    assert report.failed == ()
    framework, module = {
        "uint16": ("Paddle", "paddle"),
        "float8_e5m2": ("PyTorch", "torch"),
        "float8_e8m0fnu": ("Paddle", "paddle"),
        "float4_e2m1fn": ("JAX", "jax"),
    }[name]
    if importlib.util.find_spec(module):
        words = rf"{framework}( takes no {name}|: .* not implemented for '\w+')"
        assert any(re.fullmatch(words, reason) for reason in report.not_run), report.not_run


@pytest.mark.parametrize("factor", [0.5, 1.5, -1])
def test_a_gradient_of_a_wrong_length_is_found_along_each_direction(factor):
    """float32 alone leaves the widest room for errors of rounding."""
    op = define(
        lambda x: x * np.float32(2),
        gradient=lambda x, out, g: (g * np.float32(2 * factor),),
        dtypes=["float32"],
    )
    for seed in range(40):
        report = check(op, np.ones((3, 4), np.float32), hosts=["numpy"], seed=seed, raise_on_failure=False)
        assert [one.check for one in report.failed] == ["gradient"], seed
