"""Calls of each operator in the table of corresponding functions, with other arguments than the defaults."""

import torch

INF = float("inf")
NAN = float("nan")


def f(*shape, low=-2.0, high=2.0):
    """Return numbers between two others."""
    return torch.rand(shape, generator=SEED) * (high - low) + low


def i(*shape, low=0, high=5, dtype=torch.int64):
    return torch.randint(low, high, shape, generator=SEED).to(dtype)


def b(*shape):
    return torch.rand(shape, generator=SEED) > 0.5


def c(*shape):
    return torch.complex(f(*shape), f(*shape))


def distinct(*shape):
    """Return numbers of which no two are equal, in any order."""
    n = int(torch.tensor(shape).prod())
    return (torch.randperm(n, generator=SEED).reshape(shape) - n / 2.0) / 3


def call(*args, **keywords):
    return args, keywords


SEED = torch.Generator().manual_seed(0)
X = f(2, 3, 4)
POSITIVE = f(2, 3, low=0.2, high=3.0)
UNIT = f(2, 3, low=-0.9, high=0.9)
SPECIAL = torch.tensor([1.0, -2.5, INF, -INF, NAN, 0.0])
IMAGE = f(2, 4, 6, 6)
PICTURE = f(1, 2, 4, 6)

CASES = {
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
        for name in "neg abs exp exp2 expm1 square sin cos tan atan sinh cosh asinh erf erfc tanh floor ceil round trunc frac sign".split()
    },
    **{
        name: [call(POSITIVE)] for name in "log log2 log10 log1p sqrt rsqrt reciprocal lgamma digamma".split()
    },
    **{name: [call(UNIT)] for name in "asin acos atanh erfinv".split()},
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
    **{f"{name}.Tensor": [call(i(9), i(9)), call(SPECIAL, SPECIAL)] for name in "eq ne lt le gt ge".split()},
    **{f"{name}.Scalar": [call(i(9), 2), call(X, 0.1)] for name in "eq ne lt le gt ge".split()},
    **{
        name: [call(b(5), b(5)), call(i(5, high=2), i(5, high=2))]
        for name in ("logical_and", "logical_or", "logical_xor")
    },
    "logical_not": [call(b(5)), call(i(5, high=2))],
    **{
        f"{name}.Tensor": [call(b(5), b(5)), call(i(5), i(5))]
        for name in "bitwise_and bitwise_or bitwise_xor __and__ __or__ __xor__".split()
    },
    **{
        f"{name}.Scalar": [call(i(5), 3)]
        for name in "bitwise_and bitwise_or bitwise_xor __and__ __or__ __xor__".split()
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
    "adaptive_avg_pool1d": [call(f(2, 4, 8), 2), call(f(2, 4, 8), 1), call(f(2, 4, 8), 3)],
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
        call(PICTURE, None, [1.5, 2.0]),
    ],
    "upsample_nearest3d.vec": [call(f(1, 2, 3, 2, 3), None, [2.0, 1.0, 2.0])],
    "_upsample_nearest_exact1d.vec": [call(f(1, 2, 4), [8], None), call(f(1, 2, 4), [6], None)],
    "_upsample_nearest_exact2d.vec": [call(PICTURE, None, [2.0, 3.0]), call(PICTURE, [5, 6], None)],
    "upsample_linear1d.vec": [call(f(1, 2, 4), [7], False, None), call(f(1, 2, 4), [7], True, None)],
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
    "upsample_trilinear3d.vec": [call(f(1, 2, 3, 4, 3), [5, 6, 6], False, None)],
    "upsample_bicubic2d.vec": [call(PICTURE, [7, 9], False, None)],
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
    "rms_norm": [call(X, [4], f(4)), call(X, [3, 4], None, 0.1)],
    **{
        name: [call(X, 0.5, False), call(X, 0.0, True), call(X, 0.5, True)]
        for name in ("dropout", "feature_dropout", "alpha_dropout")
    },
    "cosine_similarity": [call(X, X + 1), call(X, f(4), -1, 0.5), call(X * 0, X)],
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
    "narrow": [call(X, -1, 1, 2)],
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
        for name in "contiguous alias lift_fresh lift_fresh_copy clone resolve_conj resolve_neg detach".split()
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
    ],
    "lstm.input": [],
    "gru.input": [],
    "cdist": [],
}
"""Name -> (positional arguments, keywords) of calls. Those that a condition of the row refuses are among them."""
RANDOM = ("rand", "randn", "rand_like", "randn_like", "empty.memory_format", "empty_like", "new_empty")
"""Operators whose values are no function of the arguments: shapes and dtypes are compared."""
INDICES = ("topk",)
"""Operators whose indices may have 32 bits elsewhere."""
LOSE_NAN = ("relu", "clamp", "clamp_min", "clamp_max")
"""Operators in whose place MindSpore's CPU makes numbers of NaN, as their rows say."""
