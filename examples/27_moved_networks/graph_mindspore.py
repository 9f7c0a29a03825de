"""The same network in MindSpore."""

import mindspore as ms
from graph_kernels import scatter_reduce, segment_softmax, sparse_product
from graph_torch import CLASSES, FEATURES, GRAPHS, HEADS, WIDTH
from mindspore import nn, ops


class Convolution(nn.Cell):
    """The neighbours' features, each through a linear layer."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Dense(FEATURES, WIDTH, has_bias=False)
        self.bias = ms.Parameter(ops.zeros((WIDTH,)))

    def construct(self, x, source, target, degree):
        """Return (nodes, WIDTH)."""
        weight = ops.rsqrt(degree[source] * degree[target])[:, None]
        return sparse_product(weight, self.linear(x)[:, None], source, target)[:, 0] + self.bias


class Attention(nn.Cell):
    """The neighbours' features, weighted by what they say to the node."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Dense(WIDTH, HEADS * WIDTH, has_bias=False)
        self.to_source = ms.Parameter(ops.zeros((HEADS, WIDTH)))
        self.to_target = ms.Parameter(ops.zeros((HEADS, WIDTH)))

    def construct(self, x, source, target):
        """Return (nodes, HEADS * WIDTH)."""
        x = self.linear(x).reshape(-1, HEADS, WIDTH)
        from_source, from_target = (x * self.to_source).sum(-1), (x * self.to_target).sum(-1)
        score = ops.leaky_relu(from_source[source] + from_target[target], 0.2)
        weight = segment_softmax(score, target, x.shape[0])
        return sparse_product(weight, x, source, target).reshape(x.shape[0], -1)


class Network(nn.Cell):
    """The scores of the classes of each graph."""

    def __init__(self):
        super().__init__()
        self.convolution, self.attention = Convolution(), Attention()
        self.norm = nn.BatchNorm1d(HEADS * WIDTH, eps=1e-5, use_batch_statistics=False)
        self.head = nn.Dense(HEADS * WIDTH, CLASSES)

    def construct(self, x, source, target, degree, graph):
        """Return (GRAPHS, CLASSES)."""
        x = ops.elu(self.convolution(x, source, target, degree))
        x = self.norm(self.attention(x, source, target))
        place = ops.broadcast_to(graph[:, None], x.shape)
        lowest = ops.full((GRAPHS, x.shape[1]), float("-inf"), dtype=ms.float32)
        return self.head(scatter_reduce(lowest, 0, place, x, "amax"))


def loss(scores, labels):
    """Return the mean cross entropy."""
    return ops.cross_entropy(scores, labels)
