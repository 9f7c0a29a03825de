"""Calls of operators that compute: the first part of the cases of the table of corresponding functions."""

import torch

from corresponding_samples import (
    IMAGE,
    INF,
    PICTURE,
    POSITIVE,
    SPECIAL,
    UNIT,
    X,
    b,
    c,
    call,
    distinct,
    f,
    i,
)

COMPUTING = {
    # activations
    "relu": [call(X), call(SPECIAL)],
    "relu6": [call(X * 5)],
    "leaky_relu": [call(X), call(X, 0.3)],
    "elu": [call(X), call(X, 0.5), call(X, 1.2, 1.1, 0.7)],
    "selu": [call(X)],
    "celu": [call(X), call(X, 0.5)],
    "gelu": [call(X), call(X, approximate="tanh")],
    "silu": [call(X)],
    "mish": [call(X)],
    "hardswish": [call(X * 3)],
    "hardsigmoid": [call(X * 3)],
    "hardtanh": [call(X), call(X, -0.5, 0.25)],
    "softplus": [call(X), call(X * 20, 2.0, 10.0)],
    "sigmoid": [call(X)],
    "log_sigmoid": [call(X)],
    "tanh": [call(X)],
    "prelu": [call(X, f(3)), call(X, f(1)), call(f(4), f(1))],
    "threshold": [call(X, 0.5, -7.0)],
    "glu": [call(X), call(IMAGE, 1)],
    "hardshrink": [call(X), call(X, 1.0)],
    "softshrink": [call(X), call(X, 1.0)],
    "softmax.int": [call(X, 1), call(X, -1), call(X, 0, torch.float64)],
    "log_softmax.int": [call(X, 1), call(X, -1), call(X, 0, torch.float64)],
    # arithmetic
    **{f"{name}.Tensor": [call(X, f(3, 1)), call(X, X, alpha=2.5)] for name in ("add", "sub", "rsub")},
    **{f"{name}.Scalar": [call(X, 1.5), call(X, 2.0, 3.0), call(i(3), 2)] for name in ("add", "sub", "rsub")},
    "mul.Tensor": [call(X, f(3, 1)), call(i(3), i(3))],
    "mul.Scalar": [call(X, 1.5)],
    "div.Tensor": [call(X, f(3, 1))],
    "div.Scalar": [call(X, 1.5)],
    "div.Tensor_mode": [call(X, f(4), rounding_mode=mode) for mode in (None, "floor", "trunc")],
    "div.Scalar_mode": [call(X, 0.7, rounding_mode=mode) for mode in (None, "floor", "trunc")],
    "floor_divide": [call(X, f(4)), call(i(5, low=-9), i(5, low=2))],
    "floor_divide.Scalar": [call(X, 0.7)],
    "remainder.Tensor": [call(X, f(4)), call(i(5, low=-9), i(5, low=2))],
    "remainder.Scalar": [call(X, -0.7)],
    "fmod.Tensor": [call(X, f(4))],
    "fmod.Scalar": [call(X, 0.7)],
    "pow.Tensor_Scalar": [call(X, 3), call(POSITIVE, 0.5)],
    "pow.Tensor_Tensor": [call(POSITIVE, f(3))],
    "pow.Scalar": [call(2.0, X)],
    **{
        name: [call(X)]
        for name in [
            "neg",
            "abs",
            "exp",
            "exp2",
            "expm1",
            "square",
            "sin",
            "cos",
            "tan",
            "atan",
            "sinh",
            "cosh",
            "asinh",
            "erf",
            "erfc",
            "tanh",
            "floor",
            "ceil",
            "round",
            "trunc",
            "frac",
            "sign",
        ]
    },
    **{
        name: [call(POSITIVE)]
        for name in ["log", "log2", "log10", "log1p", "sqrt", "rsqrt", "reciprocal", "lgamma", "digamma"]
    },
    **{name: [call(UNIT)] for name in ["asin", "acos", "atanh", "erfinv"]},
    "acosh": [call(POSITIVE + 1)],
    "atan2": [call(X, f(4))],
    "sgn": [call(X), call(c(3))],
    "round.decimals": [call(X, decimals=2)],
    "clamp": [
        call(SPECIAL, -1, 0.5),
        call(X, -1, 0.5),
        call(X, 0.25),
        call(X, None, 0.25),
        call(X, 1.0, -1.0),
    ],
    "clamp.Tensor": [call(X, f(4), f(4)), call(X, f(4)), call(X, None, f(4))],
    "clamp_min": [call(X, 0.3), call(SPECIAL, 0.3)],
    "clamp_max": [call(X, 0.3), call(SPECIAL, 0.3)],
    **{
        name: [call(X, f(4)), call(SPECIAL, torch.zeros(6))]
        for name in ("maximum", "minimum", "max.other", "min.other", "fmax", "fmin")
    },
    "logaddexp": [call(X, f(4))],
    "where.self": [call(b(3, 1), X, f(4))],
    "where.ScalarOther": [call(b(3, 4), X, 0.5)],
    "where.ScalarSelf": [call(b(3, 4), 0.5, X)],
    "lerp.Scalar": [call(X, f(4), 0.3)],
    "lerp.Tensor": [call(X, f(4), f(4))],
    "addcmul": [call(X, f(4), f(4)), call(X, f(4), f(4), value=0.3)],
    "addcdiv": [call(X, f(4), POSITIVE[0, :1]), call(X, f(4), f(4), value=0.3)],
    **{name: [call(SPECIAL)] for name in ("isnan", "isinf", "isfinite")},
    "nan_to_num": [call(SPECIAL), call(SPECIAL, 2.0, 3.0, -4.0)],
    **{
        f"{name}.Tensor": [call(i(9), i(9)), call(SPECIAL, SPECIAL)]
        for name in ["eq", "ne", "lt", "le", "gt", "ge"]
    },
    **{f"{name}.Scalar": [call(i(9), 2), call(X, 0.1)] for name in ["eq", "ne", "lt", "le", "gt", "ge"]},
    **{
        name: [call(b(5), b(5)), call(i(5, high=2), i(5, high=2))]
        for name in ("logical_and", "logical_or", "logical_xor")
    },
    "logical_not": [call(b(5)), call(i(5, high=2))],
    **{
        f"{name}.Tensor": [call(b(5), b(5)), call(i(5), i(5))]
        for name in ["bitwise_and", "bitwise_or", "bitwise_xor", "__and__", "__or__", "__xor__"]
    },
    **{
        f"{name}.Scalar": [call(i(5), 3)]
        for name in ["bitwise_and", "bitwise_or", "bitwise_xor", "__and__", "__or__", "__xor__"]
    },
    "bitwise_not": [call(b(5)), call(i(5))],
    "complex": [call(X, X + 1)],
    "real": [call(c(3))],
    "imag": [call(c(3))],
    "angle": [call(c(3))],
    "polar": [call(POSITIVE, POSITIVE)],
    "view_as_real": [call(c(3))],
    "view_as_complex": [call(f(3, 2))],
    # reductions
    "sum": [call(X), call(i(4)), call(b(4)), call(i(4, dtype=torch.int32)), call(X, dtype=torch.float64)],
    "sum.dim_IntList": [
        call(X, [1]),
        call(X, [0, -1], True),
        call(X, None),
        call(X, [], True),
        call(X, [1], dtype=torch.float64),
    ],
    "mean": [call(X), call(X, dtype=torch.float64)],
    "mean.dim": [call(X, [1]), call(X, [0, -1], True), call(X, None), call(X, [1], dtype=torch.float64)],
    "prod": [call(X), call(i(3)), call(i(3, dtype=torch.int32))],
    "prod.dim_int": [call(X, 1), call(X, -1, True), call(X, 1, dtype=torch.float64)],
    **{name: [call(X), call(i(4))] for name in ("max", "min")},
    **{name: [call(distinct(3, 4), 1), call(distinct(3, 4), -2, True)] for name in ("max.dim", "min.dim")},
    **{name: [call(X), call(X, [1]), call(X, [0, -1], True)] for name in ("amax", "amin")},
    **{
        name: [call(distinct(3, 4)), call(distinct(3, 4), 1), call(distinct(3, 4), -2, True)]
        for name in ("argmax", "argmin")
    },
    **{
        name: [call(X), call(X, [1], correction=0), call(X, [0, -1], correction=2, keepdim=True)]
        for name in ("var.correction", "std.correction", "var_mean.correction")
    },
    **{name: [call(X, [1]), call(X, [0, -1], False, True), call(X, None)] for name in ("var.dim", "std.dim")},
    **{name: [call(X), call(X, False)] for name in ("var", "std")},
    **{name: [call(b(5)), call(i(5, high=2, dtype=torch.uint8))] for name in ("any", "all")},
    **{
        name: [call(b(3, 4), 1), call(b(3, 4), -2, True), call(i(3, 4, dtype=torch.uint8), 1)]
        for name in ("any.dim", "all.dim")
    },
    "logsumexp": [call(X, [1]), call(X, [0, -1], True)],
    "linalg_vector_norm": [
        call(X),
        call(X, 1, [1]),
        call(X, INF, [0, -1], True),
        call(X, dtype=torch.float64),
    ],
    "norm.ScalarOpt_dim": [call(X, 2, [1]), call(X, None, [-1], True), call(X, 1, [0])],
    **{
        name: [call(X, 1), call(X, -1, dtype=torch.float64), call(i(5, dtype=torch.int32), 0)]
        for name in ("cumsum", "cumprod")
    },
    "logcumsumexp": [call(X, 1), call(X, -1)],
    "count_nonzero": [call(i(3, 4)), call(i(3, 4), 1)],
    "aminmax": [call(X), call(X, dim=1), call(X, dim=-1, keepdim=True)],
    "median": [call(distinct(7)), call(distinct(2, 4))],
    # products
    "matmul": [call(X, f(4, 5)), call(f(4), f(4)), call(X, f(4)), call(f(3), X)],
    "mm": [call(f(2, 3), f(3, 4))],
    "bmm": [call(X, f(2, 4, 5))],
    "mv": [call(f(2, 3), f(3))],
    "dot": [call(f(3), f(3))],
    "addmm": [
        call(f(4), f(2, 3), f(3, 4)),
        call(f(2, 4), f(2, 3), f(3, 4), beta=0.5, alpha=2.0),
        call(f(4), f(2, 3), f(3, 4), beta=0),
    ],
    "baddbmm": [
        call(f(4), X, f(2, 4, 4)),
        call(f(4), X, f(2, 4, 4), beta=0.5, alpha=2.0),
        call(f(4), X, f(2, 4, 4), beta=0),
    ],
    "linear": [call(X, f(5, 4)), call(X, f(5, 4), f(5)), call(f(4), f(5, 4), f(5))],
    "einsum": [call("bij,bkj->bik", [X, f(2, 5, 4)])],
    "outer": [call(f(3), f(4))],
    "kron": [call(f(2, 3), f(3, 2))],
    "trace": [call(f(3, 4))],
    "linalg_cross": [call(f(2, 3), f(2, 3)), call(f(3, 2), f(3, 2), dim=0)],
    "linalg_inv": [call(f(2, 3, 3) + 4 * torch.eye(3))],
    "linalg_det": [call(f(2, 3, 3))],
    "linalg_cholesky": [call(torch.eye(3) + 0.1), call(torch.eye(3) + 0.1, upper=True)],
    "linalg_solve": [
        call(f(3, 3) + 4 * torch.eye(3), f(3)),
        call(f(2, 3, 3) + 4 * torch.eye(3), f(2, 3, 2)),
        call(f(3, 3) + 4 * torch.eye(3), f(2, 3), left=False),
    ],
    "scaled_dot_product_attention": [
        call(f(2, 2, 3, 4), f(2, 2, 5, 4), f(2, 2, 5, 4)),
        call(f(2, 2, 3, 4), f(2, 2, 5, 4), f(2, 2, 5, 4), f(3, 5), scale=0.3),
        call(f(2, 2, 3, 4), f(2, 2, 5, 4), f(2, 2, 5, 4), torch.ones(2, 1, 3, 5, dtype=torch.bool).tril(1)),
        call(f(2, 2, 3, 4), f(2, 2, 5, 4), f(2, 2, 5, 4), is_causal=True),
        call(f(2, 4, 3, 4), f(2, 2, 5, 4), f(2, 2, 5, 4), enable_gqa=True),
        call(f(2, 3, 4), f(2, 5, 4), f(2, 5, 4)),
        call(f(2, 2, 3, 4), f(2, 2, 5, 4), f(2, 2, 5, 6)),
        call(f(2, 2, 3, 4), f(2, 2, 5, 4), f(2, 2, 5, 4), None, 0.5),
    ],
    # convolutions and pools
    "conv1d": [
        call(f(2, 4, 8), f(3, 4, 3), f(3)),
        call(f(2, 4, 8), f(4, 2, 3), None, [2], [1], [2], 2),
        call(f(4, 8), f(3, 4, 3)),
    ],
    "conv2d": [
        call(IMAGE, f(3, 4, 3, 2), f(3)),
        call(IMAGE, f(4, 2, 3, 2), None, [2, 1], [1, 2], [1, 2], 2),
        call(IMAGE[0], f(3, 4, 3, 2)),
    ],
    "conv3d": [call(f(1, 2, 4, 4, 4), f(3, 2, 2, 3, 2), f(3), [1, 2, 1], [1, 0, 2])],
    "conv1d.padding": [call(f(2, 4, 8), f(3, 4, 2), f(3), [1], "same", [2])],
    "conv2d.padding": [
        call(IMAGE, f(3, 4, 3, 2), f(3), [2, 1], "valid", [1, 2]),
        call(IMAGE, f(4, 2, 4, 3), None, [1, 1], "same", [1, 1], 2),
        call(IMAGE[0], f(3, 4, 3, 2)),
    ],
    "conv_transpose1d": [
        call(f(2, 4, 5), f(4, 3, 3), f(3), [2], [1], [1]),
        call(f(2, 4, 5), f(4, 3, 3), None, [1], [0], [0], 2),
    ],
    "conv_transpose2d.input": [
        call(IMAGE, f(4, 3, 3, 2), f(3)),
        call(IMAGE, f(4, 3, 3, 2), None, [2, 3], [1, 0], [1, 2], 1, [2, 1]),
        call(IMAGE[0], f(4, 3, 3, 2)),
        call(IMAGE, f(4, 2, 3, 2), groups=2),
    ],
    "conv3d.padding": [call(f(1, 2, 4, 4, 4), f(3, 2, 2, 3, 2), None, [1, 1, 1], "same")],
    "conv_transpose3d.input": [call(f(1, 2, 3, 3, 3), f(2, 3, 2, 3, 2), f(3), [1, 2, 1], [1, 0, 1])],
    "max_pool1d": [call(f(2, 4, 8), 2), call(f(4, 8), 3, 2, 1, 2)],
    "max_pool2d": [
        call(IMAGE, [2, 3]),
        call(IMAGE, [3, 3], [2, 1], [1, 0], [1, 2]),
        call(IMAGE, 3, 2, 1, 1, True),
        call(IMAGE[0], 2),
        call(i(1, 1, 4, 4), 2),
    ],
    "max_pool3d": [call(f(1, 2, 4, 4, 4), 2, 1, 1)],
    "max_pool2d_with_indices": [
        call(IMAGE, [2, 3]),
        call(IMAGE, 2, 2, 0, 2),
        call(IMAGE, 3, 2, 1, 1, True),
        call(IMAGE[0], 2),
    ],
    "avg_pool1d": [call(f(2, 4, 8), 2), call(f(4, 8), 3, 2, 1)],
    "avg_pool2d": [
        call(IMAGE, [2, 3]),
        call(IMAGE, 3, [2, 1], [1, 1]),
        call(IMAGE, 3, 2, 1, False, False),
        call(IMAGE, 3, 2, 1, False, False, 5),
        call(IMAGE, 3, 2, 1, True),
        call(IMAGE[0], 2),
    ],
    "avg_pool3d": [call(f(1, 2, 4, 4, 4), 2, 1, 1)],
    "adaptive_avg_pool1d": [
        call(f(2, 4, 8), 2),
        call(f(2, 4, 3), 7),
        call(f(2, 4, 8), 1),
        call(f(2, 4, 8), 3),
    ],
    **{
        name: [call(IMAGE, [1, 1]), call(IMAGE, [3, 2]), call(IMAGE, [4, 3]), call(IMAGE[0], [2, 3])]
        for name in ("adaptive_avg_pool2d", "_adaptive_avg_pool2d")
    },
    "pixel_shuffle": [call(f(2, 8, 3, 2), 2)],
    "pixel_unshuffle": [call(IMAGE, 2)],
    "upsample_nearest1d.vec": [call(f(1, 2, 4), [8], None), call(f(1, 2, 4), None, [1.5])],
    "upsample_nearest2d.vec": [
        call(PICTURE, [8, 18], None),
        call(PICTURE, None, [2.0, 3.0]),
        call(PICTURE, [5, 6], None),
        call(PICTURE, [3, 7], None),
        call(PICTURE, None, [1.5, 2.0]),
        call(PICTURE, None, [1.7, 0.7]),
    ],
    "upsample_nearest3d.vec": [call(f(1, 2, 3, 2, 3), None, [2.0, 1.0, 2.0])],
    "_upsample_nearest_exact1d.vec": [
        call(f(1, 2, 4), [8], None),
        call(f(1, 2, 4), [6], None),
        call(f(1, 2, 4), None, [1.3]),
    ],
    "_upsample_nearest_exact2d.vec": [call(PICTURE, None, [2.0, 3.0]), call(PICTURE, [5, 6], None)],
    "upsample_linear1d.vec": [
        call(f(1, 2, 4), [7], False, None),
        call(f(1, 2, 4), [7], True, None),
        call(f(1, 2, 4), None, False, [1.3]),
    ],
    "upsample_bilinear2d.vec": [
        call(PICTURE, [7, 9], False, None),
        call(PICTURE, [7, 9], True, None),
        call(PICTURE, [3, 4], False, None),
        call(PICTURE, [3, 4], True, None),
        call(PICTURE, None, False, [2.0, 1.5]),
        call(PICTURE, None, True, [2.0, 1.5]),
        call(PICTURE, None, False, [1.3, 1.5]),
        call(PICTURE, [1, 5], True, None),
    ],
    "upsample_trilinear3d.vec": [
        call(f(1, 2, 3, 4, 3), [5, 6, 6], False, None),
        call(f(1, 2, 3, 4, 3), None, False, [1.3, 1, 2]),
    ],
    "upsample_bicubic2d.vec": [
        call(PICTURE, [7, 9], False, None),
        call(PICTURE, [7, 9], True, None),
        call(PICTURE, [3, 1], True, None),
        call(PICTURE, None, False, [1.5, 1.3]),
    ],
    # norms
    "batch_norm": [
        call(IMAGE, f(4), f(4), f(4), POSITIVE.reshape(-1)[:4], False, 0.1, 1e-5, True),
        call(X, None, None, f(3), POSITIVE[0], False, 0.1, 0.1, True),
        call(X, None, None, f(3), POSITIVE[0], True, 0.1, 0.1, True),
    ],
    "layer_norm": [call(X, [4], f(4), f(4)), call(X, [3, 4], None, None, 0.1), call(X, [4], f(4))],
    "group_norm": [call(IMAGE, 2, f(4), f(4)), call(f(2, 4), 2, None, None, 0.1)],
    "instance_norm": [
        call(IMAGE, f(4), f(4), None, None, True, 0.1, 1e-5, True),
        call(IMAGE, None, None, f(4), POSITIVE.reshape(-1)[:4], False, 0.1, 1e-2, True),
    ],
    "rms_norm": [call(X, [4], f(4)), call(X.double(), [4]), call(X, [3, 4], None, 0.1)],
    **{
        name: [call(X, 0.5, False), call(X, 0.0, True), call(X, 0.5, True)]
        for name in ("dropout", "feature_dropout", "alpha_dropout")
    },
    "cosine_similarity": [call(X, X + 1), call(X, f(4), -1, 0.5), call(X * 0, X)],
}
