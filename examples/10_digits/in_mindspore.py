"""MindSpore: a Cell, its parameters, ``value_and_grad`` and an optimiser."""

import mindspore
import network
from mindspore import nn


class Network(nn.Cell):
    """The network with its parameters."""

    def __init__(self):
        super().__init__()
        names = ("w1", "b1", "w2", "b2")
        self.values = mindspore.ParameterTuple(
            [mindspore.Parameter(p, name=n) for p, n in zip(network.start(), names, strict=True)]
        )

    def construct(self, x, labels):
        """Return the loss."""
        return network.loss(tuple(self.values), x, labels)


def train():
    """Return the loss of each step, and the last parameters."""
    net, losses = Network(), []
    optimiser = nn.SGD(net.trainable_params(), network.RATE)
    step = mindspore.value_and_grad(net, None, optimiser.parameters)
    for x, labels in network.batches():
        value, grads = step(mindspore.Tensor(x), mindspore.Tensor(labels))
        optimiser(grads)
        losses.append(float(value.asnumpy()))
    return losses, [p.asnumpy() for p in net.values]
