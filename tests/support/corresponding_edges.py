"""Calls at the edges of operators: bounds, equal values, zeros, infinite numbers, 16 bits, sizes of 0 and 1."""

import torch

from corresponding_samples import IMAGE, INF, NAN, SPECIAL, X, call, f, i

BOUNDS = torch.tensor([-3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0, 6.0])
TIES = torch.tensor([[2.0, 2.0, 1.0], [0.0, 0.0, 0.0]])
ZEROS = torch.tensor([[0.0, 0.0], [3.0, 4.0]])
HALF = f(2, 3, 4).half()
GRID = torch.stack(torch.meshgrid(torch.linspace(-1, 1, 6), torch.linspace(-1, 1, 4), indexing="xy"), -1)[
    None
]
EDGES = {
    **{
        name: [call(BOUNDS)]
        for name in ("relu", "relu6", "hardswish", "hardsigmoid", "elu", "hardtanh", "abs")
    },
    "leaky_relu": [call(BOUNDS, 0.25), call(SPECIAL)],
    "threshold": [call(BOUNDS, 0.5, 2.0), call(SPECIAL, 0.5, 2.0)],
    "hardshrink": [call(BOUNDS), call(SPECIAL)],
    "softshrink": [call(BOUNDS), call(SPECIAL)],
    "clamp": [call(BOUNDS, -0.5, 1.0), call(BOUNDS, 1.0, -0.5)],
    "clamp_min": [call(BOUNDS, 0.5)],
    "clamp_max": [call(BOUNDS, 0.5)],
    "div.Tensor_mode": [call(i(4, low=-9), i(4, low=1), rounding_mode="trunc")],
    **{name: [call(i(3, low=1))] for name in ("rsqrt", "erf", "erfc", "erfinv", "lgamma", "digamma")},
    **{name: [call(i(3, dtype=torch.uint8)), call(HALF)] for name in ("sum", "prod")},
    "cumsum": [call(HALF, 1)],
    "max.dim": [call(TIES, 1), call(TIES, 1, True)],
    "min.dim": [call(TIES, 1), call(TIES, 1, True)],
    "std": [call(torch.ones(4))],
    "std.dim": [call(torch.ones(2, 3), [1])],
    "std.correction": [call(torch.ones(2, 3), [1])],
    "linalg_vector_norm": [call(ZEROS, 2, [1]), call(ZEROS, 3, [1]), call(HALF)],
    "norm.ScalarOpt_dim": [call(ZEROS, 2, [1]), call(ZEROS, 3, [1]), call(HALF, 2, [1])],
    "embedding": [call(f(5, 3), torch.tensor([1, 2]), 1)],
    "max_pool3d": [call(f(1, 1, 4, 4, 4), [2] * 3, [1] * 3, [0] * 3, [2] * 3)],
    "cosine_similarity": [
        call(f(2, 1), f(2, 5)),
        call(f(2, 3, 3), f(3, 3)),
        call(f(2, 3) * 1e-5, f(2, 3) * 10, 1, 1e-4),
        call(HALF, HALF),
    ],
    "linalg_cholesky": [call(torch.tensor([[2.0, 0.5], [0.5, 3.0]]), upper=True)],
    "linalg_solve": [
        call(torch.eye(3) + 0.1 * f(3, 3), f(2, 3, 3)),
        call(torch.eye(3) + 0.1 * f(2, 3, 3), f(3)),
    ],
    "upsample_bilinear2d.vec": [call(f(1, 2, 2, 4), None, True, [0.5, 1.0])],
    **{name: [call(HALF, [4])] for name in ("layer_norm", "rms_norm")},
    "group_norm": [call(HALF, 3)],
    "instance_norm": [call(IMAGE.half(), None, None, None, None, True, 0.1, 1e-5, False)],
    "cross_entropy_loss": [call(f(4, 3).half(), i(4, high=3))],
    "nll_loss": [call(f(4, 3).half(), i(4, high=3))],
    "index.Tensor": [call(X, [i(2, high=2, dtype=torch.uint8)])],
    "index_put": [
        call(X.clone(), [i(2, high=2, dtype=torch.uint8)], torch.tensor(1.0)),
        call(X.clone(), [X > 0], torch.tensor(1.0)),
    ],
    "index_select": [call(X, 1, torch.tensor(2))],
    "masked_fill.Scalar": [call(X > 0, X > 1, 0), call(HALF, X > 0, -INF)],
    "masked_fill.Tensor": [call(HALF, X > 0, torch.tensor(-INF)), call(X > 0, X > 1, torch.tensor(False))],
    "cat": [call([X, torch.empty(0)])],
    "arange.start_step": [call(1000, 2000, 0.1)],
    "narrow": [call(X, -1, -2, 2)],
    "median": [call(torch.tensor([1.0, 1.0, 2.0])), call(torch.tensor([1.0, 2.0, 3.0]))],
    "grid_sampler": [
        *(call(f(1, 2, 4, 6), GRID, 0, padding, True) for padding in (0, 1)),
        call(f(1, 2, 4, 6), torch.full((1, 1, 2, 2), NAN), 0, 0, False),
    ],
}
"""They come behind those of corresponding_cases.py."""
