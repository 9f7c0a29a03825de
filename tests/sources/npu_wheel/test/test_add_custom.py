"""Eager and on meta tensors, in the words of tests for torch_npu."""

import torch
import torch_npu
from torch_npu.testing.testcase import TestCase, run_tests

import custom_ops

torch.npu.config.allow_internal_format = False
torch.npu.set_compile_mode(jit_compile=False)


class TestAddCustom(TestCase):
    def test_forward_and_backward(self):
        x, y = (torch.rand([8, 2048], device="cpu", dtype=torch.float16) for _ in "xy")
        on_npu = [tensor.npu().requires_grad_() for tensor in (x, y)]
        on_cpu = [tensor.requires_grad_() for tensor in (x, y)]
        output, expected = custom_ops.add_custom(*on_npu), torch.add(*on_cpu)
        output.backward(output)
        expected.backward(expected)
        torch.npu.synchronize()
        self.assertRtolEqual(output, expected)
        for ours, theirs in zip(on_npu, on_cpu):
            self.assertRtolEqual(ours.grad, theirs.grad)

    def test_meta(self):
        x, y = (torch.rand([8, 2048]).to("meta").requires_grad_() for _ in "xy")
        output = custom_ops.add_custom(x, y)
        output.backward(output)
        self.assertTrue(output.is_meta)
        self.assertRtolEqual(output.size(), x.size())
        self.assertRtolEqual(x.grad.size(), x.size())


if __name__ == "__main__":
    run_tests()
