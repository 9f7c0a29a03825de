"""Two images with two bright rectangles each, the anchors of both levels, and what each anchor is to say."""

import numpy as np

SIZE, STRIDES, SIDES = (
    64,
    (4, 8),
    (14.0, 28.0),
)  # of an image, of a cell of each level, of an anchor of each level
COUNT, THRESHOLD, LARGE = 14, 0.6, 20.0  # proposals of an image; NMS; the side from which a box is on level 1
CLASSES = 3  # the background, a red rectangle, a blue one
RATE, STEPS = 0.05, 10  # of the training


def anchors():
    """Return (cells of both levels, 4): x0, y0, x1, y1 of a square on each cell."""
    levels = []
    for stride, side in zip(STRIDES, SIDES, strict=True):
        middle = (np.arange(SIZE // stride) + 0.5) * stride
        x, y = (each.ravel() for each in np.meshgrid(middle, middle))
        levels.append(np.stack([x - side / 2, y - side / 2, x + side / 2, y + side / 2], 1))
    return np.concatenate(levels).astype(np.float32)


def overlaps(boxes, others):
    """Return the intersection of each box with each other one, over their union."""
    low = np.maximum(boxes[:, None, :2], others[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], others[None, :, 2:])
    common = np.prod(np.maximum(high - low, 0), -1)
    area, other = ((each[:, 2:] - each[:, :2]).prod(-1) for each in (boxes, others))
    return common / (area[:, None] + other[None] - common)


def scenes():
    """Return images, the boxes of their rectangles, and the classes of these."""
    random = np.random.default_rng(3)
    images = random.normal(size=(2, 3, SIZE, SIZE)).astype(np.float32) / 4
    truth = np.array([[[6, 8, 22, 20], [28, 26, 58, 56]], [[35, 5, 60, 33], [10, 40, 22, 55]]], np.float32)
    kinds = np.array([[1, 2], [2, 1]], np.int32)
    for image, boxes, classes in zip(images, truth.astype(int), kinds, strict=True):
        for (x0, y0, x1, y1), kind in zip(boxes, classes, strict=True):
            image[2 * (kind - 1), y0:y1, x0:x1] += 2
    return images, truth, kinds


def targets(truth):
    """Return for each image and anchor whether it is a rectangle, and how far that is from it."""
    boxes, known, shifts = anchors(), [], []
    for each in truth:
        shared = overlaps(boxes, each)
        nearest = each[shared.argmax(1)]
        known.append((shared.max(1) >= 0.4).astype(np.float32))
        side, size = boxes[:, 2:] - boxes[:, :2], nearest[:, 2:] - nearest[:, :2]
        moved = (nearest[:, :2] + nearest[:, 2:] - boxes[:, :2] - boxes[:, 2:]) / 2 / side
        shifts.append(np.concatenate([moved, np.log(size / side)], 1))
    return np.stack(known), np.stack(shifts).astype(np.float32)


def batch():
    """Return images, truth, kinds, known, shifts: what one step of training reads."""
    images, truth, kinds = scenes()
    return images, truth, kinds, *targets(truth)
