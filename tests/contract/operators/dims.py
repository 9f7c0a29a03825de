"""Operators with ``dims=``: an optional tensor, arithmetic, ``...``, a list, a fixed size, an attribute."""

import numpy as np

import polyop


def _linear(x, w, bias):
    return x @ w if bias is None else x @ w + bias


linear = polyop.operator(
    "contract::dims_linear(Tensor x, Tensor w, Tensor? bias=None) -> Tensor",
    _linear,
    dims="b i, i o, o -> b o",
    parallel="b o",
    gradient=lambda x, w, bias, out, dout: (dout @ w.T, x.T @ dout, None if bias is None else dout.sum(0)),
)


def _window(x, w):
    return np.lib.stride_tricks.sliding_window_view(x, len(w), -1) @ w


window = polyop.operator(
    "contract::dims_window(Tensor x, Tensor w) -> Tensor",
    _window,
    dims="... n, k -> ... n-k+1",
    parallel="...",
    halo={"n": (0, "k-1")},
)


def _halves(x, ys, k):
    return sum(ys)[: len(x) // 2] + x.sum((1, 2))[: len(x) // 2, None]


halves = polyop.operator(
    "contract::dims_halves(Tensor x, Tensor[] ys, *, int k=2) -> Tensor", _halves, dims="n n 3, n k* -> n/2 k"
)


def _array(*shape):
    return np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape)


polyop_samples = {
    "contract::dims_linear": (_array(2, 3), _array(3, 4), _array(4)),
    "contract::dims_window": (_array(2, 5), _array(3)),
    "contract::dims_halves": (_array(4, 4, 3), [_array(4, 2), 2 * _array(4, 2)]),
}
