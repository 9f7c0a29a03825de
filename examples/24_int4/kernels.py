"""Weights of four bits: two of them in each byte, with a scale for each row."""

# ruff: noqa: F821 - the words of the loop language

import polyop


# [pack]
@polyop.kernel(name="int4::pack")
def pack(w):
    """Return rows of 4-bit numbers, two in a byte with the first one low, and the scale of each row."""
    packed = output_tensor((w.shape[0], w.shape[1] // 2), "uint8")
    scale = output_tensor((w.shape[0],), w.dtype)
    for j in range(w.shape[0]):
        scale[j] = max(abs(w[j])) / 7
        for k in range(w.shape[1] // 2):
            low = int32(round(w[j, 2 * k] / scale[j])) + 8
            high = int32(round(w[j, 2 * k + 1] / scale[j])) + 8
            packed[j, k] = uint8(low | high << 4)
    return packed, scale


# [/pack]


# [matmul]
@polyop.kernel(name="int4::matmul")
def matmul(x, packed, scale):
    """Return x w^T, where ``pack`` has made ``packed`` and ``scale`` of w."""
    y = output_tensor((x.shape[0], packed.shape[0]), x.dtype)
    for i, j in grid(y.shape):
        total = 0.0
        for k in range(packed.shape[1]):
            total += x[i, 2 * k] * (int32(packed[j, k] & 15) - 8)
            total += x[i, 2 * k + 1] * (int32(packed[j, k] >> 4) - 8)
        y[i, j] = total * scale[j]
    return y


# [/matmul]
