"""The forms of derived kernels: a row each, of which other tables and exported programs hold the names."""

# ruff: noqa: F821 - the words of the language

import numpy as np
import pytest

import polyop
from polyop.call.explain import explain
from polyop.call.registry import PARTS
from polyop.core.spec import Spec
from polyop.kernels.loop.derived import DerivedKernel
from polyop.kernels.loop.forms import FORMS, axes_text, parse_axes
from polyop.kernels.loop.kernel import LoopKernel
from polyop.loops.derive.forms import DERIVATIONS
from polyop.loops.derive.pipelines import PIPELINES

KINDS = {
    "backward": "BackwardKernel",
    "tangent": "TangentKernel",
    "batched": "BatchedKernel",
    "saving": "SavingKernel",
    "placed": "PlacedKernel",
}
"""By suffix, the names of forms in digests of operators: programs that were exported hold them."""


def scaled(x, w):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * w[j]
    return y


def test_names_that_exported_programs_hold_stay():
    assert {suffix: form.kind for suffix, form in FORMS.items()} == KINDS


def test_a_form_has_one_name_in_all_tables():
    derived = {*FORMS} - {"placed"}  # it is made by the analysis of slices
    assert {*FORMS} == {*PARTS}
    assert derived == {*DERIVATIONS} - {"residuals"} == {*PIPELINES} - {"checkpointed"}


@pytest.mark.parametrize(
    ("suffix", "tensors", "results", "linear", "attributes"),
    [
        ("backward", 4, 2, 1, ["polyop_tensors"]),
        ("tangent", 4, 1, 2, ["polyop_tensors"]),
        ("batched", 2, 1, 0, ["polyop_samples"]),
        ("placed", 2, 1, 0, [f"polyop_dimension{end}" for end in ("", "_begin", "_end", "_start", "_size")]),
        ("saving", 2, 1, 0, []),
    ],
)
def test_what_a_derived_kernel_takes_and_returns(suffix, tensors, results, linear, attributes):
    kernel = DerivedKernel.of(LoopKernel(scaled), FORMS[suffix])
    assert (kernel.tensors, kernel.results, kernel.linear_tensors) == (tensors, results, linear)
    own = [kernel.key_attribute, *kernel.number_attributes] if kernel.form.key else []
    assert own == attributes
    assert kernel.name == f"scaled__{suffix}"


def test_the_keys_of_nested_kernels_have_names_of_their_own():
    kernel = LoopKernel(scaled)
    for suffix in ("backward", "batched", "tangent"):
        kernel = DerivedKernel.of(kernel, FORMS[suffix])
    names = [kernel.key_attribute, kernel.base.key_attribute, kernel.base.base.key_attribute]
    assert names == ["polyop_tensors_2", "polyop_samples", "polyop_tensors"]
    assert str(kernel) == "tangent of batch of gradient of loop kernel scaled"
    assert (kernel.tensors, kernel.results, kernel.linear_tensors) == (8, 2, 4)


def test_a_kernel_for_another_device_shares_what_was_derived():
    kernel = DerivedKernel.of(LoopKernel(scaled), FORMS["tangent"])
    specs = [Spec((2, 3), np.float32), Spec((3,), np.float32)]
    typed = kernel.typed([*specs, *specs], {"polyop_tensors": "float32:2 float32:1"})
    other = kernel.on("opencl")
    assert (other.device, other.base.device, other.form) == ("opencl", "opencl", kernel.form)
    assert other.typed([*specs, *specs], {"polyop_tensors": "float32:2 float32:1"}) is typed


def test_explain_tells_how_a_call_of_a_gradient_can_be_sliced():
    part = polyop.kernel(scaled).gradient.backward
    rows, row = Spec((2, 3), np.float32), Spec((3,), np.float32)
    text = explain(part, (rows, row, rows, rows), {"polyop_tensors": "float32:2 float32:1"})
    slices = text[text.index("  slices") : text.index("  of gradient")]
    assert "x[i, j], w[j], d_y[i, j] -> d_x[i, j], d_w[j]" in slices
    assert "sum i" in slices


@pytest.mark.parametrize("axes", [(0,), (None, 1), (2, None, 0)])
def test_axes_as_text(axes):
    assert parse_axes(axes_text(axes)) == axes
