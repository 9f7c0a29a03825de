"""``ms.vmap`` over operators that write their arguments.

MindSpore runs what has no rule of its own item by item, but refuses what has a side effect. A launch that
writes has one only so that it takes its tensors as they are: what it wrote it gives, and ``ops.assign`` puts
it in place, which MindSpore has a rule for.
"""

from __future__ import annotations

from typing import Any

from mindspore import ops
from mindspore.ops._vmap.vmap_base import vmap_rules_getters

from .launch import Launch
from .written import function


def start() -> None:
    """Let ``ms.vmap`` know launches; other ``ops.Custom`` keep the rule that they had."""
    before = vmap_rules_getters.get("Custom", None)

    def rule_of(primitive: Any, size: int) -> Any:
        if isinstance(primitive, Launch) and primitive.ordered:
            return _item_by_item(primitive.by_value(), size)
        return before(primitive, size) if before else None

    vmap_rules_getters.register("Custom")(rule_of)


def _item_by_item(launch: Launch, size: int) -> Any:
    """Return the rule, from pairs (tensor, axis) and the order of side effects to pairs.

    Its parameters have names, as MindSpore unpacks a pair that is alone; the items stand one by one, as
    loops take its compiler several times as long.
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
    lines += [f"    found = ({' '.join(f'launch{{n}}({row}),' for row in rows)})"]
    lines += ["    for column in zip(*found):", "        outputs = (*outputs, (stack{n}(column), 0))"]
    text = "\n".join([*lines, "    return outputs"])
    return function("rule", text, launch=launch, unbind=ops.unbind, stack=ops.stack)
