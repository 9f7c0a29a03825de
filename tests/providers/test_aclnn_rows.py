"""Every aclnn operator of the table, and those by PyTorch's name, against NumPy or PyTorch.

A sample has the inputs of a row in CANN's order, then what each written argument must be.
"""

import operator

import array_api_compat.torch as xp
import ml_dtypes
import numpy as np
import pytest
import torch
import torch.nn.functional as F

from polyop.providers.aclnn import evaluate, launch, loops, prototype
from polyop.providers.aclnn.registry import builtin, find
from polyop.providers.aclnn.table import ROWS

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
Z = f(3, 4) + 4
P = abs(X) + 0.25
U = X / 3
A, B = f(2, 3, 4), f(2, 4, 5)
N = random.permutation(24).reshape(4, 6).astype(np.int32)  # no two are equal
T = (N / 4 - 3).astype(np.float32)
INF, NAN = float("inf"), float("nan")
BAD = np.array([[1, NAN, 2], [INF, 3, -1]], np.float32)
F32, I64 = "float32", "int64"
none = []
BITS = np.int32([[0, 1, 6, -5]]), np.int32([[3], [1]])

OF_AN_ELEMENT = {  # inputs: names, each with what PyTorch or NumPy says
    "any": (X, {"Abs": np.abs, "Neg": np.negative, "Exp": np.exp, "Square": np.square, "Sin": np.sin, "Cos": np.cos,
                "Tanh": np.tanh, "Sigmoid": torch.sigmoid, "Erf": torch.erf, "Relu": torch.relu, "Silu": F.silu,
                "Exp2": np.exp2, "Expm1": np.expm1, "Atan": np.arctan, "Sinh": np.sinh, "Cosh": np.cosh,
                "Asinh": np.arcsinh, "Erfc": torch.erfc, "Floor": np.floor, "Ceil": np.ceil, "Round": np.round,
                "Trunc": np.trunc, "Frac": torch.frac, "Sign": np.sign, "Mish": F.mish, "Hardswish": F.hardswish,
                "Hardsigmoid": F.hardsigmoid, "Selu": F.selu, "LogSigmoid": F.logsigmoid, "Max": np.max, "Min": np.min,
                "LogicalNot": np.logical_not}),
    "positive": (P, {"Log": np.log, "Log2": np.log2, "Log10": np.log10, "Sqrt": np.sqrt, "Rsqrt": torch.rsqrt,
                     "Reciprocal": torch.reciprocal}),
    "below 1": (U, {"Log1p": np.log1p, "Tan": np.tan, "Asin": np.arcsin, "Acos": np.arccos, "Atanh": np.arctanh}),
    "above 1": (P + 1, {"Acosh": np.arccosh}),
    "not finite": (BAD, {"IsFinite": np.isfinite, "IsInf": np.isinf, "IsPosInf": np.isposinf, "IsNegInf": np.isneginf,
                         "Signbit": np.signbit}),
    "bits": (BITS[0], {"BitwiseNot": np.invert}),
}  # fmt: skip
OF_TWO = {
    "any": (X, Z, {"Mul": np.multiply, "Div": np.divide, "Maximum": np.maximum, "Minimum": np.minimum,
                   "FloorDivide": np.floor_divide, "FmodTensor": np.fmod, "RemainderTensorTensor": np.mod,
                   "Atan2": np.arctan2, "LogAddExp": np.logaddexp, "EqTensor": operator.eq, "NeTensor": operator.ne,
                   "LtTensor": operator.lt, "LeTensor": operator.le, "GtTensor": operator.gt, "GeTensor": operator.ge,
                   "LogicalAnd": np.logical_and, "LogicalOr": np.logical_or, "LogicalXor": np.logical_xor}),
    "broadcast": (A, V, {"Mul": np.multiply, "Maximum": np.maximum}),
    "positive": (P, X, {"PowTensorTensor": np.power}),
    "bits": (*BITS, {"BitwiseAndTensor": np.bitwise_and, "BitwiseOrTensor": np.bitwise_or,
                     "BitwiseXorTensor": np.bitwise_xor, "LeftShift": np.left_shift, "RightShift": np.right_shift,
                     "Mul": np.multiply, "FloorDivide": np.floor_divide}),
    "and a number": (P, 1.5, {"Muls": np.multiply, "Divs": np.divide, "FloorDivides": np.floor_divide,
                              "FmodScalar": np.fmod, "RemainderTensorScalar": np.mod, "PowTensorScalar": np.power,
                              "ClampMin": np.maximum, "ClampMax": np.minimum, "GtScalar": operator.gt,
                              "EqScalar": operator.eq, "LeScalar": operator.le}),
    "and a whole number": (BITS[0], 3, {"BitwiseAndScalar": np.bitwise_and, "BitwiseOrScalar": np.bitwise_or,
                                        "BitwiseXorScalar": np.bitwise_xor}),
}  # fmt: skip
ARITHMETIC = {
    "Add": [(X, Y, 1, X + Y), (X, Y, 2.5, X + 2.5 * Y), (N, N, 1, N + N)],
    "Adds": [(X, 2, 1.5, X + 3)],
    "Sub": [(X, Y, 1, X - Y), (X, Y, -2, X + 2 * Y)],
    "Subs": [(X, 2, 1.5, X - 3)],
    "Rsub": [(X, Y, 3, Y - 3 * X)],
    "PowTensorScalar": [(np.int32([-2, -1, 0, 1, 3]), 3, np.int32([-8, -1, 0, 1, 27]))],
    "PowScalarTensor": [(2.0, X, 2**X)],
    "RemainderScalarTensor": [(5.0, Y, np.mod(np.float32(5.0), Y))],
    "Addcmul": [(X, Y, Z, 0.5, X + 0.5 * Y * Z)],
    "Addcdiv": [(X, Y, Z, 2, X + 2 * Y / Z)],
    "Lerp": [(X, Y, Z, X + Z * (Y - X))],
    "Lerps": [(X, Y, 0.25, 0.75 * X + 0.25 * Y)],
    "Clamp": [(X, -1, 0.5, np.clip(X, -1, 0.5)), (X, None, 0, np.minimum(X, 0)), (BAD, 1.0, None, np.maximum(BAD, 1))],
    "ClampTensor": [(X, Y, Z, np.minimum(np.maximum(X, Y), Z)), (X, None, Z, np.minimum(X, Z))],
    "NanToNum": [(BAD, 9.0, 8.0, -7.0, np.nan_to_num(BAD, nan=9, posinf=8, neginf=-7))],
    "RoundDecimals": [(U, 1, np.round(U, 1))],
    "IsClose": [(X, X + 1e-3, 1e-2, 1e-3, False, np.ones_like(X, bool)), (BAD, BAD, 0.0, 0.0, True, np.ones((2, 3), bool))],
    "SWhere": [(X > 0, X, Y, np.where(X > 0, X, Y)), (X > 0, X, Y[0, 0], np.where(X > 0, X, Y[0, 0]))],
    "InplaceMaskedFillScalar": [(X, X > 0, 7.0, np.where(X > 0, np.float32(7), X))],
    "InplaceMaskedFillTensor": [(X, X > 0, np.array(7.0, np.float32), np.where(X > 0, np.float32(7), X))],
}  # fmt: skip
REDUCTION = {
    "ReduceSum": [(X, none, False, F32, X.sum()), (A, [0, -1], True, F32, A.sum((0, 2), keepdims=True)),
                  (N, [1], False, I64, N.sum(1, dtype=np.int64)), (np.float32(3), none, False, F32, np.float32(3)),
                  (np.zeros((0, 3), np.float32), [0], False, F32, np.zeros(3, np.float32))],
    "ReduceNansum": [(BAD, [1], False, F32, np.nansum(BAD, 1)), (X, none, False, F32, X.sum())],
    "Mean": [(A, [1], False, F32, A.mean(1)), (A, none, True, F32, A.mean(keepdims=True)),
             (np.zeros((0, 2), np.float32), [0], False, F32, np.full(2, NAN, np.float32))],
    "Prod": [(X, F32, X.prod()), (np.int32([[2, 3]]), I64, np.int64(6))],
    "ProdDim": [(X, 1, True, F32, X.prod(1, keepdims=True)), (X, -2, False, F32, X.prod(0))],
    "Amax": [(A, [0, 1], False, A.max((0, 1))), (N, none, True, N.max(keepdims=True)), (BAD, [1], False, BAD.max(1))],
    "Amin": [(A, [-1], True, A.min(-1, keepdims=True)), (N, [0], False, N.min(0))],
    "MaxDim": [(T, 1, False, T.max(1), T.argmax(1)), (T, 0, True, *t(torch.max, T, 0, keepdim=True)),
               (np.float32(2), 0, False, np.float32(2), np.int64(0))],
    "MinDim": [(T, -1, True, *t(torch.min, T, -1, keepdim=True)), (N, 0, False, N.min(0), N.argmin(0))],
    "ArgMax": [(T, 0, False, T.argmax(0)), (T, -1, True, T.argmax(-1, keepdims=True))],
    "ArgMin": [(N, 1, False, N.argmin(1)), (N, 0, True, N.argmin(0, keepdims=True).astype(np.int32))],
    "Var": [(A, [1], True, False, A.var(1, ddof=1)), (A, none, False, True, A.var(keepdims=True))],
    "VarCorrection": [(A, [1], 0, True, A.var(1, keepdims=True)), (A, [1], 1, False, A.var(1, ddof=1)), (A, None, None, False, A.var(ddof=1))],
    "AminmaxDim": [(X, 1, True, X.min(1, keepdims=True), X.max(1, keepdims=True)), (X, 0, False, X.min(0), X.max(0))],
    "LogSumExp": [(A, [1], False, t(torch.logsumexp, A, 1)), (A * 90, [0, 1], True, t(torch.logsumexp, A * 90, (0, 1), keepdim=True))],
    "Norm": [(X, 2.0, none, False, np.sqrt((X * X).sum())), (X, 1, [1], True, np.abs(X).sum(1, keepdims=True))],
    "LinalgVectorNorm": [(X, 2.0, [1], False, F32, np.linalg.norm(X, axis=1)), (X, 0, none, False, F32, np.float32(12))],
    "Cumsum": [(X, 1, F32, X.cumsum(1)), (N, -2, I64, N.cumsum(0, dtype=np.int64)), (np.float32(2), 0, F32, np.float32(2))],
    "Cumprod": [(X, 1, F32, X.cumprod(1)), (N[:2, :2], 0, I64, N[:2, :2].cumprod(0, dtype=np.int64))],
}  # fmt: skip
LINEAR = {
    "Mm": [(X, Y.T, 0, X @ Y.T), (np.zeros((2, 0), np.float32), np.zeros((0, 3), np.float32), 0, np.zeros((2, 3), np.float32))],
    "Matmul": [(A, B, 1, A @ B), (X, V, 0, X @ V), (V, V, 0, V @ V), (X, B, 0, X @ B), (N, N.T, 0, N @ N.T)],
    "BatchMatMul": [(A, B, 0, A @ B)],
    "Dot": [(V, X[0], V @ X[0])],
    "Ger": [(W, V, np.outer(W, V))],
    "Addmm": [(W, X, Y.T, 2, 0.5, 0, 2 * W + 0.5 * (X @ Y.T)), (f(3, 3), X, Y.T, 0, 1, 0, X @ Y.T)],
    "Addr": [(X, W, V, 0.5, 2, 0.5 * X + 2 * np.outer(W, V))],
}  # fmt: skip
S = 1 / (1 + np.exp(-X))
Q = S / S.sum(1, keepdims=True)
GATED = f(3, 8)
ACTIVATION = {
    "Relu": [(np.zeros((0,), np.float32), np.zeros(0, np.float32)), (np.int32([-2, 3]), np.int32([0, 3]))],
    "Gelu": [(X, t(F.gelu, X, approximate="tanh"))],
    "GeluV2": [(X, 0, t(F.gelu, X)), (X, 1, t(F.gelu, X, approximate="tanh"))],
    "Silu": [(BAD * 100, t(F.silu, BAD * 100))],
    "LeakyRelu": [(X, 0.1, t(F.leaky_relu, X, 0.1))],
    "Elu": [(X, 1.5, 1, 1, t(F.elu, X, 1.5)), (X, 1, 2, 0.5, np.where(X > 0, 2 * X, 2 * np.expm1(X / 2)))],
    "Celu": [(X, 2.0, t(F.celu, X, 2.0))],
    "Softplus": [(X * 20, 2, 10, t(F.softplus, X * 20, 2, 10))],
    "Hardtanh": [(X, -1, 0.5, t(F.hardtanh, X, -1, 0.5))],
    "Hardshrink": [(X, 0.5, t(F.hardshrink, X, 0.5))],
    "Softshrink": [(X, 0.5, t(F.softshrink, X, 0.5))],
    "Threshold": [(X, 0.25, -9, t(F.threshold, X, 0.25, -9))],
    "Prelu": [(X, V, t(F.prelu, X, V)), (A, W, t(F.prelu, A, W))],
    "Glu": [(GATED, 1, t(F.glu, GATED, 1)), (GATED[:2], 0, t(F.glu, GATED[:2], 0))],
    "Softmax": [(A * 30, 1, t(F.softmax, A * 30, 1)), (np.float32(3), 0, np.float32(1)),
                (np.zeros((0, 2), np.float32), 0, np.zeros((0, 2), np.float32))],
    "LogSoftmax": [(A * 30, -1, t(F.log_softmax, A * 30, -1)), (np.float32(3), 0, np.float32(0))],
    "SigmoidBackward": [(Y, S, at(X, Y, torch.sigmoid))],
    "TanhBackward": [(Y, np.tanh(X), at(X, Y, torch.tanh))],
    "SiluBackward": [(Y, X, at(X, Y, F.silu))],
    "GeluBackward": [(Y, X, at(X, Y, F.gelu))],
    "GeluBackwardV2": [(Y, X, way, at(X, Y, lambda x, way=way: F.gelu(x, approximate=way))) for way in ("none", "tanh")],
    "KlDiv": [(X, Y, 0, True, t(F.kl_div, X, Y, reduction="none", log_target=True)), (X, Q, 2, False, t(F.kl_div, X, Q, reduction="sum"))],
    "ThresholdBackward": [(Y, X, 0, at(X, Y, torch.relu))],
    "LeakyReluBackward": [(Y, X, 0.1, False, at(X, Y, lambda x: F.leaky_relu(x, 0.1)))],
    "SoftmaxBackward": [(Y, t(F.softmax, X, 1), 1, at(X, Y, lambda x: F.softmax(x, 1)))],
    "LogSoftmaxBackward": [(Y, t(F.log_softmax, X, 0), 0, at(X, Y, lambda x: F.log_softmax(x, 0)))],
    "MseLoss": [(X, Y, 0, (X - Y) ** 2), (X, Y, 1, ((X - Y) ** 2).mean()), (X, Y, 2, ((X - Y) ** 2).sum())],
    "L1Loss": [(X, Y, 1, np.abs(X - Y).mean())],
    "SmoothL1Loss": [(X, Y, 0, 0.5, t(F.smooth_l1_loss, X, Y, beta=0.5, reduction="none"))],
    "BinaryCrossEntropy": [(Q, S, None, 1, t(F.binary_cross_entropy, Q, S)),
                           (Q, S, V, 0, t(F.binary_cross_entropy, Q, S, V.reshape(1, 4), reduction="none"))],
}  # fmt: skip
IMAGE, G4, B4 = f(2, 4, 5, 6), f(4), f(4)
MEAN, VAR = f(4), np.abs(f(4)) + 0.5
SPOT = IMAGE.mean((0, 2, 3)), IMAGE.var((0, 2, 3))
RMS = 1 / np.sqrt((A * A).mean(-1, keepdims=True) + 1e-6)
NORMALISATION = {
    "LayerNorm": [(A, [4], V, V * 2, 1e-5, t(F.layer_norm, A, [4], V, V * 2, 1e-5), A.mean(-1, keepdims=True),
                   1 / np.sqrt(A.var(-1, keepdims=True) + 1e-5)),
                  (A, [3, 4], None, None, 1e-5, t(F.layer_norm, A, [3, 4]), None, None)],
    "RmsNorm": [(A, V, 1e-6, A * RMS * V, RMS)],
    # inputs, running mean and variance, then what these two are afterwards
    "BatchNorm": [(IMAGE, G4, B4, MEAN, VAR, False, 0.1, 1e-5, MEAN, VAR,
                   t(F.batch_norm, IMAGE, MEAN, VAR, G4, B4), MEAN, 1 / np.sqrt(VAR + 1e-5)),
                  (IMAGE, None, None, MEAN, VAR, True, 0.25, 1e-5, 0.75 * MEAN + 0.25 * SPOT[0],
                   0.75 * VAR + 0.25 * SPOT[1] * 60 / 59, t(F.batch_norm, IMAGE, None, None, None, None, True),
                   SPOT[0], 1 / np.sqrt(SPOT[1] + 1e-5))],
}  # fmt: skip
IDS, HERE = i64(2, 0, 2), i64([0, 1, 2], [2, 0, 1]).reshape(2, 3)


def added(alpha):
    result = X.copy()
    for k, i in enumerate(IDS):
        result[i] += np.float32(alpha) * Y[k]
    return result


SHAPE = {
    "Gather": [(X, 0, HERE, t(torch.gather, X, 0, HERE)), (X, 1, HERE, t(torch.gather, X, 1, HERE))],
    "IndexSelect": [(X, 1, IDS, X[:, IDS]), (X, 0, IDS[:0], X[:0])],
    "Take": [(X, HERE, X.ravel()[HERE])],
    "Embedding": [(X, HERE, X[HERE])],
    "Index": [(A, [None, IDS], A[:, IDS]), (A, [i64(0, 1), None, i64(3, 2)], A[[0, 1], :, [3, 2]])],
    "IndexAdd": [(X, 0, IDS, Y, 1, added(1)), (X, 0, IDS, Y, 0.5, added(0.5))],
    "ScatterAdd": [(X, 1, i64(1, 1).reshape(1, 2), Y, X + np.float32([[0, Y[0, 0] + Y[0, 1], 0, 0], [0] * 4, [0] * 4]))],
    "Sort": [(T, True, 1, True, *t(torch.sort, T, stable=True, dim=1, descending=True)), (T, None, 0, False, *t(torch.sort, T, dim=0))],
    "IsInTensorScalar": [(N, 3, False, turned, (N == 3) ^ turned) for turned in (False, True)],
    "Bucketize": [(X, i64(-1, 0, 1).astype(np.float32), small, right, t(torch.bucketize, X, i64(-1, 0, 1).astype(np.float32), out_int32=small, right=right))
                  for small, right in ((False, True), (True, False))],
    "Argsort": [(N, -1, False, np.argsort(N)), (N, 0, True, np.argsort(-N, 0))],
    "Topk": [(T, 2, 1, True, True, *t(torch.topk, T, 2, 1)), (T, 3, 0, False, True, *t(torch.topk, T, 3, 0, False))],
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
    "RepeatInterleaveWithDim": [(X, i64(2, 0, 1), 0, 3, np.repeat(X, [2, 0, 1], 0))],
    "RepeatInterleaveIntWithDim": [(X, 3, 1, 12, np.repeat(X, 3, 1))],
    "ConstantPadNd": [(X, [1, 2], 7, np.pad(X, ((0, 0), (1, 2)), constant_values=7)), (X, [-1, 0, 2, -1], 0.5, t(F.pad, X, (-1, 0, 2, -1), value=0.5))],
    "Tril": [(A, 0, np.tril(A)), (X, -1, np.tril(X, -1))],
    "Triu": [(A, 1, np.triu(A, 1)), (N, 0, np.triu(N))],
    "InplaceZero": [(X, X * 0)],
    "InplaceOne": [(N, np.ones_like(N))],
    "InplaceFillScalar": [(X, 2.5, np.full_like(X, 2.5)), (X > 0, True, np.ones((3, 4), bool))],
}  # fmt: skip


def said(function, *inputs):
    """What a function of NumPy or PyTorch says."""
    by_torch = getattr(function, "__module__", "") != "numpy" and not isinstance(function, np.ufunc)
    return t(function, *inputs) if by_torch and function.__module__ != "_operator" else function(*inputs)


def samples():
    """Yield each name with one of its samples."""
    for x, functions in OF_AN_ELEMENT.values():
        yield from ((name, (x, said(function, x))) for name, function in functions.items())
    for x, y, functions in OF_TWO.values():
        yield from ((name, (x, y, function(x, y))) for name, function in functions.items())
    for table in (ARITHMETIC, REDUCTION, LINEAR, ACTIVATION, NORMALISATION, SHAPE):
        yield from ((name, sample) for name, group in table.items() for sample in group)


SAMPLES = {}
for name, sample in samples():
    SAMPLES.setdefault(name, []).append(sample)


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


def spec(value):
    return np.shape(value), np.asarray(value).dtype


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
    row = find(name)
    for sample in SAMPLES[name]:
        run(row, sample, lambda v: v, 2e-5)
        run(row, sample, wide, 2e-5)
        run(row, sample, lambda v: v, 2e-5, last=True)
        if row.inplace and spec(sample[0]) == spec(sample[-1]):
            run(row.in_place(), sample, wide, 2e-5)


@pytest.mark.slow(30)
@pytest.mark.parametrize("name", SAMPLES)
def test_half_precision(name):
    """Computed in single precision and rounded once, so one rounding of inputs and one of the result remain."""
    row = find(name)
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


@pytest.mark.slow(30)
@pytest.mark.parametrize("name", SAMPLES)
def test_the_same_in_another_namespace(name):
    """The row in PyTorch's namespace, without outputs."""
    row = find(name)
    for sample in SAMPLES[name]:
        inputs = [each(lambda a: torch.tensor(np.array(a, order="C")), v) for v in sample[: len(row.inputs)]]
        result = evaluate(row.name, inputs, xp)
        for value, expected in zip(result, sample[len(row.inputs) :], strict=True):
            agree(value, expected, 2e-5)


def test_gradients_through_another_namespace():
    for name in ("Gelu", "Mish", "Softmax", "LogSoftmax", "LayerNorm", "Matmul", "Gather", "Elu"):
        row = find(name)
        inputs = [
            torch.tensor(v, dtype=torch.float64, requires_grad=True)
            if isinstance(v, np.ndarray) and v.dtype == np.float32
            else each(torch.tensor, v)
            for v in SAMPLES[name][0][: len(row.inputs)]
        ]
        assert torch.autograd.gradcheck(lambda *a, n=name: evaluate(n, a, xp)[0], inputs)


def test_no_row_is_left_out():
    assert {row.name.removeprefix("aclnn") for row in ROWS} <= SAMPLES.keys()
    assert len(ROWS) == len({row.name for row in ROWS})


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16], ids=lambda d: d.__name__)
def test_small_floats_are_rounded_once(dtype):
    x, out = P.astype(dtype), np.zeros((3, 4), dtype)
    for name in ("Exp", "Log", "Expm1", "Sigmoid"):
        launch(name, [x, out])
        single = np.zeros((3, 4), np.float32)
        launch(name, [x.astype(np.float32), single])
        assert out.tobytes() == single.astype(dtype).tobytes()


def test_division_by_zero_gives_infinity_without_a_warning():
    out = np.zeros(3, np.float32)
    launch("Div", [np.array([1, -1, 0], np.float32), np.zeros(3, np.float32), out])
    assert out[:2].tolist() == [INF, -INF]
    assert np.isnan(out[2])
    half = np.zeros(1, np.float16)
    launch("Exp", [np.array([20], np.float16), half])
    assert half[0] == INF


def test_a_comparison_goes_into_any_dtype():
    out = np.zeros(3, np.float32)
    launch("GtScalar", [np.array([1.0, 2.0, NAN]), 1.5, out])
    assert out.tolist() == [0, 1, 0]


@pytest.mark.parametrize("name", ["Rsubs", "Selux", "InplaceMaxDim", "InplaceNothing", "Dropout2d"])
def test_names_that_pytorch_does_not_have(name):
    with pytest.raises(NotImplementedError, match=f"aclnn{name}: aclnn operators need CANN"):
        launch(name, [X, X])


def test_a_prototype_by_pytorchs_name():
    assert (
        str(prototype("MaxDim"))
        == "aclnnMaxDim(Tensor self, int dim, bool keepdim, Tensor(a!) out0, Tensor(b!) out1) -> ()"
    )
    with pytest.raises(
        TypeError,
        match=r"aclnnSelu: takes 2 arguments, but got 3\n  its prototype: aclnnSelu\(Tensor self.*\n  it follows PyTorch's schema",
    ):
        launch("Selu", [X, 1.0, np.zeros_like(X)])
    assert "aclnnSelu" not in builtin()


@pytest.mark.parametrize("name", loops())
def test_a_loop_equals_its_operator(name):
    """The ufunc alone gives the same as the operator, bit for bit, where it has a loop for the dtype."""
    ufunc = getattr(np, loops()[name])
    compared = 0
    for dtype in (np.float32, np.float16, np.int32, np.bool_):
        x = np.array([1, 2, 0, 1]).astype(dtype)
        inputs = [x, np.array([1, 3, 2, 1]).astype(dtype)][: ufunc.nin]
        factor = [1] if any(True for _ in prototype(name).attributes()) else []
        with np.errstate(all="ignore"):
            try:
                expected = ufunc(*inputs)
            except TypeError:
                continue
        if expected.dtype not in (dtype, np.bool_):
            continue
        out = np.zeros_like(expected)
        launch(name, [*inputs, *factor, out])
        np.testing.assert_array_equal(out, expected)
        compared += 1
    assert compared
