"""A PyTorch network with an operator that MindSpore lacks, as a MindSpore-style network."""

import pathlib

import numpy as np
import torch

import polyop.mindspore as ms
from polyop import aten
from polyop.mindspore import Tensor, nn, ops
from polyop.networks import weights


# [pytorch]
class TorchNet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(4, 3)
        self.norm = torch.nn.LayerNorm(3)
        self.second = torch.nn.Linear(3, 1)

    def forward(self, x):
        return self.second(torch.nn.functional.leaky_relu(self.norm(self.first(x)), 0.1)).sum()
        # [/pytorch]


# [aten]
class Net(nn.Cell):
    def __init__(self, leaky_relu):
        super().__init__()
        self.first = nn.Dense(4, 3)
        self.norm = nn.LayerNorm((3,), epsilon=1e-5)
        self.second = nn.Dense(3, 1)
        self.leaky_relu = leaky_relu

    def construct(self, x):
        return self.second(self.leaky_relu(self.norm(self.first(x)), 0.1)).sum()


by_name = Net(aten("leaky_relu"))
# [/aten]

# [module]
source = pathlib.Path(__file__).with_name("leaky.cpp")
module = ops.CustomOpBuilder("moving_ops", [str(source)], backend="CPU").load()
by_module = Net(module.leaky_relu)
# [/module]

# [weights]
original = TorchNet()
for net in (by_name, by_module):
    values = weights.to_mindspore(original, like=net)
    for name, parameter in net.parameters_and_names():
        parameter.set_data(Tensor(values[name]))
# [/weights]

# [compare]
x = np.linspace(-2, 2, 8, dtype=np.float32).reshape(2, 4)
leaf = torch.tensor(x, requires_grad=True)
expected = original(leaf)
expected.backward()

for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
    ms.set_context(mode=mode, device_target="CPU")
    for net in (by_name, by_module):
        value, (dx, grads) = ms.value_and_grad(net, 0, net.trainable_params())(Tensor(x))
        assert np.allclose(value.asnumpy(), expected.item(), atol=1e-5)
        assert np.allclose(dx.asnumpy(), leaf.grad.numpy(), atol=1e-5)
        for ours, theirs in zip(grads, original.parameters(), strict=True):
            assert np.allclose(ours.asnumpy(), theirs.grad.numpy(), atol=1e-5)
# [/compare]
print("output and gradients agree with PyTorch's:", value)
