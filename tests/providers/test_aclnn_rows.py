"""Every aclnn operator on whole tensors against NumPy or PyTorch: values, layouts, dtypes, namespaces."""

import array_api_compat.torch as xp
import numpy as np
import pytest
import torch
import torch.nn.functional as F

from polyop.providers.aclnn import evaluate, launch
from polyop.providers.aclnn.registry import builtin
from polyop.providers.aclnn.tables import activation, indexing, linear, normalisation, reduction, shape

random = np.random.default_rng(0)


def f(*size):
    return random.uniform(-2, 2, size).astype(np.float32)


def t(function, *arrays, **keywords):
    """Call a PyTorch function on arrays; return NumPy arrays."""
    tensors = [torch.tensor(a) if isinstance(a, np.ndarray) else a for a in arrays]
    result = function(*tensors, **keywords)
    return [x.numpy() for x in result] if isinstance(result, (tuple, list)) else result.numpy()


def at(x, grad, function):
    """The input's gradient of a function of PyTorch."""
    leaf = torch.tensor(x, requires_grad=True)
    function(leaf).backward(torch.tensor(grad))
    return leaf.grad.numpy()


def i64(*values):
    return np.array(values, np.int64)


X, Y, V, W = f(3, 4), f(3, 4), f(4), f(3)
A, B, C = f(2, 3, 4), f(2, 4, 5), f(2, 3, 5)
N = random.permutation(24).reshape(4, 6).astype(np.int32)  # no two are equal
T = (N / 4 - 3).astype(np.float32)
INF, NAN = float("inf"), float("nan")
BAD = np.array([[1, NAN, 2], [INF, 3, -1]], np.float32)
F32, I64 = "float32", "int64"
none = []

REDUCTION = {
    "ReduceSum": [(X, none, False, F32, X.sum()), (A, [0, -1], True, F32, A.sum((0, 2), keepdims=True)),
                  (N, [1], False, I64, N.sum(1, dtype=np.int64)), (np.float32(3), none, False, F32, np.float32(3)),
                  (np.zeros((0, 3), np.float32), [0], False, F32, np.zeros(3, np.float32))],
    "ReduceNansum": [(BAD, [1], False, F32, np.nansum(BAD, 1)), (X, none, False, F32, X.sum())],
    "Mean": [(A, [1], False, F32, A.mean(1)), (A, none, True, F32, A.mean(keepdims=True)),
             (np.zeros((0, 2), np.float32), [0], False, F32, np.full(2, NAN, np.float32))],
    "MeanV2": [(A, [0, 2], False, False, A.mean((0, 2))), (X, none, False, True, X), (X, none, False, False, X.mean())],
    "Prod": [(X, F32, X.prod()), (np.int32([[2, 3]]), I64, np.int64(6))],
    "ProdDim": [(X, 1, True, F32, X.prod(1, keepdims=True)), (X, -2, False, F32, X.prod(0))],
    "Amax": [(A, [0, 1], False, A.max((0, 1))), (N, none, True, N.max(keepdims=True)), (BAD, [1], False, BAD.max(1))],
    "Amin": [(A, [-1], True, A.min(-1, keepdims=True)), (N, [0], False, N.min(0))],
    "Aminmax": [(A, [1], False, A.min(1), A.max(1))],
    "Max": [(A, A.max()), (N, N.max())],
    "Min": [(A, A.min()), (BAD, BAD.min())],
    "MaxDim": [(T, 1, False, T.max(1), T.argmax(1)), (T, 0, True, *t(torch.max, T, 0, keepdim=True)),
               (np.float32(2), 0, False, np.float32(2), np.int64(0))],
    "MinDim": [(T, -1, True, *t(torch.min, T, -1, keepdim=True)), (N, 0, False, N.min(0), N.argmin(0))],
    "ArgMax": [(T, 0, False, T.argmax(0)), (T, -1, True, T.argmax(-1, keepdims=True))],
    "ArgMin": [(N, 1, False, N.argmin(1)), (N, 0, True, N.argmin(0, keepdims=True).astype(np.int32))],
    "All": [(X > -1, [1], False, (X > -1).all(1)), (N, none, False, N.all())],
    "Any": [(X > 1, [0], True, (X > 1).any(0, keepdims=True)), (BAD, none, False, np.array(True))],
    "Var": [(A, [1], True, False, A.var(1, ddof=1)), (A, none, False, True, A.var(keepdims=True)),
            (f(1, 3)[:, :1], [0], True, False, np.full(1, NAN, np.float32))],
    "VarCorrection": [(A, [0, 2], 2, False, A.var((0, 2), ddof=2))],
    "VarMean": [(A, [1], 1, True, A.var(1, ddof=1, keepdims=True), A.mean(1, keepdims=True))],
    "Std": [(A, [1], 1, False, A.std(1, ddof=1)), (A, none, 0, False, A.std())],
    "StdMeanCorrection": [(A, [2], 0, False, A.std(2), A.mean(2))],
    "LogSumExp": [(A, [1], False, t(torch.logsumexp, A, 1)), (A * 90, [0, 1], True, t(torch.logsumexp, A * 90, (0, 1), keepdim=True)),
                  (np.full((2, 2), -INF, np.float32), [0], False, np.full(2, -INF, np.float32))],
    "Norm": [(X, 2.0, none, False, np.sqrt((X * X).sum())), (X, 1, [1], True, np.abs(X).sum(1, keepdims=True)),
             (X, INF, [0], False, np.abs(X).max(0)), (A, 3, [0, 2], False, t(torch.linalg.vector_norm, A, 3, (0, 2)))],
    "LinalgVectorNorm": [(X, 2.0, [1], False, F32, np.linalg.norm(X, axis=1)), (X, 0, none, False, F32, np.float32(12))],
    "Cumsum": [(X, 1, F32, X.cumsum(1)), (N, -2, I64, N.cumsum(0, dtype=np.int64)), (np.float32(2), 0, F32, np.float32(2))],
    "CumsumV2": [(X, 0, False, False, X.cumsum(0)), (X, 1, True, False, X.cumsum(1) - X),
                 (X, 1, False, True, X[:, ::-1].cumsum(1)[:, ::-1]), (X, 1, True, True, X[:, ::-1].cumsum(1)[:, ::-1] - X)],
    "Cumprod": [(X, 1, F32, X.cumprod(1)), (N[:2, :2], 0, I64, N[:2, :2].cumprod(0, dtype=np.int64))],
}  # fmt: skip
LINEAR = {
    "Mm": [(X, Y.T, 0, X @ Y.T), (np.zeros((2, 0), np.float32), np.zeros((0, 3), np.float32), 0, np.zeros((2, 3), np.float32))],
    "Matmul": [(A, B, 1, A @ B), (X, V, 0, X @ V), (V, V, 0, V @ V), (X, B, 0, X @ B), (N, N.T, 0, N @ N.T)],
    "BatchMatMul": [(A, B, 0, A @ B)],
    "Mv": [(X, V, 0, X @ V)],
    "Dot": [(V, X[0], V @ X[0])],
    "Ger": [(W, V, np.outer(W, V))],
    "Addmm": [(f(3), X, Y.T, 2, 0.5, 0, None), (f(3, 3), X, Y.T, 0, 1, 0, X @ Y.T)],
    "Baddbmm": [(C, A, B, 0.5, 2, 0, 2 * (A @ B) + 0.5 * C)],
    "Addbmm": [(C[0], A, B, 1, 1, 0, C[0] + (A @ B).sum(0))],
    "Addmv": [(W, X, V, 3, 2, 0, 2 * W + 3 * (X @ V))],
    "Addr": [(X, W, V, 0.5, 2, 0.5 * X + 2 * np.outer(W, V))],
    "Einsum": [([A, B], "bij,bjk->ik", np.einsum("bij,bjk->ik", A, B)), ([X], "ij->ji", X.T)],
}  # fmt: skip
LINEAR["Addmm"][0] = (*LINEAR["Addmm"][0][:-1], 2 * LINEAR["Addmm"][0][0] + 0.5 * (X @ Y.T))

S = 1 / (1 + np.exp(-X))
P = S / S.sum(1, keepdims=True)
GATED = f(3, 8)
ACTIVATION = {
    "Relu": [(X, np.maximum(X, 0)), (np.zeros((0,), np.float32), np.zeros(0, np.float32)), (np.int32([-2, 3]), np.int32([0, 3]))],
    "Gelu": [(X, t(F.gelu, X, approximate="tanh"))],
    "GeluV2": [(X, 0, t(F.gelu, X)), (X, 1, t(F.gelu, X, approximate="tanh"))],
    "Silu": [(X, t(F.silu, X)), (BAD * 100, t(F.silu, BAD * 100))],
    "Swish": [(X, None, t(F.silu, X)), (X, 2.0, X * t(torch.sigmoid, 2 * X))],
    "Mish": [(X * 20, t(F.mish, X * 20))],
    "Hardswish": [(X * 3, t(F.hardswish, X * 3))],
    "Hardsigmoid": [(X * 3, t(F.hardsigmoid, X * 3))],
    "Selu": [(X, t(F.selu, X))],
    "LogSigmoid": [(X * 50, t(F.logsigmoid, X * 50))],
    "LeakyRelu": [(X, 0.1, t(F.leaky_relu, X, 0.1))],
    "Elu": [(X, 1.5, 1, 1, t(F.elu, X, 1.5)), (X, 1, 2, 0.5, np.where(X > 0, 2 * X, 2 * np.expm1(X / 2)))],
    "Celu": [(X, 2.0, t(F.celu, X, 2.0))],
    "Softplus": [(X * 20, 2, 10, t(F.softplus, X * 20, 2, 10))],
    "Hardtanh": [(X, -1, 0.5, t(F.hardtanh, X, -1, 0.5))],
    "Hardshrink": [(X, 0.5, t(F.hardshrink, X, 0.5))],
    "Softshrink": [(X, 0.5, t(F.softshrink, X, 0.5))],
    "Threshold": [(X, 0.25, -9, t(F.threshold, X, 0.25, -9))],
    "Prelu": [(X, V, t(F.prelu, X, V)), (A, W, t(F.prelu, A, W)), (V, f(1) * 0 + 2, np.where(V > 0, V, 2 * V))],
    "Glu": [(GATED, 1, t(F.glu, GATED, 1)), (GATED[:2], 0, t(F.glu, GATED[:2], 0))],
    "SwiGlu": [(GATED, -1, t(F.silu, GATED[:, :4]) * GATED[:, 4:])],
    "Softmax": [(A * 30, 1, t(F.softmax, A * 30, 1)), (np.float32(3), 0, np.float32(1)),
                (np.zeros((0, 2), np.float32), 0, np.zeros((0, 2), np.float32))],
    "LogSoftmax": [(A * 30, -1, t(F.log_softmax, A * 30, -1)), (np.float32(3), 0, np.float32(0))],
    "SigmoidBackward": [(Y, S, at(X, Y, torch.sigmoid))],
    "TanhBackward": [(Y, np.tanh(X), at(X, Y, torch.tanh))],
    "SiluBackward": [(Y, X, at(X, Y, F.silu))],
    "GeluBackward": [(Y, X, at(X, Y, F.gelu))],
    "ThresholdBackward": [(Y, X, 0, at(X, Y, torch.relu))],
    "LeakyReluBackward": [(Y, X, 0.1, False, at(X, Y, lambda x: F.leaky_relu(x, 0.1)))],
    "SoftmaxBackward": [(Y, t(F.softmax, X, 1), 1, at(X, Y, lambda x: F.softmax(x, 1)))],
    "LogSoftmaxBackward": [(Y, t(F.log_softmax, X, 0), 0, at(X, Y, lambda x: F.log_softmax(x, 0)))],
    "MseLoss": [(X, Y, 0, (X - Y) ** 2), (X, Y, 1, ((X - Y) ** 2).mean()), (X, Y, 2, ((X - Y) ** 2).sum())],
    "L1Loss": [(X, Y, 1, np.abs(X - Y).mean())],
    "SmoothL1Loss": [(X, Y, 0, 0.5, t(F.smooth_l1_loss, X, Y, beta=0.5, reduction="none")),
                     (X, Y, 2, 0.0, t(F.smooth_l1_loss, X, Y, beta=0.0, reduction="sum"))],
    "BinaryCrossEntropy": [(P, S, None, 1, t(F.binary_cross_entropy, P, S)),
                           (P, S, V, 0, t(F.binary_cross_entropy, P, S, V.reshape(1, 4), reduction="none"))],
}  # fmt: skip
IMAGE, G4, B4 = f(2, 4, 5, 6), f(4), f(4)
MEAN, VAR = f(4), np.abs(f(4)) + 0.5
SPOT = IMAGE.mean((0, 2, 3)), IMAGE.var((0, 2, 3))
POOLS = [([3], [2], [1], False, True, 0), ([2, 3], [2, 1], [0, 1], True, False, 0),
         ([3, 2], none, [1, 1], True, True, 0), ([2], [2], [0], False, True, 3)]  # fmt: skip


def pooled(k, s, p, ceil, include, divisor):
    return t(F.avg_pool2d, IMAGE, k, s or None, p, ceil, include, divisor or None)


def rms(x, gamma, eps):
    inverse = 1 / np.sqrt((x * x).mean(-1, keepdims=True) + eps)
    return x * inverse * gamma, inverse


NORMALISATION = {
    "LayerNorm": [(A, [4], V, V * 2, 1e-5, t(F.layer_norm, A, [4], V, V * 2, 1e-5), A.mean(-1, keepdims=True),
                   1 / np.sqrt(A.var(-1, keepdims=True) + 1e-5)),
                  (A, [3, 4], None, None, 1e-5, t(F.layer_norm, A, [3, 4]), None, None)],
    "AddLayerNorm": [(X, Y, V, V * 2, None, 1e-5, True, t(F.layer_norm, X + Y, [4], V, V * 2, 1e-5),
                      (X + Y).mean(-1, keepdims=True), 1 / np.sqrt((X + Y).var(-1, keepdims=True) + 1e-5), X + Y),
                     (X, Y, V, V, G4, 1e-5, False, t(F.layer_norm, X + Y + G4, [4], V, V, 1e-5), None, None, None)],
    "RmsNorm": [(A, V, 1e-6, *rms(A, V, 1e-6))],
    "AddRmsNorm": [(X, Y, V, 1e-6, *rms(X + Y, V, 1e-6), X + Y)],
    "GroupNorm": [(IMAGE, G4, B4, 2, 4, 30, 2, 1e-5, t(F.group_norm, IMAGE, 2, G4, B4, 1e-5),
                   IMAGE.reshape(2, 2, -1).mean(-1), 1 / np.sqrt(IMAGE.reshape(2, 2, -1).var(-1) + 1e-5)),
                  (IMAGE, None, None, 2, 4, 30, 4, 1e-5, t(F.group_norm, IMAGE, 4), IMAGE.mean((2, 3)),
                   1 / np.sqrt(IMAGE.var((2, 3)) + 1e-5))],
    # inputs, running mean and variance, then what these two are afterwards
    "BatchNorm": [(IMAGE, G4, B4, MEAN, VAR, False, 0.1, 1e-5, MEAN, VAR,
                   t(F.batch_norm, IMAGE, MEAN, VAR, G4, B4), MEAN, 1 / np.sqrt(VAR + 1e-5)),
                  (IMAGE, None, None, MEAN, VAR, True, 0.25, 1e-5, 0.75 * MEAN + 0.25 * SPOT[0],
                   0.75 * VAR + 0.25 * SPOT[1] * 60 / 59, t(F.batch_norm, IMAGE, None, None, None, None, True),
                   SPOT[0], 1 / np.sqrt(SPOT[1] + 1e-5))],
    "AvgPool2d": [(IMAGE, *pool, 0, pooled(*pool)) for pool in POOLS],
}  # fmt: skip
"""A sample: the inputs of a row in order, then what each written argument must be."""

EYE = np.eye(3, dtype=np.float32)
IDS, HERE = i64(2, 0, 2), i64([0, 1, 2], [2, 0, 1]).reshape(2, 3)
UP, DOWN = np.float32(1), np.float32(0)
MASK = X[:, 0] > 0


def scattered(reduce, value=None):
    result = X.copy()
    for (i, j), k in np.ndenumerate(HERE):
        new = Y[i, j] if value is None else np.float32(value)
        result[k, j] = new if reduce == 0 else result[k, j] + new if reduce == 1 else result[k, j] * new
    return result


def put(accumulate):
    result = X.copy()
    for k, i in enumerate(IDS):
        result[i] = result[i] + Y[k] if accumulate else Y[k]
    return result


def added(alpha):
    result = X.copy()
    for k, i in enumerate(IDS):
        result[i] += np.float32(alpha) * Y[k]
    return result


INDEXING = {
    "Gather": [(X, 0, HERE, t(torch.gather, X, 0, HERE)), (X, 1, HERE, t(torch.gather, X, 1, HERE))],
    "GatherV2": [(X, 0, HERE, X[HERE]), (X, -1, IDS, X[:, IDS]), (X, 0, np.int64(1), X[1])],
    "GatherNd": [(A, i64([0, 1], [1, 2]).reshape(2, 2), False, A[[0, 1], [1, 2]])],
    "IndexSelect": [(X, 1, IDS, X[:, IDS]), (X, 0, IDS[:0], X[:0])],
    "Take": [(X, HERE, X.ravel()[HERE])],
    "Embedding": [(X, HERE, X[HERE])],
    "Index": [(A, [None, IDS], A[:, IDS]), (X, [MASK], X[MASK]), (A, [i64(0, 1), None, i64(3, 2)], A[[0, 1], :, [3, 2]])],
    "IndexPutImpl": [(X, [IDS[:2]], Y[:2], False, True, np.stack([Y[1], X[1], Y[0]])), (X, [IDS], Y, True, False, put(True))],
    "IndexAdd": [(X, 0, IDS, Y, 1, added(1)), (X, 0, IDS, Y, 0.5, added(0.5))],
    "Scatter": [(X, 0, HERE, Y, r, scattered(r)) for r in (0, 1, 2)],
    "ScatterValue": [(X, 0, HERE, 1.5, r, scattered(r, 1.5)) for r in (0, 1, 2)],
    "ScatterAdd": [(X, 0, HERE, Y, scattered(1)), (X, 1, i64(1, 1).reshape(1, 2), Y, X + np.float32([[0, Y[0, 0] + Y[0, 1], 0, 0], [0] * 4, [0] * 4]))],
    "OneHot": [(IDS, 3, UP, DOWN, -1, EYE[IDS]), (IDS, 3, UP * 5, UP, 0, (4 * EYE[IDS] + 1).T)],
    "Sort": [(T, True, 1, False, np.sort(T, 1), np.argsort(T, 1)), (T, False, 0, True, *t(torch.sort, T, 0, True)),
             (np.float32([1, 1, 0, 0]), True, 0, True, np.float32([1, 1, 0, 0]), i64(0, 1, 2, 3))],
    "Argsort": [(N, -1, False, np.argsort(N)), (N, 0, True, np.argsort(-N, 0))],
    "Topk": [(T, 2, 1, True, True, *t(torch.topk, T, 2, 1)), (T, 3, 0, False, True, *t(torch.topk, T, 3, 0, False)),
             (T, 0, 0, True, True, T[:0], T[:0].astype(np.int64))],
}  # fmt: skip
SHAPE = {
    "Cast": [(X * 9, "int32", (X * 9).astype(np.int32)), (N, "float16", N.astype(np.float16)), (X, "float64", X.astype(np.float64)),
             (N, "bool", N != 0)],
    "InplaceCopy": [(X, V, np.broadcast_to(V, (3, 4))), (X, N[:3, :4], N[:3, :4].astype(np.float32))],
    "Expand": [(V, [2, 3, 4], np.broadcast_to(V, (2, 3, 4))), (X[:1], [3, -1], np.broadcast_to(X[:1], (3, 4)))],
    "Permute": [(A, [2, 0, -2], A.transpose(2, 0, 1)), (X, [1, 0], X.T)],
    "Cat": [([X, Y[:1]], 0, np.concatenate([X, Y[:1]])), ([X, W[:, None], X], -1, np.concatenate([X, W[:, None], X], 1))],
    "Stack": [([X, Y], 0, np.stack([X, Y])), ([X, Y, X], -1, np.stack([X, Y, X], -1))],
    "SplitTensor": [(N, 2, 0, [N[:2], N[2:]]), (N, 4, 1, [N[:, :4], N[:, 4:]])],
    "SplitWithSize": [(N, [1, 3], 0, [N[:1], N[1:]]), (N, [3, 0, 3], -1, [N[:, :3], N[:, 3:3], N[:, 3:]])],
    "Slice": [(N, 1, 1, 6, 2, N[:, 1:6:2]), (N, 0, -3, 9, 1, N[-3:])],
    "Flip": [(A, [0, -1], A[::-1, :, ::-1]), (A, none, A)],
    "Roll": [(A, [1, -2], [0, 2], np.roll(A, (1, -2), (0, 2))), (A, [5], none, np.roll(A, 5))],
    "Repeat": [(X, [2, 3], np.tile(X, (2, 3))), (V, [2, 1, 2], np.tile(V, (2, 1, 2)))],
    "RepeatInterleave": [(V, i64(1, 0, 2, 1), 4, np.repeat(V, [1, 0, 2, 1]))],
    "RepeatInterleaveWithDim": [(X, i64(2, 0, 1), 0, 3, np.repeat(X, [2, 0, 1], 0))],
    "RepeatInterleaveInt": [(X, 2, 24, np.repeat(X, 2))],
    "RepeatInterleaveIntWithDim": [(X, 3, 1, 12, np.repeat(X, 3, 1))],
    "ConstantPadNd": [(X, [1, 2], 7, np.pad(X, ((0, 0), (1, 2)), constant_values=7)), (X, [-1, 0, 2, -1], 0.5, t(F.pad, X, (-1, 0, 2, -1), value=0.5)),
                      (N, [0, 1], 9, np.pad(N, ((0, 0), (0, 1)), constant_values=9))],
    "Tril": [(A, 0, np.tril(A)), (X, -1, np.tril(X, -1))],
    "Triu": [(A, 1, np.triu(A, 1)), (N, 0, np.triu(N))],
    "InplaceZero": [(X, X * 0)],
    "InplaceOne": [(N, np.ones_like(N))],
    "InplaceFillScalar": [(X, 2.5, np.full_like(X, 2.5)), (X > 0, True, np.ones((3, 4), bool))],
    "InplaceFillTensor": [(X, np.array([3.0]), np.full_like(X, 3))],
    "InplaceFillDiagonal": [(f(7, 3) * 0, 2, False, t(torch.Tensor.fill_diagonal_, np.zeros((7, 3), np.float32), 2)),
                            (f(7, 3) * 0, 2, True, t(torch.Tensor.fill_diagonal_, np.zeros((7, 3), np.float32), 2, wrap=True))],
    "Arange": [(0, 5, 2, np.arange(0, 5, 2)), (1.0, 2.0, 0.25, np.float32([1, 1.25, 1.5, 1.75])), (3, 0, -1, np.int32([3, 2, 1])), (0, 0, 1, i64())],
    "Range": [(0, 4, 2, i64(0, 2, 4)), (1.0, 2.0, 0.5, np.float32([1, 1.5, 2]))],
    "Linspace": [(0, 1, 5, np.linspace(0, 1, 5, dtype=np.float32)), (3, 3, 1, np.float32([3]))],
    "Eye": [(3, 3, EYE), (2, 3, np.eye(2, 3, dtype=np.int32))],
}  # fmt: skip
SAMPLES = {**REDUCTION, **LINEAR, **ACTIVATION, **NORMALISATION, **INDEXING, **SHAPE}


def wide(value):
    """The same values as every second element of a larger array, in lists too."""
    if isinstance(value, list) and any(isinstance(v, np.ndarray) for v in value):
        return [wide(v) for v in value]
    if not isinstance(value, np.ndarray) or not value.ndim:
        return value
    holder = np.zeros((*value.shape[:-1], 2 * value.shape[-1]), value.dtype)
    holder[..., ::2] = value
    return holder[..., ::2]


def each(function, value):
    if isinstance(value, (list, tuple)):
        return [each(function, v) for v in value]
    return function(value) if isinstance(value, (np.ndarray, np.generic)) else value


def half(array):
    return array.astype(np.float16) if array.dtype == np.float32 else array


def agree(result, expected, tolerance):
    if isinstance(expected, list):
        assert len(result) == len(expected)
        for a, b in zip(result, expected, strict=True):
            agree(a, b, tolerance)
    elif expected is not None:
        assert tuple(result.shape) == np.shape(expected)
        np.testing.assert_allclose(np.asarray(result), np.asarray(expected), rtol=tolerance, atol=tolerance)


def run(row, sample, make, tolerance, *, last=False):
    """Launch a row into fresh outputs; ``last`` passes these after everything else."""
    inputs = [make(value) for value in sample[: len(row.inputs)]]
    expected = sample[len(row.inputs) :]
    reference = dict(zip(row.written, expected, strict=True))
    values = dict(zip(row.inputs, inputs, strict=True))
    for i in row.written:
        if i in values:  # read and written: the caller's array is the output
            values[i] = None if values[i] is None else make(np.array(values[i]))
        else:
            values[i] = (
                None if reference[i] is None else make(each(np.zeros_like, each(np.asarray, reference[i])))
            )
    order = (*row.inputs, *row.outputs) if last else range(len(values))
    launch(row.name, [values[i] for i in order])
    for i in row.written:
        agree(values[i], reference[i], tolerance)


@pytest.mark.parametrize("name", SAMPLES)
def test_values(name):
    row = builtin()[f"aclnn{name}"]
    for sample in SAMPLES[name]:
        run(row, sample, lambda v: v, 2e-5)
        run(row, sample, wide, 2e-5)
        run(row, sample, lambda v: v, 2e-5, last=True)
        if row.inplace and np.shape(sample[0]) == np.shape(sample[-1]):
            run(row.in_place(), sample, wide, 2e-5)


@pytest.mark.parametrize("name", SAMPLES)
def test_half_precision(name):
    """Computed in single precision and rounded once, so one rounding of inputs and one of the result remain."""
    row = builtin()[f"aclnn{name}"]
    for sample in SAMPLES[name]:
        inputs, expected = sample[: len(row.inputs)], sample[len(row.inputs) :]
        if not any(isinstance(v, np.ndarray) and v.dtype == np.float32 for v in inputs):
            continue
        rounded = [each(half, v) for v in inputs]
        single = [each(lambda a: a.astype(np.float32) if a.dtype == np.float16 else a, v) for v in rounded]
        names = [a.name for a in row.schema.arguments]
        if "dtype" in names:
            place = row.inputs.index(names.index("dtype"))
            if rounded[place] == "float32":
                rounded[place] = "float16"
        result = [each(np.zeros_like, each(np.asarray, e)) for e in expected]
        reference = evaluate_numpy(row, single, result)
        run(row, (*rounded, *[each(half, r) for r in reference]), lambda v: v, 1e-3)


def evaluate_numpy(row, inputs, outputs):
    """Return what the row writes in single precision; another test checks that."""
    values = dict(zip(row.inputs, inputs, strict=True))
    for i, out in zip(row.written, outputs, strict=True):
        values[i] = (np.array(values[i]) if values[i] is not None else None) if i in values else out
    launch(row.name, [values[i] for i in range(len(values))])
    return [values[i] for i in row.written]


@pytest.mark.parametrize("name", SAMPLES)
def test_the_same_in_another_namespace(name):
    """The row in PyTorch's namespace, without outputs."""
    row = builtin()[f"aclnn{name}"]
    for sample in SAMPLES[name]:
        inputs = [each(lambda a: torch.tensor(np.array(a, order="C")), v) for v in sample[: len(row.inputs)]]
        result = evaluate(row.name, inputs, xp)
        for value, expected in zip(result, sample[len(row.inputs) :], strict=True):
            agree(value, expected, 2e-5)


def test_gradients_through_another_namespace():
    for name in ("Gelu", "Mish", "Softmax", "LogSoftmax", "LayerNorm", "Matmul", "Gather", "Elu"):
        row = builtin()[f"aclnn{name}"]
        inputs = [
            torch.tensor(v, dtype=torch.float64, requires_grad=True)
            if isinstance(v, np.ndarray) and v.dtype == np.float32
            else each(torch.tensor, v)
            for v in SAMPLES[name][0][: len(row.inputs)]
        ]
        assert torch.autograd.gradcheck(lambda *a, n=name: evaluate(n, a, xp)[0], inputs)


def test_no_operator_is_left_out():
    tables = (reduction, linear, activation, normalisation, indexing, shape)
    rows = [row.name for table in tables for row in table.ROWS]
    assert sorted(rows) == sorted(f"aclnn{n}" for n in SAMPLES)
    assert len(rows) == len(set(rows)) > 100
