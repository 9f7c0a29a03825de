"""The detector moved to JAX: functions of the weights, which keep their names and layouts."""

import jax
import jax.numpy as jnp
import numpy as np
import scenes
from kernels import nms, roi_align

ANCHORS = scenes.anchors()
relu = jax.nn.relu


# [layers]
def conv(weights, name, x, stride=1):
    """Return what torch.nn.Conv2d returns; a kernel of 3 is padded by 1."""
    kernel = weights[f"{name}.weight"]
    pad = kernel.shape[2] // 2
    y = jax.lax.conv_general_dilated(
        x, kernel, (stride, stride), ((pad, pad), (pad, pad)), dimension_numbers=("NCHW", "OIHW", "NCHW")
    )
    return y + weights[f"{name}.bias"][:, None, None]


def group_norm(weights, name, x, groups=4):
    parts = x.reshape(x.shape[0], groups, -1)
    parts = parts - parts.mean(-1, keepdims=True)
    parts = parts / jnp.sqrt(jnp.square(parts).mean(-1, keepdims=True) + 1e-5)
    scale, start = weights[f"{name}.weight"], weights[f"{name}.bias"]
    return parts.reshape(x.shape) * scale[:, None, None] + start[:, None, None]


def linear(weights, name, x):
    return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


# [/layers]


def stage(weights, name, x):
    return relu(group_norm(weights, f"{name}.1", conv(weights, f"{name}.0", x, 2)))


def middle_and_side(boxes):
    return (boxes[..., :2] + boxes[..., 2:]) / 2, boxes[..., 2:] - boxes[..., :2]


def decoded(anchors, shifts):
    middle, side = middle_and_side(anchors)
    middle, half = middle + shifts[..., :2] * side, side * jnp.exp(shifts[..., 2:]) / 2
    return jnp.concatenate([middle - half, middle + half], -1).clip(0, scenes.SIZE)


def encoded(boxes, others):
    (middle, side), (goal, size) = middle_and_side(boxes), middle_and_side(others)
    return jnp.concatenate([(goal - middle) / side, jnp.log(size / side)], -1)


def overlaps(boxes, others):
    low = jnp.maximum(boxes[:, None, :2], others[None, :, :2])
    high = jnp.minimum(boxes[:, None, 2:], others[None, :, 2:])
    common = (high - low).clip(0).prod(-1)
    area, other = ((each[:, 2:] - each[:, :2]).prod(-1) for each in (boxes, others))
    return common / (area[:, None] + other[None] - common)


# [chosen]
def chosen(scores, shifts, truth):
    """Return COUNT proposals of an image and its true boxes, and which of them there are."""
    boxes = decoded(ANCHORS, shifts)
    places = nms(boxes, scores, scenes.THRESHOLD, scenes.COUNT)  # -1: no more boxes
    there = jnp.concatenate([places >= 0, jnp.ones(len(truth), bool)])
    return jnp.concatenate([boxes[jnp.maximum(places, 0)], truth]), there


# [/chosen]


def features(levels, boxes, image):
    fine, coarse = (
        roi_align(level, boxes, image, 4, 1 / stride)
        for level, stride in zip(levels, scenes.STRIDES, strict=True)
    )
    large = jnp.sqrt((boxes[:, 2:] - boxes[:, :2]).prod(1)) >= scenes.LARGE
    return jnp.where(large[:, None, None, None], coarse, fine)


def forward(weights, images, truth):
    """Return what each stage computes, by name and in order."""
    fine = stage(weights, "stem.1", stage(weights, "stem.0", images))
    coarse = stage(weights, "down", fine)
    top = conv(weights, "lateral.1", coarse)
    bottom = conv(weights, "lateral.0", fine) + top.repeat(2, 2).repeat(2, 3)
    levels = conv(weights, "smooth.0", bottom), conv(weights, "smooth.1", top)
    seen = [relu(conv(weights, "search", level)) for level in levels]
    scores = jnp.concatenate([conv(weights, "score", x).reshape(len(x), -1) for x in seen], 1)
    shifts = [conv(weights, "shift", x).reshape(len(x), 4, -1).transpose(0, 2, 1) for x in seen]
    shifts = jnp.concatenate(shifts, 1)
    boxes, there = jax.vmap(chosen)(*jax.lax.stop_gradient((scores, shifts)), truth)
    image = jnp.repeat(jnp.arange(len(boxes)), boxes.shape[1])
    read = features(levels, boxes.reshape(-1, 4), image)
    hidden = relu(linear(weights, "hidden", read.reshape(len(read), -1)))
    return {
        "fine": fine, "coarse": coarse, "scores": scores, "shifts": shifts, "boxes": boxes, "there": there,
        "features": read, "kinds": linear(weights, "kind", hidden), "moves": linear(weights, "box", hidden),
    }  # fmt: skip


def smooth_l1(x, y):
    apart = jnp.abs(x - y)
    return jnp.where(apart < 1, apart**2 / 2, apart - 0.5)


def loss(stages, truth, kinds, known, shifts):
    found = jnp.mean(jax.nn.softplus(stages["scores"]) - stages["scores"] * known)
    placed = (smooth_l1(stages["shifts"], shifts).sum(-1) * known).sum() / known.sum()
    shares = jax.vmap(overlaps)(stages["boxes"], truth)
    place = shares.argmax(-1)
    nearest = jnp.take_along_axis(truth, place[..., None], 1)
    labels = jnp.where(shares.max(-1) >= 0.5, jnp.take_along_axis(kinds, place, 1), 0).ravel()
    there = stages["there"].ravel()
    named = -jnp.take_along_axis(jax.nn.log_softmax(stages["kinds"]), labels[:, None], 1)[:, 0]
    named = jnp.where(there, named, 0).sum() / there.sum()
    inside = (labels > 0) & there
    apart = smooth_l1(stages["moves"], encoded(stages["boxes"], nearest).reshape(-1, 4)).sum(-1)
    return found + placed + named + jnp.where(inside, apart, 0).sum() / inside.sum()


# [ways]
def ways(weights):
    """Yield a name, what each stage computes, and a function that takes a step."""
    images, *rest = scenes.batch()

    def loss_of(weights):
        return loss(forward(weights, images, rest[0]), *rest)

    def stages_of(weights):
        return forward(weights, images, rest[0])

    for name, compiled in ("JAX, eager", lambda f: f), ("JAX, jit", jax.jit):
        descend = compiled(jax.value_and_grad(loss_of))
        state = dict(weights)

        def step(state=state, descend=descend):
            value, gradients = descend(state)
            state.update({name: state[name] - scenes.RATE * slope for name, slope in gradients.items()})
            return float(value), {name: np.asarray(slope) for name, slope in gradients.items()}

        stages = {name: np.asarray(value) for name, value in compiled(stages_of)(weights).items()}
        yield name, {**stages, "boxes": stages["boxes"].reshape(-1, 4)}, step


# [/ways]
