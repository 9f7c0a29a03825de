"""In a graph, with the converter that the document prints."""

from typing import Any

import torch
import torch_npu
import torchair
from torch_npu.testing.testcase import TestCase, run_tests
from torchair.configs.compiler_config import CompilerConfig
from torchair.ge_concrete_graph.fx2ge_converter import register_fx_node_ge_converter
from torchair.ge_concrete_graph.ge_graph import Tensor, TensorSpec
from torchair.ge_concrete_graph.utils import dtype_promote

import custom_ops
from auto_generated_ge_raw_custom_ops import AddCustom


@register_fx_node_ge_converter(torch.ops.myops.my_op.default)
def conveter_custom_op(
        input1: Tensor,
        input2: Tensor,
        out: Tensor = None,
        meta_outputs: Any = None):
    input1, input2 = dtype_promote(input1, input2, target_dtype=meta_outputs.dtype)
    return AddCustom(input1, input2)


class Model(torch.nn.Module):
    def forward(self, x, y):
        return custom_ops.add_custom(x, y) * 2


class TestGraph(TestCase):
    def test_one_graph(self):
        backend = torchair.get_npu_backend(compiler_config=CompilerConfig())
        model = torch.compile(Model().npu(), backend=backend, dynamic=True, fullgraph=True)
        x, y = (torch.randn([8, 16], device="npu", dtype=torch.float32, requires_grad=True) for _ in "xy")
        expected = (x + y).detach() * 2
        output = model(x.npu(), y.to("npu:0"))
        output.sum().backward()
        self.assertRtolEqual(output, expected)
        self.assertRtolEqual(x.grad, torch.full([8, 16], 2.0))


if __name__ == "__main__":
    run_tests()
