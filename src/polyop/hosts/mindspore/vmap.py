"""``ms.vmap`` over operators that write their arguments.

MindSpore runs what has no rule of its own item by item, but refuses what has a side effect. A launch that
writes has one only so that it takes its tensors as they are: what it wrote it gives, and ``ops.assign`` puts
it in place, which MindSpore has a rule for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mindspore import ops
from mindspore.ops._vmap.vmap_base import vmap_rules_getters

from .launch import Launch


def start() -> None:
    """Let ``ms.vmap`` know launches; other ``ops.Custom`` keep the rule that they had."""
    before = vmap_rules_getters.get("Custom", None)

    def rule_of(primitive: Any, axis_size: int) -> Callable[..., Any] | None:
        if isinstance(primitive, Launch) and primitive.ordered:
            return _item_by_item(primitive.by_value(), axis_size)
        return before(primitive, axis_size) if before else None

    vmap_rules_getters.register("Custom")(rule_of)


def _item_by_item(launch: Launch, axis_size: int) -> Callable[..., Any]:
    stack, unstack = ops.stack, ops.unbind

    # MindSpore reads its text. Given are pairs (tensor, axis), and the order of side effects
    def rule(*arguments: Any) -> Any:
        columns: tuple[Any, ...] = ()
        for tensor, axis in arguments[:-1]:
            items = (tensor,) * axis_size if axis is None else unstack(tensor, axis)
            columns = (*columns, items)
        found = [launch(*row) for row in zip(*columns)]  # noqa: B905 - MindSpore knows no strict=
        outputs: tuple[Any, ...] = ()
        for column in zip(*found):  # noqa: B905 - same
            outputs = (*outputs, (stack(column), 0))
        return outputs

    return rule
