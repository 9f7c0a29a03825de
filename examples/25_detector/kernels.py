"""ROI align, the features of a box as averages of bilinear samples (He et al., 2017), and NMS."""

# ruff: noqa: F821 - the words of the loop language

import math

import polyop


# [roi_align]
def bilinear(x, n, c, row, column):
    row = min(max(row, 0.0), x.shape[2] - 1.0)
    column = min(max(column, 0.0), x.shape[3] - 1.0)
    i = min(int(row), x.shape[2] - 2)
    j = min(int(column), x.shape[3] - 2)
    down, right = row - i, column - j
    above = (1 - right) * x[n, c, i, j] + right * x[n, c, i, j + 1]
    below = (1 - right) * x[n, c, i + 1, j] + right * x[n, c, i + 1, j + 1]
    return (1 - down) * above + down * below


@polyop.kernel(name="vision::roi_align")
def roi_align(x, boxes, image, size=7, scale=1.0, samples=2):
    """Return (boxes, channels, size, size). x is (images, channels, rows, columns), a box x0, y0, x1, y1.

    A sample outside of the image is that of its border. In torchvision it is 0 from one cell on.
    """
    y = output_tensor((boxes.shape[0], x.shape[1], size, size), x.dtype)
    for k, c, i, j in grid(y.shape):
        height = (boxes[k, 3] - boxes[k, 1]) * scale / size
        width = (boxes[k, 2] - boxes[k, 0]) * scale / size
        total = 0.0
        for p, q in grid((samples, samples)):
            row = boxes[k, 1] * scale - 0.5 + (i + (p + 0.5) / samples) * height
            column = boxes[k, 0] * scale - 0.5 + (j + (q + 0.5) / samples) * width
            total += bilinear(x, image[k], c, row, column)
        y[k, c, i, j] = total / samples**2
    return y


# [/roi_align]


# [nms]
def overlap(boxes, m, n):
    width = max(min(boxes[m, 2], boxes[n, 2]) - max(boxes[m, 0], boxes[n, 0]), 0.0)
    height = max(min(boxes[m, 3], boxes[n, 3]) - max(boxes[m, 1], boxes[n, 1]), 0.0)
    area = (boxes[m, 2] - boxes[m, 0]) * (boxes[m, 3] - boxes[m, 1])
    other = (boxes[n, 2] - boxes[n, 0]) * (boxes[n, 3] - boxes[n, 1])
    return width * height / (area + other - width * height)


@polyop.kernel(name="vision::nms")
def nms(boxes, scores, threshold=0.5, count=16):
    """Return the places of the best boxes that no better one overlaps; -1 where there are no more."""
    kept = output_tensor((count,), int32)
    gone = allocate((scores.shape[0],), bool_)
    for k in range(count):
        best, top = -1, -math.inf
        for n in range(scores.shape[0]):
            if not gone[n] and scores[n] > top:
                best, top = n, scores[n]
        kept[k] = best
        if best >= 0:
            gone[best] = True
            for n in range(scores.shape[0]):
                if overlap(boxes, best, n) > threshold:
                    gone[n] = True
    return kept


# [/nms]
