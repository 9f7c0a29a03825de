"""The detector moved to MindSpore: cells, in PyNative and in graph mode."""

import mindspore as ms
import scenes
from kernels import nms, roi_align
from mindspore import nn, ops


# [layers]
def conv(inside, outside, size=3, stride=1):
    """Return the layer that torch.nn.Conv2d(inside, outside, size, stride, size // 2) is."""
    return nn.Conv2d(inside, outside, size, stride, "pad", size // 2, has_bias=True)


def stage(inside, outside):
    return nn.SequentialCell(conv(inside, outside, 3, 2), nn.GroupNorm(4, outside, eps=1e-5), nn.ReLU())


# [/layers]


def middle_and_side(boxes):
    return (boxes[:, :2] + boxes[:, 2:]) / 2, boxes[:, 2:] - boxes[:, :2]


def decoded(anchors, shifts):
    middle, side = middle_and_side(anchors)
    middle = middle + shifts[:, :2] * side
    half = side * ops.exp(shifts[:, 2:]) / 2
    return ops.clamp(ops.cat([middle - half, middle + half], 1), 0, scenes.SIZE)


def encoded(boxes, others):
    middle, side = middle_and_side(boxes)
    goal, size = middle_and_side(others)
    return ops.cat([(goal - middle) / side, ops.log(size / side)], 1)


def overlaps(boxes, others):
    low = ops.maximum(boxes[:, None, :2], others[None, :, :2])
    high = ops.minimum(boxes[:, None, 2:], others[None, :, 2:])
    sides = ops.relu(high - low)
    common = sides[:, :, 0] * sides[:, :, 1]
    _, side = middle_and_side(boxes)
    _, other = middle_and_side(others)
    return common / ((side[:, 0] * side[:, 1])[:, None] + (other[:, 0] * other[:, 1])[None] - common)


class Detector(nn.Cell):
    def __init__(self):
        super().__init__()
        self.stem = nn.SequentialCell(stage(3, 16), stage(16, 16))
        self.down = stage(16, 32)
        self.lateral = nn.CellList([conv(16, 16, 1), conv(32, 16, 1)])
        self.smooth = nn.CellList([conv(16, 16), conv(16, 16)])
        self.search = conv(16, 16)
        self.score = conv(16, 1, 1)
        self.shift = conv(16, 4, 1)
        self.hidden = nn.Dense(16 * 4 * 4, 64)
        self.kind = nn.Dense(64, scenes.CLASSES)
        self.box = nn.Dense(64, 4)
        self.anchors = ms.Tensor(scenes.anchors())

    def construct(self, images, truth):
        """Return what each stage computes, in the order of STAGES."""
        fine = self.stem(images)
        coarse = self.down(fine)
        top = self.lateral[1](coarse)
        bottom = self.lateral[0](fine) + ops.repeat_interleave(ops.repeat_interleave(top, 2, 2), 2, 3)
        levels = (self.smooth[0](bottom), self.smooth[1](top))
        seen = [ops.relu(self.search(level)) for level in levels]
        scores = ops.cat([self.score(x).flatten(start_dim=1) for x in seen], 1)
        shifts = ops.cat([self.shift(x).flatten(start_dim=2).transpose(0, 2, 1) for x in seen], 1)
        boxes, there, image = [], [], []
        for n in range(truth.shape[0]):
            found, real = self.chosen(ops.stop_gradient(scores[n]), ops.stop_gradient(shifts[n]), truth[n])
            boxes.append(found)
            there.append(real)
            image.append(ops.full((scenes.COUNT + truth.shape[1],), n, dtype=ms.int32))
        boxes, there, image = ops.cat(boxes), ops.cat(there), ops.cat(image)
        features = self.features(levels, boxes, image)
        hidden = ops.relu(self.hidden(features.flatten(start_dim=1)))
        return fine, coarse, scores, shifts, boxes, there, features, self.kind(hidden), self.box(hidden)

    # [chosen]
    def chosen(self, scores, shifts, truth):
        """Return COUNT proposals of an image and its true boxes, and which of them there are."""
        boxes = decoded(self.anchors, shifts)
        places = nms(boxes, scores, scenes.THRESHOLD, scenes.COUNT)  # -1: no more boxes
        there = ops.cat([(places >= 0).astype(ms.float32), ops.ones(truth.shape[0], ms.float32)])
        return ops.cat([boxes[ops.relu(places)], truth]), there

    # [/chosen]

    def features(self, levels, boxes, image):
        fine = roi_align(levels[0], boxes, image, 4, 1 / scenes.STRIDES[0])
        coarse = roi_align(levels[1], boxes, image, 4, 1 / scenes.STRIDES[1])
        _, side = middle_and_side(boxes)
        large = ops.sqrt(side[:, 0] * side[:, 1]) >= scenes.LARGE
        return ops.where(large[:, None, None, None], coarse, fine)


STAGES = ("fine", "coarse", "scores", "shifts", "boxes", "there", "features", "kinds", "moves")


class Loss(nn.Cell):
    """The detector and its loss."""

    def __init__(self, detector):
        super().__init__(auto_prefix=False)
        self.detector = detector

    def construct(self, images, truth, kinds, known, shifts):
        _, _, scores, seen, boxes, there, _, named, moves = self.detector(images, truth)
        found = (ops.softplus(scores) - scores * known).mean()
        apart = ops.smooth_l1_loss(seen, shifts, reduction="none").sum(-1)
        placed = (apart * known).sum() / known.sum()
        nearest, labels = [], []
        for n in range(truth.shape[0]):
            count = scenes.COUNT + truth.shape[1]
            share = overlaps(boxes[n * count : (n + 1) * count], truth[n])
            place = share.argmax(axis=1)
            nearest.append(truth[n][place])
            labels.append(ops.where(share.max(axis=1) >= 0.5, kinds[n][place], 0))
        nearest, labels = ops.cat(nearest), ops.cat(labels)
        errors = ops.cross_entropy(named, labels, reduction="none")
        errors = (errors * there).sum() / there.sum()
        inside = (labels > 0).astype(ms.float32) * there
        apart = ops.smooth_l1_loss(moves, encoded(boxes, nearest), reduction="none").sum(-1)
        return found + placed + errors + (apart * inside).sum() / inside.sum()


# [weights]
THEIRS = {"gamma": "weight", "beta": "bias"}  # what MindSpore calls the weights of GroupNorm


def name_in_torch(name):
    path, dot, last = name.rpartition(".")
    return path + dot + THEIRS.get(last, last)


def load_weights(net, weights):
    """Set each parameter; an error if a weight is left, or of another shape."""
    left = dict(weights)
    for name, parameter in net.parameters_dict().items():
        value = left.pop(name_in_torch(name))
        assert parameter.shape == value.shape, name
        parameter.set_data(ms.Tensor(value))
    assert not left, f"no parameter takes {list(left)}"


# [/weights]


# [ways]
def ways(weights):
    """Yield a name, what each stage computes, and a function that takes a step."""
    batch = [ms.Tensor(x) for x in scenes.batch()]
    for name, mode in ("MindSpore, PyNative", ms.PYNATIVE_MODE), ("MindSpore, graph mode", ms.GRAPH_MODE):
        ms.set_context(mode=mode, device_target="CPU")
        net = Detector()
        load_weights(net, weights)
        optimizer = nn.SGD(net.trainable_params(), scenes.RATE)
        descend = ms.value_and_grad(Loss(net), None, optimizer.parameters)

        def step(optimizer=optimizer, descend=descend):
            value, slopes = descend(*batch)
            named = zip(optimizer.parameters, slopes, strict=True)
            gradients = {name_in_torch(p.name): slope.asnumpy() for p, slope in named}
            optimizer(slopes)
            return float(value.asnumpy()), gradients

        found = zip(STAGES, net(*batch[:2]), strict=True)
        yield name, {stage: value.asnumpy() for stage, value in found}, step


# [/ways]
