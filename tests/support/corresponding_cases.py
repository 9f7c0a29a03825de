"""Calls of each operator in the table of corresponding functions, with other arguments than the defaults."""

import torch

from corresponding_edges import EDGES
from corresponding_samples import (
    IMAGE,
    INF,
    PICTURE,
    POSITIVE,
    X,
    b,
    c,
    call,
    distinct,
    f,
    i,
)
from corresponding_values import COMPUTING

PLAIN = {
    **COMPUTING,
    # indices
    "embedding": [call(f(5, 3), i(2, 4)), call(f(5, 3), i(2, 4), 1), call(f(5, 3), i(2), -1, True)],
    "one_hot": [call(i(2, 3), 6), call(i(2, 3))],
    "index.Tensor": [
        call(X, [None, i(4, high=3)]),
        call(X, [i(4, high=2), None, i(4, high=4)]),
        call(X, [b(2, 3)]),
    ],
    "index_select": [call(X, 1, i(5, high=3)), call(X, -1, i(5, high=4))],
    "gather": [
        call(X, 1, i(2, 5, 4, high=3)),
        call(X, -1, i(2, 3, 2, high=4)),
        call(X, 1, i(1, 5, 4, high=3)),
    ],
    "take_along_dim": [
        call(X, i(2, 5, 4, high=3), 1),
        call(X, i(1, 5, 4, high=3), -2),
        call(X, i(6, high=24)),
    ],
    "scatter.src": [
        call(X, 1, torch.tensor([[[0, 2, 1, 0]], [[1, 1, 0, 2]]]), f(2, 1, 4)),
        call(X, -1, torch.tensor([[[0, 2]]]), f(2, 3, 4)),
    ],
    "scatter.value": [
        call(X, 1, torch.tensor([[[0, 2, 1, 0]], [[1, 1, 0, 2]]]), 7.0),
        call(X, -1, torch.tensor([[[0, 2]]]), 7.0),
    ],
    "scatter_add": [call(X, 1, i(2, 5, 4, high=3), f(2, 5, 4)), call(X, 0, i(1, 2, 4, high=2), f(3, 3, 4))],
    "scatter_reduce.two": [
        *(call(X, 1, i(2, 5, 4, high=3), f(2, 5, 4), how) for how in ("sum", "prod", "amax", "amin", "mean")),
        call(X, 1, i(2, 5, 4, high=3), f(2, 5, 4), "sum", include_self=False),
    ],
    "index_add": [call(X, 1, i(5, high=3), f(2, 5, 4)), call(X, -1, i(5, high=4), f(2, 3, 5), alpha=0.5)],
    "index_put": [
        call(X, [None, torch.tensor([2, 0])], f(4)),
        call(X, [i(5, high=2), i(5, high=3)], f(4), True),
    ],
    "masked_fill.Scalar": [call(X, b(3, 1), -INF)],
    "masked_fill.Tensor": [call(X, b(3, 1), torch.tensor(2.0))],
    "masked_select": [call(X, b(2, 3, 4)), call(X, b(3, 4))],
    "nonzero": [call(i(3, 4, high=2))],
    "sort": [call(distinct(3, 4)), call(distinct(3, 4), 0, True)],
    "sort.stable": [call(i(3, 9), stable=True), call(distinct(3, 4), stable=False, dim=0, descending=True)],
    "argsort": [call(distinct(3, 4)), call(distinct(3, 4), 0, True)],
    "argsort.stable": [
        call(i(3, 9), stable=True, dim=1),
        call(distinct(3, 4), stable=False, dim=0, descending=True),
    ],
    "topk": [
        call(distinct(3, 4), 2),
        call(distinct(3, 4), 2, 0),
        call(distinct(3, 4), 2, 1, False),
        call(distinct(9, 9), 1, 1, True, False),
    ],
    "searchsorted.Tensor": [
        call(torch.tensor([0.0, 1.0, 1.0, 2.0]), torch.tensor([[1.0, 0.5], [9.0, 2.0]])),
        call(torch.tensor([0.0, 1.0, 1.0, 2.0]), torch.tensor([1.0, 2.0]), right=True, out_int32=True),
        call(torch.tensor([0.0, 1.0, 1.0, 2.0]), torch.tensor([1.0, 2.0]), side="right"),
        call(torch.tensor([[0.0, 1.0]]), torch.tensor([[1.0]])),
        call(torch.tensor([1.0, 0.0]), torch.tensor([1.0]), sorter=torch.tensor([1, 0])),
    ],
    "bucketize.Tensor": [
        call(i(2, 3).float(), torch.tensor([1.0, 2.0])),
        call(i(2, 3).float(), torch.tensor([1.0, 2.0]), out_int32=True, right=True),
    ],
    "bincount": [call(i(9)), call(i(9), f(9).double(), 8)],
    # shapes
    "view": [call(X, [6, -1])],
    "_unsafe_view": [call(X, [6, 4])],
    "_reshape_alias": [call(X, [6, 4], [4, 1])],
    "reshape": [call(X, [-1, 2])],
    "permute": [call(X, [2, 0, -2])],
    "transpose.int": [call(X, 0, -1)],
    "t": [call(f(2, 3))],
    "numpy_T": [call(f(2, 3))],
    "flatten.using_ints": [call(X), call(X, 1), call(X, 0, -2), call(torch.tensor(1.0))],
    "unflatten.int": [call(X, -1, [2, -1])],
    "squeeze": [call(f(1, 3, 1))],
    "squeeze.dim": [call(f(1, 3, 1), -1), call(f(1, 3, 1), 1)],
    "squeeze.dims": [call(f(1, 3, 1), [0, 1, 2]), call(f(1, 3, 1), [-1, 1])],
    "unsqueeze": [call(X, 1), call(X, -1)],
    "expand": [call(f(3, 1), [2, -1, 4]), call(f(3, 1), [3, 4])],
    "expand_as": [call(f(3, 1), X)],
    "repeat": [call(f(2, 3), [2, 1, 3])],
    "tile": [call(f(2, 3), [2])],
    "repeat_interleave.self_int": [
        call(f(2, 3), 2),
        call(f(2, 3), 2, -1),
        call(f(2, 3), 2, 0, output_size=4),
    ],
    "repeat_interleave.self_Tensor": [call(f(2, 3), torch.tensor([1, 3]), 0, output_size=4)],
    "cat": [call([X, X + 1]), call([X, X[:, :1]], -2)],
    "stack": [call([X, X + 1]), call([X, X + 1], -1)],
    "chunk": [call(f(7, 2), 3), call(X, 2, -1), call(f(5, 2), 4)],
    "split.Tensor": [call(f(7, 2), 3), call(X, 2, -1)],
    "split_with_sizes": [call(f(7, 2), [3, 0, 4]), call(X, [1, 3], -1)],
    "unbind.int": [call(X), call(X, -1)],
    "select.int": [call(X, 1, 2), call(X, -1, -2)],
    "slice.Tensor": [call(X, 1, 1, 9223372036854775807), call(X, -1, None, -1, 2), call(X, 0, 0, 1)],
    "narrow": [call(X, -1, 1, 2), call(X, 1, -2, 2)],
    "flip": [call(X, [0, -1])],
    "roll": [call(X, [2]), call(X, [1, -1], [0, 2])],
    "rot90": [call(X), call(X, 3, [2, 1])],
    "movedim.int": [call(X, 0, -1)],
    "diagonal": [call(f(3, 4)), call(X, 1, 2, 0)],
    "tril": [call(X), call(X, 1)],
    "triu": [call(X), call(X, -1)],
    "meshgrid": [call([f(2), f(3)])],
    "meshgrid.indexing": [call([f(2), f(3)], indexing="ij"), call([f(2), f(3)], indexing="xy")],
    "broadcast_tensors": [call([f(2, 1), f(3)])],
    **{
        name: [call(X)]
        for name in [
            "contiguous",
            "alias",
            "lift_fresh",
            "lift_fresh_copy",
            "clone",
            "resolve_conj",
            "resolve_neg",
            "detach",
        ]
    },
    "view_as": [call(X, f(6, 4))],
    "reshape_as": [call(X, f(6, 4))],
    "pad": [
        call(IMAGE, [1, 2]),
        call(IMAGE, [1, 2, 0, 3], "constant", 1.5),
        *(call(IMAGE, [1, 2, 0, 3], mode) for mode in ("reflect", "replicate", "circular")),
        call(IMAGE, [-1, 2]),
    ],
    "constant_pad_nd": [call(IMAGE, [1, 2, 0, 3], 1.5), call(IMAGE, [1, -2])],
    "zeros": [call([2, 3]), call([2], dtype=torch.int64)],
    "ones": [call([2, 3]), call([2], dtype=torch.bool)],
    "full": [call([2, 3], 1.5), call([2], 3), call([2], True), call([2], 3, dtype=torch.float32)],
    **{name: [call(X), call(X, dtype=torch.int32)] for name in ("zeros_like", "ones_like")},
    "full_like": [call(X, 2), call(X, 2, dtype=torch.int32)],
    **{name: [call(X, [2]), call(X, [2], dtype=torch.int32)] for name in ("new_zeros", "new_ones")},
    "new_full": [call(X, [2], 3), call(X, [2], 3, dtype=torch.int32)],
    "scalar_tensor": [call(2.5), call(2, dtype=torch.int64)],
    "arange": [call(4), call(4.5), call(4, dtype=torch.float32)],
    "arange.start": [call(1, 4), call(1, 4.5), call(1, 4, dtype=torch.float32)],
    "arange.start_step": [call(4, 1, -2), call(1, 4, 0.5), call(1, 4, 2, dtype=torch.float32)],
    "linspace": [call(1, 2, 5), call(0, 4, 5, dtype=torch.int64)],
    "eye": [call(3), call(3, dtype=torch.int64)],
    "to.dtype": [call(X * 5, torch.int32), call(b(4), torch.float32), call(X, torch.bfloat16)],
    "to.dtype_layout": [call(X), call(X, dtype=torch.float64)],
    "to.device": [call(X, torch.device("cpu"), torch.float64)],
    "_to_copy": [call(X), call(X, dtype=torch.float64)],
    "to.other": [call(X, i(2))],
    "type_as": [call(X, i(2))],
    "select_scatter": [call(X, f(2, 4), 1, 2), call(X, f(2, 3), -1, -1)],
    "slice_scatter": [call(X, f(2, 2, 4), 1, 1), call(X, f(2, 3, 2), -1, 0, 4, 2)],
    "empty.memory_format": [call([2, 3]), call([2], dtype=torch.int64)],
    "empty_like": [call(X), call(X, dtype=torch.int32)],
    "new_empty": [call(X, [2]), call(X, [2], dtype=torch.int32)],
    "fill.Scalar": [call(X, 2)],
    "zero": [call(X)],
    "copy": [call(X, i(3, 1))],
    # losses
    **{
        name: [call(X, X + f(2, 3, 4), reduction) for reduction in range(3)]
        for name in ("mse_loss", "l1_loss")
    },
    "smooth_l1_loss": [
        *(call(X, X + f(2, 3, 4), reduction) for reduction in range(3)),
        call(X, X * 2, 1, 0.3),
        call(X, X * 2, 1, 0.0),
    ],
    "huber_loss": [*(call(X, X + f(2, 3, 4), reduction) for reduction in range(3)), call(X, X * 2, 1, 0.3)],
    "binary_cross_entropy_with_logits": [
        *(call(X, f(2, 3, 4, low=0, high=1), None, None, reduction) for reduction in range(3)),
        call(X, f(2, 3, 4, low=0, high=1), f(4), f(4, low=0)),
    ],
    "cross_entropy_loss": [
        *(call(f(4, 5), i(4), None, reduction) for reduction in range(3)),
        call(f(4, 5), torch.tensor([1, -100, 3, -100])),
        call(f(2, 5, 3), i(2, 3), None, 1, 2),
        call(f(4, 5), i(4), POSITIVE.reshape(-1)[:5]),
        call(f(4, 5), i(4), None, 1, -100, 0.1),
        call(f(4, 5), f(4, 5)),
        call(f(5), torch.tensor(2)),
    ],
    **{
        name: [
            *(call(-POSITIVE.T, torch.tensor([0, 1, 1]), None, reduction) for reduction in range(3)),
            call(-POSITIVE.T, torch.tensor([0, -100, 1])),
            call(-POSITIVE.T, torch.tensor([0, 0, 1]), None, 1, 0),
            call(-POSITIVE.T, torch.tensor([0, 1, 1]), f(2)),
            call(f(5), torch.tensor(2)),
        ]
        for name in ("nll_loss", "nll_loss_nd")
    },
    "kl_div": [
        *(call(X, f(2, 3, 4, low=0, high=1), reduction) for reduction in range(3)),
        call(X, torch.zeros(2, 3, 4)),
        call(X, X + 1, log_target=True),
    ],
    # transforms
    **{
        name: [call(X), call(X, 3, 1, "ortho"), call(X, 6, norm="forward")]
        for name in ("fft_fft", "fft_ifft", "fft_rfft")
    },
    "fft_irfft": [call(c(3, 4)), call(c(3, 4), 5, 0, "ortho")],
    "fft_fft2": [call(X), call(X, [2, 5], [0, 1], "ortho")],
    "fft_rfft2": [call(X), call(X, [2, 5], [0, 1], "ortho")],
    "fft_irfft2": [call(c(3, 4)), call(c(3, 4), [2, 5], [1, 0], "ortho")],
    # random numbers, values of the run
    **{name: [call([2, 3]), call([2], dtype=torch.float64)] for name in ("rand", "randn")},
    **{name: [call(X), call(X, dtype=torch.float64)] for name in ("rand_like", "randn_like")},
    **{name: [call(f(1)), call(i(1))] for name in ("item", "_local_scalar_dense")},
    "is_nonzero": [call(b(1))],
    # known to be missing
    "adaptive_max_pool2d": [],
    "im2col": [
        call(IMAGE, [2, 3], [1, 1], [0, 0], [1, 1]),
        call(IMAGE, [2, 2], [2, 1], [1, 0], [1, 2]),
        call(IMAGE[0], [2, 2], [1, 1], [0, 0], [1, 1]),
    ],
    "grid_sampler": [
        *(
            call(PICTURE, f(1, 3, 3, 2) * 0.6, mode, padding, corners)
            for mode in (0, 1)
            for padding in (0, 1, 2)
            for corners in (False, True)
        ),
        call(f(1, 2, 3, 4, 5), f(1, 2, 2, 2, 3), 0, 0, False),
    ],
    "lstm.input": [],
    "gru.input": [],
    "cdist": [],
}
CASES = {name: [*calls, *EDGES.get(name, ())] for name, calls in PLAIN.items()}
"""Name -> (positional arguments, keywords) of calls. Those that a condition of the row refuses are among them."""
RANDOM = ("rand", "randn", "rand_like", "randn_like", "empty.memory_format", "empty_like", "new_empty")
"""Operators whose values are no function of the arguments: shapes and dtypes are compared."""
INDICES = ("topk",)
"""Operators whose indices may have 32 bits elsewhere."""
LOSE_NAN = ("relu", "clamp", "clamp_min", "clamp_max", "softshrink", "threshold", "grid_sampler")
"""Operators in whose place MindSpore's CPU makes numbers of NaN, as their rows say."""
