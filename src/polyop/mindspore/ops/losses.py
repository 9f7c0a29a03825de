"""Losses as functions, with MindSpore's arguments. Class indices may have any integer dtype."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from ...core.errors import ArgumentValueError
from ..interpose import plain_attributes, wrap
from .arguments import Function

REDUCTIONS = ("mean", "sum", "none")


def checked_reduction(subject: str, reduction: Any) -> str:
    """Return the reduction; raises ``ArgumentValueError`` for an unknown one."""
    if not isinstance(reduction, str) or reduction not in REDUCTIONS:
        rule = f"reduction must be one of {', '.join(REDUCTIONS)}"
        raise ArgumentValueError(subject, rule, repr(reduction))
    return reduction


def _class_indices(target: Any) -> Any:
    """Return class indices as Int64, which PyTorch needs; probabilities unchanged."""
    with plain_attributes():
        is_index = not (target.is_floating_point() or target.is_complex())
    return torch.Tensor.to(target, torch.int64) if is_index else target


def cross_entropy(
    input: Any,  # noqa: A002 - MindSpore's name
    target: Any,
    weight: Any = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:
    """Return the cross entropy of softmax; ``target`` has class indices or probabilities."""
    loss = functional.cross_entropy(
        input,
        _class_indices(target),
        weight,
        ignore_index=ignore_index,
        reduction=checked_reduction("cross_entropy", reduction),
        label_smoothing=label_smoothing,
    )
    return wrap(loss)


def nll_loss(
    inputs: Any,
    target: Any,
    weight: Any = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Any:
    """Return the negative log likelihood of the class indices in ``target``."""
    how = checked_reduction("nll_loss", reduction)
    indices = _class_indices(target)
    return wrap(functional.nll_loss(inputs, indices, weight, ignore_index=ignore_index, reduction=how))


def binary_cross_entropy(logits: Any, labels: Any, weight: Any = None, reduction: str = "mean") -> Any:
    """Return the cross entropy of probabilities of two classes."""
    how = checked_reduction("binary_cross_entropy", reduction)
    return wrap(functional.binary_cross_entropy(logits, labels, weight, reduction=how))


def binary_cross_entropy_with_logits(
    logits: Any, label: Any, weight: Any = None, pos_weight: Any = None, reduction: str = "mean"
) -> Any:
    """Return the cross entropy of sigmoid."""
    how = checked_reduction("binary_cross_entropy_with_logits", reduction)
    call = functional.binary_cross_entropy_with_logits
    return wrap(call(logits, label, weight, reduction=how, pos_weight=pos_weight))


def _of_difference(name: str) -> Function:
    function = getattr(functional, name)

    def loss(input: Any, target: Any, reduction: str = "mean") -> Any:  # noqa: A002
        return wrap(function(input, target, reduction=checked_reduction(name, reduction)))

    loss.__name__, loss.__doc__ = name, f"Return {name}, reduced."
    return loss


mse_loss, l1_loss = _of_difference("mse_loss"), _of_difference("l1_loss")


def smooth_l1_loss(input: Any, target: Any, beta: float = 1.0, reduction: str = "none") -> Any:  # noqa: A002
    """Return half the squared difference over ``beta`` where it is below ``beta``, else linear."""
    how = checked_reduction("smooth_l1_loss", reduction)
    return wrap(functional.smooth_l1_loss(input, target, reduction=how, beta=beta))


FUNCTIONS: dict[str, Function] = {
    function.__name__: function
    for function in (
        cross_entropy, nll_loss, binary_cross_entropy, binary_cross_entropy_with_logits, mse_loss, l1_loss,
        smooth_l1_loss,
    )
}  # fmt: skip
