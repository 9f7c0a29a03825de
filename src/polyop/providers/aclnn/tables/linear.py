"""Products of matrices and vectors. ``cubeMathType`` selects a precision on Ascend; here it is ignored."""

from __future__ import annotations

from ..row import Row
from ..special import blend

ROWS = (
    Row("aclnnMm(Tensor self, Tensor mat2, Tensor(a!) out, int cubeMathType) -> ()",
        lambda xp, x, y, _: xp.matmul(x, y)),
    Row("aclnnMatmul(Tensor self, Tensor mat2, Tensor(a!) out, int cubeMathType) -> ()",
        lambda xp, x, y, _: xp.matmul(x, y)),
    Row("aclnnBatchMatMul(Tensor self, Tensor mat2, Tensor(a!) out, int cubeMathType) -> ()",
        lambda xp, x, y, _: xp.matmul(x, y)),
    Row("aclnnMv(Tensor self, Tensor vec, Tensor(a!) out, int cubeMathType) -> ()",
        lambda xp, x, vec, _: xp.matmul(x, vec)),
    Row("aclnnDot(Tensor self, Tensor tensor, Tensor(a!) out) -> ()", lambda xp, x, y: xp.matmul(x, y)),
    Row("aclnnGer(Tensor self, Tensor vec2, Tensor(a!) out) -> ()", lambda xp, x, y: x[:, None] * y[None, :]),
    Row("aclnnAddmm(Tensor self, Tensor mat1, Tensor mat2, Scalar beta, Scalar alpha, Tensor(a!) out,"
        " int cubeMathType) -> ()",
        lambda xp, x, a, b, beta, alpha, _: blend(xp.matmul(a, b), alpha, x, beta), inplace=True),
    Row("aclnnBaddbmm(Tensor self, Tensor batch1, Tensor batch2, Scalar beta, Scalar alpha, Tensor(a!) out,"
        " int cubeMathType) -> ()",
        lambda xp, x, a, b, beta, alpha, _: blend(xp.matmul(a, b), alpha, x, beta), inplace=True),
    Row("aclnnAddbmm(Tensor self, Tensor batch1, Tensor batch2, Scalar beta, Scalar alpha, Tensor(a!) out,"
        " int cubeMathType) -> ()",
        lambda xp, x, a, b, beta, alpha, _: blend(xp.sum(xp.matmul(a, b), axis=0), alpha, x, beta),
        inplace=True),
    Row("aclnnAddmv(Tensor self, Tensor mat, Tensor vec, Scalar alpha, Scalar beta, Tensor(a!) out,"
        " int cubeMathType) -> ()",
        lambda xp, x, a, b, alpha, beta, _: blend(xp.matmul(a, b), alpha, x, beta)),
    Row("aclnnAddr(Tensor self, Tensor vec1, Tensor vec2, Scalar beta, Scalar alpha, Tensor(a!) out) -> ()",
        lambda xp, x, a, b, beta, alpha: blend(a[:, None] * b[None, :], alpha, x, beta), inplace=True),
    Row("aclnnEinsum(Tensor[] tensors, str equation, Tensor(a!) out) -> ()",
        lambda xp, tensors, equation: xp.einsum(equation, *tensors)),
)  # fmt: skip
