"""The parts of a loop operator, such as ``<name>__backward``: how they are called."""
# ruff: noqa: F821 - words of the loop language

import cProfile
import importlib.util
import pstats

import numpy as np
import pytest
import torch

from polyop import Custom, CustomRegOp, DataType


def powers(x, w, alpha, times):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = sin(alpha * x[i, j]) * w[j] + times * x[i, j]
    return y


@pytest.fixture(scope="session")
def op():
    information = CustomRegOp().attr("alpha", "required", "float").attr("times", "required", "int")
    return Custom(powers, func_type="hybrid", reg_info=information.target("CPU").get_op_info())


def inputs():
    random = np.random.default_rng(0)
    return random.normal(size=(4, 5)), random.normal(size=5)


def test_a_part_takes_every_argument_by_position_and_by_name(op):
    x, w = inputs()
    y = op(x, w, 0.5, 3)
    backward = op.gradient.backward
    assert not any(a.keyword_only for a in backward.schema.arguments)
    names = [a.name for a in backward.schema.arguments]
    assert names[:4] == ["x", "w", "out0", "d_out0"]
    spec_key = "float64:2 float64:1"
    by_position = backward(x, w, y, np.ones_like(y), spec_key, 0.5, 3)
    by_name = backward(x, w, y, np.ones_like(y), alpha=0.5, times=3, **{names[4]: spec_key})
    for left, right in zip(by_position, by_name, strict=True):
        np.testing.assert_array_equal(left, right)
    np.testing.assert_allclose(by_position[0], 0.5 * np.cos(0.5 * x) * w + 3)


def test_an_eager_gradient_does_not_pass_through_the_dispatcher(op):
    x, w = (torch.tensor(a, requires_grad=True) for a in inputs())
    y = op(x, w, 0.5, 3)
    grad_y = torch.ones_like(y)  # of y.sum() it would be expanded, and copied first
    torch.autograd.grad(y, (x, w), grad_y, retain_graph=True)
    profile = cProfile.Profile()
    profile.enable()  # PyTorch's profiler would make every operator pass through the dispatcher
    d_x, d_w = torch.autograd.grad(y, (x, w), grad_y, retain_graph=True)
    profile.disable()
    names = {row[2] for row in pstats.Stats(profile).stats}
    assert "run_backward" in " ".join(names)
    assert not [name for name in names if name == "call_overload" or "torch._ops" in name]
    torch.testing.assert_close(d_x, 0.5 * torch.cos(0.5 * x) * w + 3)
    torch.testing.assert_close(d_w, torch.sin(0.5 * x).sum(0))


@pytest.mark.slow
def test_second_derivatives(op):
    x, w = (torch.tensor(a, requires_grad=True) for a in inputs())
    assert torch.autograd.gradcheck(lambda *a: op(*a, 0.5, 3), (x, w))
    assert torch.autograd.gradgradcheck(lambda *a: op(*a, 0.5, 3), (x, w))


def test_an_attribute_whose_name_the_schema_cannot_have(tmp_path):
    """The schema has another name for it; derived kernels get the author's name."""
    text = "def scaled(x, ε):\n    y = output_tensor(x.shape, x.dtype)\n    for i in range(x.shape[0]):\n"
    (tmp_path / "greek.py").write_text(f"{text}        y[i] = x[i] * ε\n    return y\n")
    spec = importlib.util.spec_from_file_location("greek", tmp_path / "greek.py")
    greek = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(greek)
    row = DataType.F64_Default
    information = CustomRegOp().input(0, "x").output(0, "y").attr("ε", "required", "float")
    information = information.dtype_format(row, row).target("CPU").get_op_info()
    op = Custom(greek.scaled, func_type="hybrid", reg_info=information)
    out, pull = op.vjp(np.ones(2), 3.0)
    assert out.tolist() == [3.0, 3.0]
    assert pull(np.ones(2))[0].tolist() == [3.0, 3.0]


def test_names_of_rules_that_exported_programs_hold(op):
    """They are in the digest of a program with gradients: a class that moves makes old programs fail."""
    names = [f"{type(rule).__module__}.{type(rule).__qualname__}" for rule in op.operator.rules]
    rows = [("gradient", "GradientRule"), ("tangent", "TangentRule"), ("batch", "BatchRule")]
    assert names == [f"polyop.rules.loops.{file}.{name}" for file, name in [*rows, ("placed", "PlacedRule")]]
