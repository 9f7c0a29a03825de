"""Sources like those of other projects: a PyTorch extension with a library and a module, vector intrinsics."""

import importlib.util
import platform

import numpy as np
import pytest

import polyop
from polyop.build import build
from polyop.core.errors import BuildError


@pytest.mark.slow
def test_an_extension_of_pytorch_with_a_library_and_a_module(sources, tmp_path):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    path = build([sources / "gated_unit.cpp"], output=tmp_path / "gated_unit.so")
    spec = importlib.util.spec_from_file_location("gated_unit", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    torch.manual_seed(0)
    x, state, weight, bias = torch.randn(2, 3), torch.randn(2, 4), torch.randn(8, 7), torch.randn(8)
    for forward in (module.forward, torch.ops.gated_unit.forward):
        value, gate, inner = forward(x, weight, bias, state)
        expected_value = torch.sigmoid(gate) * torch.tanh((torch.cat([state, x], 1) @ weight.T + bias)[:, 4:])
        torch.testing.assert_close(value, expected_value)
    gate = gate.requires_grad_()
    (expected,) = torch.autograd.grad((torch.sigmoid(gate) * inner).sum(), gate)
    torch.testing.assert_close(module.backward(torch.ones(2, 4), gate, inner)[0], expected)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the intrinsics are of x86-64")
def test_vector_intrinsics_need_a_flag_and_the_error_says_which(sources, tmp_path):
    with pytest.raises(BuildError, match=r"by -mavx \(polyop build --flag=-mavx, .* or by -march=native"):
        build([sources / "avx2.cpp"])
    wider = tmp_path / "wider.c"
    call = "_mm512_cvtss_f32(_mm512_add_ps(x, x)) + _mm_cvtss_f32(_mm_fmadd_ps(y, y, y))"
    wider.write_text(f"#include <immintrin.h>\nfloat f(__m512 x, __m128 y) {{ return {call}; }}\n")
    with pytest.raises(BuildError, match=r"by -mavx512f -mfma \(polyop build --flag=-mavx512f --flag=-mfma,"):
        build([wider])
    kernel = polyop.source(sources / "avx2.cpp", function="add_wide", flags=["-mavx2"])
    op = polyop.operator("real_sources::add_wide(Tensor x, Tensor y) -> Tensor", kernel, infer="x")
    x = np.arange(19, dtype=np.float32)
    np.testing.assert_array_equal(op(x, x), x + x)
