"""The same network in MindSpore: cells, in which ``vmap`` batches the two operators."""

import mindspore as ms
from mindspore import nn, ops
from state_space_kernels import causal_convolution, selective_scan
from state_space_torch import LETTERS, RANK, STATE, TAPS, WIDTH


class Convolution(nn.Cell):
    """The parameters of the convolution."""

    def __init__(self, features):
        super().__init__()
        self.weight = ms.Parameter(ops.zeros((features, TAPS)))
        self.bias = ms.Parameter(ops.zeros((features,)))
        self.each = ms.vmap(causal_convolution, in_axes=(0, None, None))

    def construct(self, x):
        """Filter each feature by its past."""
        return self.each(x, self.weight, self.bias)


class Mixer(nn.Cell):
    """One layer, with parameters of its own beside its linear layers."""

    def __init__(self):
        super().__init__()
        inner = 2 * WIDTH
        self.norm = nn.LayerNorm((WIDTH,), epsilon=1e-5)
        self.in_proj = nn.Dense(WIDTH, 2 * inner, has_bias=False)
        self.conv = Convolution(inner)
        self.x_proj = nn.Dense(inner, RANK + 2 * STATE, has_bias=False)
        self.dt_proj = nn.Dense(RANK, inner)
        self.log_a = ms.Parameter(ops.zeros((inner, STATE)))
        self.skip = ms.Parameter(ops.zeros((inner,)))
        self.out_proj = nn.Dense(inner, WIDTH, has_bias=False)
        self.each = ms.vmap(selective_scan, in_axes=(0, 0, None, 0, 0, None))

    def construct(self, x):
        """Return x plus what the layer makes of it."""
        hidden, gate = ops.split(self.in_proj(self.norm(x)), 2 * WIDTH, -1)
        hidden = ops.silu(self.conv(hidden))
        step, b, c = ops.split(self.x_proj(hidden), [RANK, STATE, STATE], -1)
        step = ops.softplus(self.dt_proj(step))
        y = self.each(hidden, step, -ops.exp(self.log_a), b, c, self.skip)
        return x + self.out_proj(y * ops.silu(gate))


class Network(nn.Cell):
    """The scores of the next letter at each position of (batch, time) letters."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(LETTERS, WIDTH)
        self.layers = nn.CellList([Mixer(), Mixer()])
        self.norm = nn.LayerNorm((WIDTH,), epsilon=1e-5)
        self.head = nn.Dense(WIDTH, LETTERS)

    def construct(self, letters):
        """Return (batch, time, LETTERS)."""
        x = self.embedding(letters)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


def loss(scores, following):
    """Return the mean cross entropy of the next letters."""
    return ops.cross_entropy(scores.reshape(-1, LETTERS), following.reshape(-1))
