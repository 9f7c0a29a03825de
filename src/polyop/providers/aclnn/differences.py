"""Where aclnn and PyTorch differ, in names and in arguments, as CANN's documents have them.

``through_aten`` takes every other operator as PyTorch has it.
"""

from __future__ import annotations

OTHER_NAMES = {  # aclnn's name: PyTorch's, where the arguments are the same
    "LeftShift": "bitwise_left_shift.Tensor", "RightShift": "bitwise_right_shift.Tensor",
    "PowScalarTensor": "pow.Scalar", "GeluBackwardV2": "gelu_backward", "Sort": "sort.stable",
    "FloorDivides": "floor_divide.Scalar", "Lerps": "lerp.Scalar", "Norm": "norm.ScalarOpt_dim",
    "ProdDim": "prod.dim_int", "ReduceNansum": "nansum", "AminmaxDim": "aminmax",
    "RemainderTensorScalar": "remainder.Scalar", "RemainderTensorTensor": "remainder.Tensor",
    "Var": "var.dim", "VarMean": "var_mean.correction", "Std": "std.correction",
    "NLLLoss": "nll_loss_forward", "NLLLoss2d": "nll_loss2d_forward",
    "MultilabelMarginLoss": "multilabel_margin_loss_forward",
}  # fmt: skip

CUBE_MATH_TYPE_LAST = frozenset({"Addbmm", "Baddbmm", "ConvTbc", "Convolution", "Mv"})
"""These take ``cubeMathType`` after the outputs. It selects a precision on Ascend; here it is ignored."""

CUBE_MATH_TYPE_BEFORE_OUTPUTS = frozenset(
    {"AvgPool2d", "AvgPool2dBackward", "ConvTbcBackward", "ConvolutionBackward"}
)

OTHER_ARGUMENTS = {  # aclnn's name: its arguments, where PyTorch's are others or in another order
    "Addmv": "self, mat, vec, alpha, beta, out, cubeMathType",
    "All": "self, dim, keepdim, out, where no dim means all of them",
    "Aminmax": "self, dim, keepDim, minOut, maxOut, where dim is a list",
    "Any": "self, dim, keepdim, out, where no dim means all of them",
    "AsStrided": "x, size, stride, storageOffset, out, where storageOffset is a list",
    "BatchNormBackward": "gradOut, input, weight, runningMean, runningVar, saveMean, saveInvstd, training,"
    " eps, outputMask, gradInput, gradWeight, gradBias",
    "BatchNormGatherStatsWithCounts": "input, mean, invstd, runningMean, runningVar, momentum, eps, counts,"
    " meanAll, invstdAll, and writes runningMean and runningVar",
    "CrossEntropyLoss": "input, target, weight, reduction, ignoreIndex, labelSmoothing,"
    " lseSquareScaleForZloss, returnZloss, and four outputs",
    "CtcLoss": "logProbs, targets, inputLengths, targetLengths, blank, zeroInfinity, negLogLikelihoodOut,"
    " logAlphaOut",
    "Einsum": "tensors, equation, output",
    "EmbeddingBag": "weight, indices, offsets, scaleGradByFreq, mode, sparse, perSampleWeights,"
    " includeLastOffset, paddingIdx, and four outputs",
    "EmbeddingRenorm": "selfRef, indices, maxNorm, normType, and writes selfRef",
    "GroupNorm": "self, gamma, beta, N, C, HxW, group, eps, out, meanOut, rstdOut",
    "HingeEmbeddingLoss": "input, target, margin, reduction, loss, where reduction is a text",
    "HuberLoss": "predictions, targets, delta, loss",
    "InplaceCumprod": "input, dim",
    "InplaceScatterReduce": "selfRef, dim, index, src, reduce, includeSelf, where reduce is a number",
    "InplaceScatterValue": "selfRef, dim, index, value, reduce",
    "InstanceNorm": "x, gamma, beta, dataFormat, eps, y, mean, variance",
    "LinalgQr": "self, mode, Q, R, where mode is a number",
    "MaxPool2dWithIndicesBackward": "gradOutput, self, indices, kernelSize, stride, padding, dilation,"
    " ceilMode, gradInput",
    "MaxPool3D": "x, ksize, strides, padding, pads, dilation, ceilMode, dataFormat, out",
    "OneHot": "self, numClasses, onValue, offValue, axis, out",
    "QuantizedBatchNorm": "input, mean, var, inputScale, inputZeroPoint, outputScale, outputZeroPoint,"
    " weight, bias, epsilon, output",
    "RepeatInterleave": "self, repeats, outputSize, out",
    "Resize": "self, scales, mode, out",
    "ScatterReduce": "self, dim, index, src, reduce, includeSelf, out, where reduce is a number",
    "ScatterValue": "self, dim, index, value, reduce, out",
    "Sum": "tensors, out, and adds the tensors of a list",
    "Svd": "input, fullMatrices, computeUV, sigma, u, v",
    "UniqueDim": "self, sorted, returnInverse, dim, valueOut, inverseOut, countsOut",
    "UpsampleNearest1d": "self, outputSize, out",
    "UpsampleNearest2d": "self, outputSize, out",
    "ViewCopy": "dst, its size, stride and offset, src, its size, stride and offset, and the output",
}
