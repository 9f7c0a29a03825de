"""The detector in PyTorch: what is moved."""

import kernels
import numpy as np
import scenes
import torch
from torch import nn
from vision import nms, overlaps, roi_align  # of torchvision.ops, where that is installed

ANCHORS = torch.tensor(scenes.anchors())


def stage(inside, outside):
    return nn.Sequential(nn.Conv2d(inside, outside, 3, 2, 1), nn.GroupNorm(4, outside), nn.ReLU())


def middle_and_side(boxes):
    return (boxes[:, :2] + boxes[:, 2:]) / 2, boxes[:, 2:] - boxes[:, :2]


def decoded(anchors, shifts):
    """Return the boxes that are so far from the anchors, cut to the image."""
    middle, side = middle_and_side(anchors)
    middle, half = middle + shifts[:, :2] * side, side * torch.exp(shifts[:, 2:]) / 2
    return torch.cat([middle - half, middle + half], 1).clamp(0, scenes.SIZE)


def encoded(boxes, others):
    """Return how far the other boxes are from these."""
    (middle, side), (goal, size) = middle_and_side(boxes), middle_and_side(others)
    return torch.cat([(goal - middle) / side, torch.log(size / side)], 1)


class Detector(nn.Module):
    def __init__(self, nms=nms, roi_align=roi_align):
        super().__init__()
        self.nms, self.roi_align = nms, roi_align
        self.stem = nn.Sequential(stage(3, 16), stage(16, 16))
        self.down = stage(16, 32)
        self.lateral = nn.ModuleList([nn.Conv2d(16, 16, 1), nn.Conv2d(32, 16, 1)])
        self.smooth = nn.ModuleList([nn.Conv2d(16, 16, 3, 1, 1), nn.Conv2d(16, 16, 3, 1, 1)])
        self.search = nn.Conv2d(16, 16, 3, 1, 1)
        self.score = nn.Conv2d(16, 1, 1)
        self.shift = nn.Conv2d(16, 4, 1)
        self.hidden = nn.Linear(16 * 4 * 4, 64)
        self.kind = nn.Linear(64, scenes.CLASSES)
        self.box = nn.Linear(64, 4)

    def forward(self, images, truth):
        """Return what each stage computes, by name and in order."""
        fine = self.stem(images)
        coarse = self.down(fine)
        top = self.lateral[1](coarse)
        bottom = self.lateral[0](fine) + nn.functional.interpolate(top, scale_factor=2)
        levels = self.smooth[0](bottom), self.smooth[1](top)
        seen = [nn.functional.relu(self.search(level)) for level in levels]
        scores = torch.cat([self.score(x).flatten(1) for x in seen], 1)
        shifts = torch.cat([self.shift(x).flatten(2).transpose(1, 2) for x in seen], 1)
        boxes = [self.chosen(*each) for each in zip(scores.detach(), shifts.detach(), truth, strict=True)]
        image = torch.cat([torch.full((len(each),), n) for n, each in enumerate(boxes)])
        features = self.features(levels, torch.cat(boxes), image)
        hidden = nn.functional.relu(self.hidden(features.flatten(1)))
        return {
            "fine": fine, "coarse": coarse, "scores": scores, "shifts": shifts, "boxes": boxes,
            "features": features, "kinds": self.kind(hidden), "moves": self.box(hidden),
        }  # fmt: skip

    # [chosen]
    def chosen(self, scores, shifts, truth):
        """Return the proposals of an image, and in training its true boxes too."""
        boxes = decoded(ANCHORS, shifts)
        return torch.cat([boxes[self.nms(boxes, scores, scenes.THRESHOLD)[: scenes.COUNT]], truth])

    # [/chosen]

    # [features]
    def features(self, levels, boxes, image):
        """Return what ROI align reads: small boxes on the fine level, large ones on the coarse one."""
        fine, coarse = (
            self.roi_align(level, boxes, image, 4, 1 / stride)
            for level, stride in zip(levels, scenes.STRIDES, strict=True)
        )
        large = (boxes[:, 2:] - boxes[:, :2]).prod(1).sqrt() >= scenes.LARGE
        return torch.where(large[:, None, None, None], coarse, fine)

    # [/features]


def loss(stages, truth, kinds, known, shifts):
    """Return the sum of the four losses: is it one, where; which one, where."""
    found = nn.functional.binary_cross_entropy_with_logits(stages["scores"], known)
    apart = nn.functional.smooth_l1_loss(stages["shifts"], shifts, reduction="none").sum(-1)
    placed = (apart * known).sum() / known.sum()
    nearest, labels = [], []
    for boxes, true, kind in zip(stages["boxes"], truth, kinds, strict=True):
        share, place = overlaps(boxes, true).max(1)
        nearest.append(true[place])
        labels.append(torch.where(share >= 0.5, kind[place], 0))
    nearest, labels = torch.cat(nearest), torch.cat(labels)
    named = nn.functional.cross_entropy(stages["kinds"], labels)
    goal = encoded(torch.cat(stages["boxes"]), nearest)
    inside = (labels > 0).float()
    moved = (
        nn.functional.smooth_l1_loss(stages["moves"], goal, reduction="none").sum(-1) * inside
    ).sum() / inside.sum()
    return found + placed + named + moved


def arrays(tensors):
    return {name: value.detach().numpy() for name, value in tensors.items()}


# [weights]
def save_weights(path):
    """Write the weights of a new network, by name."""
    torch.manual_seed(0)
    np.savez(path, **arrays(Detector().state_dict()))


# [/weights]


def compiled_nms(boxes, scores, threshold):
    places = kernels.nms(boxes, scores, threshold, scenes.COUNT)
    return places[places >= 0].long()


def ways(weights):
    """Yield a name, what each stage computes, and a function that takes a step."""
    images, truth, kinds, known, shifts = (torch.tensor(x) for x in scenes.batch())
    for name, operators in ("PyTorch", ()), ("PyTorch, with the kernels", (compiled_nms, kernels.roi_align)):
        net = Detector(*operators)
        net.load_state_dict({name: torch.tensor(value) for name, value in weights.items()})
        optimizer = torch.optim.SGD(net.parameters(), scenes.RATE)

        def step(net=net, optimizer=optimizer):
            optimizer.zero_grad()
            value = loss(net(images, truth), truth, kinds.long(), known, shifts)
            value.backward()
            gradients = {name: p.grad.numpy().copy() for name, p in net.named_parameters()}
            optimizer.step()
            return value.item(), gradients

        stages = net(images, truth)
        yield name, arrays({**stages, "boxes": torch.cat(stages["boxes"])}), step
