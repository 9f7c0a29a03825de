"""ROI align and NMS in plain PyTorch: the two operators of torchvision that the detector calls."""

import torch


def roi_align(x, boxes, image, size, scale, samples=2):
    """Return averages of samples in a grid of each box, as ``torchvision.ops.roi_align(aligned=True)``."""
    x0, y0, x1, y1 = (boxes * scale).T[..., None]
    at = (torch.arange(size * samples) + 0.5) / (size * samples)
    rows, columns = y0 + at * (y1 - y0) - 0.5, x0 + at * (x1 - x0) - 0.5
    places = torch.stack(
        [
            (2 * columns / (x.shape[3] - 1) - 1)[:, None, :].expand(-1, len(at), -1),
            (2 * rows / (x.shape[2] - 1) - 1)[:, :, None].expand(-1, -1, len(at)),
        ],
        -1,
    )
    sampled = torch.nn.functional.grid_sample(x[image], places, padding_mode="border", align_corners=True)
    return torch.nn.functional.avg_pool2d(sampled, samples)


def overlaps(boxes, others):
    """Return the intersection of each box with each other one, over their union."""
    low = torch.maximum(boxes[:, None, :2], others[None, :, :2])
    high = torch.minimum(boxes[:, None, 2:], others[None, :, 2:])
    common = (high - low).clamp(min=0).prod(-1)
    area, other = ((each[:, 2:] - each[:, :2]).prod(-1) for each in (boxes, others))
    return common / (area[:, None] + other[None] - common)


def nms(boxes, scores, threshold):
    """Return the places of the boxes that no better one overlaps, as ``torchvision.ops.nms``."""
    kept, close = [], (overlaps(boxes, boxes) > threshold).tolist()
    for place in scores.argsort(descending=True).tolist():
        if not any(close[place][other] for other in kept):
            kept.append(place)
    return torch.tensor(kept, dtype=torch.int64)
