"""The network that moves: a classifier of graphs, as one writes it in PyTorch.

A convolution of the neighbours (Kipf and Welling, 2017), attention to them (Velickovic et al., 2018), and the
maximum over the nodes of each graph. Edges are two lists of nodes; several graphs are one, with the number of
the graph of each node.
"""

import torch
from torch import nn
from torch.nn import functional

FEATURES, WIDTH, HEADS, CLASSES, GRAPHS = 4, 6, 2, 2, 6
RATE = 0.05


def sparse_product(weight, x, source, target):
    """Return for each node the sum of its neighbours, weighted; x is (nodes, heads, features)."""
    return torch.zeros_like(x).index_add(0, target, weight[..., None] * x[source])


def segment_softmax(score, target, nodes):
    """Return exp(score), divided by its sum over the edges that end in the same node; (edges, heads)."""
    place = target[:, None].expand_as(score)
    lowest = score.new_full((nodes, score.shape[1]), -torch.inf)
    top = lowest.scatter_reduce(0, place, score.detach(), "amax")
    power = (score - top[target]).exp()
    return power / torch.zeros_like(top).index_add(0, target, power)[target]


class Convolution(nn.Module):
    """The neighbours' features, each through a linear layer."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(FEATURES, WIDTH, bias=False)
        self.bias = nn.Parameter(torch.rand(WIDTH))

    def forward(self, x, source, target, degree):
        """Return (nodes, WIDTH)."""
        weight = (degree[source] * degree[target]).rsqrt()[:, None]
        return sparse_product(weight, self.linear(x)[:, None], source, target)[:, 0] + self.bias


class Attention(nn.Module):
    """The neighbours' features, weighted by what they say to the node."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, HEADS * WIDTH, bias=False)
        self.to_source = nn.Parameter(torch.randn(HEADS, WIDTH))
        self.to_target = nn.Parameter(torch.randn(HEADS, WIDTH))

    def forward(self, x, source, target):
        """Return (nodes, HEADS * WIDTH)."""
        x = self.linear(x).reshape(-1, HEADS, WIDTH)
        from_source, from_target = (x * self.to_source).sum(-1), (x * self.to_target).sum(-1)
        score = functional.leaky_relu(from_source[source] + from_target[target], 0.2)
        return sparse_product(segment_softmax(score, target, len(x)), x, source, target).flatten(1)


class Network(nn.Module):
    """The scores of the classes of each graph."""

    def __init__(self):
        super().__init__()
        self.convolution, self.attention = Convolution(), Attention()
        self.norm = nn.BatchNorm1d(HEADS * WIDTH).eval()  # statistics of an earlier training
        self.norm.running_mean.uniform_(-0.1, 0.1)
        self.norm.running_var.uniform_(0.5, 1)
        self.head = nn.Linear(HEADS * WIDTH, CLASSES)

    def forward(self, x, source, target, degree, graph):
        """Return (GRAPHS, CLASSES)."""
        x = functional.elu(self.convolution(x, source, target, degree))
        x = self.norm(self.attention(x, source, target))
        place = graph[:, None].expand_as(x)
        lowest = x.new_full((GRAPHS, x.shape[1]), -torch.inf)
        return self.head(torch.scatter_reduce(lowest, 0, place, x, "amax"))


def data():
    """Return rings and stars, and which is which."""
    edges, graph, start = [], [], 0
    for number in range(GRAPHS):
        size = 5 + number
        ring = [(k, (k + 1) % size) for k in range(size)]
        star = [(0, k) for k in range(1, size)]
        edges += [(start + i, start + j) for i, j in (ring if number % 2 else star)]
        graph += [number] * size
        start += size
    both = [*edges, *[(j, i) for i, j in edges], *[(k, k) for k in range(start)]]
    source, target = torch.tensor(both).T.contiguous()
    degree = torch.bincount(target).float()
    x = torch.stack([degree, degree.rsqrt(), torch.arange(start).sin(), torch.ones(start)], -1)
    return (x, source, target, degree, torch.tensor(graph)), torch.arange(GRAPHS) % 2


def loss(scores, labels):
    """Return the mean cross entropy."""
    return functional.cross_entropy(scores, labels)
