"""``ms.vmap`` over operators that write their arguments.

MindSpore runs a primitive without a batching rule item by item, but refuses one with a side effect.
A launch that writes is marked as having one only so that MindSpore passes its tensors uncopied. Under
vmap it runs without the mark: it returns what it wrote, and ``ops.assign``, for which MindSpore has a
rule, copies that into the argument.
"""

from __future__ import annotations

from typing import Any

from mindspore import ops
from mindspore.ops._vmap.vmap_base import vmap_rules_getters

from .generated import make_function
from .launch import Launch


def start() -> None:
    """Register the batching rule of launches; any other ``ops.Custom`` keeps its own rule."""
    previous = vmap_rules_getters.get("Custom", None)

    def rule_of(primitive: Any, size: int) -> Any:
        if isinstance(primitive, Launch) and primitive.ordered:
            return _item_by_item(primitive.by_value(), size)
        return previous(primitive, size) if previous else None

    vmap_rules_getters.register("Custom")(rule_of)


def _item_by_item(launch: Launch, size: int) -> Any:
    """Return the rule: it takes (tensor, axis) pairs and the effect token, and returns such pairs.

    The rule has one named parameter per pair, because MindSpore would unpack a single ``*args`` pair.
    Its text is unrolled: a loop takes MindSpore's compiler several times as long.
    """
    numbers = range(launch.inputs)
    tensors = ", ".join(f"x{i}" for i in numbers)
    lines = [f"def rule{{n}}({', '.join(f'pair{i}' for i in numbers)}, order):", "    outputs = ()"]
    lines += [f"    x{i}, axis{i} = pair{i}" for i in numbers]
    lines += [f"    if {' and '.join(f'axis{i} is None' for i in numbers)}:"]
    lines += [f"        for one in launch{{n}}({tensors}):", "            outputs = (*outputs, (one, None))"]
    lines += ["        return outputs"]
    lines += [
        f"    items{i} = (x{i},) * {size} if axis{i} is None else unbind{{n}}(x{i}, axis{i})" for i in numbers
    ]
    rows = (", ".join(f"items{i}[{k}]" for i in numbers) for k in range(size))
    lines += [f"    results = ({' '.join(f'launch{{n}}({row}),' for row in rows)})"]
    lines += ["    for column in zip(*results):", "        outputs = (*outputs, (stack{n}(column), 0))"]
    text = "\n".join([*lines, "    return outputs"])
    return make_function("rule", text, launch=launch, unbind=ops.unbind, stack=ops.stack)
