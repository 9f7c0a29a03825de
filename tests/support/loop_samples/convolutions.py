# ruff: noqa: F821 - programs in the language, whose words are no names here
"""Convolutions: sums under conditions, and additions to elements that several iterations reach."""


def padded(x, w):
    y = output_tensor((w.shape[0], x.shape[1]), x.dtype)
    for o in range(w.shape[0]):
        for i in range(x.shape[1]):
            for c in range(x.shape[0]):
                for p in range(w.shape[2]):
                    if 0 <= i + p - 1 < x.shape[1]:
                        y[o, i] += x[c, i + p - 1] * w[o, c, p]
    return y


def spread(x, w):
    y = output_tensor((w.shape[0], 2 * x.shape[1] + w.shape[2]), x.dtype)
    for o in range(w.shape[0]):
        for c in range(x.shape[0]):
            for i in range(x.shape[1]):
                for p in range(w.shape[2]):
                    y[o, 2 * i + p] += x[c, i] * w[o, c, p]
    return y


def padded_image(x, w):
    y = output_tensor((x.shape[0], w.shape[0], x.shape[2], (x.shape[3] + 1) // 2), x.dtype)
    for b in range(x.shape[0]):
        for o in range(w.shape[0]):
            for i in range(x.shape[2]):
                for j in range((x.shape[3] + 1) // 2):
                    total = 0
                    for c in range(w.shape[1]):
                        for p in range(w.shape[2]):
                            h = i + 2 * p - w.shape[2]
                            if h >= 0 and h < x.shape[2]:
                                for q in range(w.shape[3]):
                                    v = 2 * j + q - 1
                                    if 0 <= v < x.shape[3]:
                                        total += x[b, c, h, v] * w[o, c, p, q]
                    y[b, o, i, j] = total
    return y


def spread_image(x, w):
    height, width = 3 * x.shape[2], x.shape[3] + w.shape[3] - 1
    y = output_tensor((x.shape[0], w.shape[1], height, width), x.dtype)
    for b in range(x.shape[0]):
        for o in range(w.shape[1]):
            for c in range(x.shape[1]):
                for i in range(x.shape[2]):
                    for j in range(x.shape[3]):
                        for p in range(w.shape[2]):
                            for q in range(w.shape[3]):
                                h = 3 * i + 2 * p - 1
                                if 0 <= h < height:
                                    y[b, o, h, j + q] += x[b, c, i, j] * w[c, o, p, q]
    return y


def mirrored(x, w):
    y = output_tensor((w.shape[0], x.shape[1]), x.dtype)
    for o in range(w.shape[0]):
        for c in range(x.shape[0]):
            for i in range(x.shape[1]):
                for p in range(w.shape[2]):
                    if i >= p:
                        y[o, i - p] += x[c, i] * w[o, c, p]
    return y


def looked_for(x, w):
    y = output_tensor((w.shape[0], 2 * x.shape[1] + 1), x.dtype)
    for o in range(w.shape[0]):
        for i in range(2 * x.shape[1] + 1):
            total = 0
            for c in range(x.shape[0]):
                for p in range(w.shape[2]):
                    k = i + 1 - p
                    if k % 2 == 0 and 0 <= k // 2 < x.shape[1]:
                        total += x[c, k // 2] * w[o, c, p]
            y[o, i] = total
    return y


def looked_for_in_an_image(x, w):
    y = output_tensor((w.shape[0], 3 * x.shape[1], 2 * x.shape[2]), x.dtype)
    for o in range(w.shape[0]):
        for i in range(3 * x.shape[1]):
            for j in range(2 * x.shape[2]):
                for c in range(x.shape[0]):
                    for p in range(w.shape[2]):
                        for q in range(w.shape[3]):
                            if (i - 2 * p) % 3 == 0 and (j + 1 - q) % 2 == 0:
                                h = (i - 2 * p) // 3
                                v = (j + 1 - q) // 2
                                if h >= 0 and v >= 0 and v < x.shape[2]:
                                    y[o, i, j] += x[c, h, v] * w[o, c, p, q]
    return y


def of_groups(x, w):
    y = output_tensor((w.shape[0], x.shape[1]), x.dtype)
    for o in range(w.shape[0]):
        for i in range(x.shape[1]):
            for p in range(w.shape[1]):
                if o // (w.shape[1] + 1) < x.shape[0] and i + p < x.shape[1]:
                    y[o, i] += x[o // (w.shape[1] + 1), i + p] * w[o, p]
    return y
