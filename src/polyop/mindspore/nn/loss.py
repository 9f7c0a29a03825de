"""Losses, with MindSpore's defaults."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from ...core.errors import ArgumentValueError
from ..cell import Cell
from ..interpose import wrap

REDUCTIONS = ("mean", "sum", "none")


class _Loss(Cell):
    _function: Callable[..., Any]

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = _checked(type(self).__name__, reduction)

    def construct(self, logits: Any, labels: Any) -> Any:
        """Return the loss."""
        return wrap(self._function(logits, labels, reduction=self.reduction))


class MSELoss(_Loss):
    """The mean of squared differences."""

    _function = staticmethod(functional.mse_loss)


class L1Loss(_Loss):
    """The mean of absolute differences."""

    _function = staticmethod(functional.l1_loss)


class BCELoss(_Loss):
    """The cross entropy of probabilities of two classes."""

    _function = staticmethod(functional.binary_cross_entropy)


class CrossEntropyLoss(_Loss):
    """The cross entropy of softmax; labels are classes or probabilities."""

    _function = staticmethod(functional.cross_entropy)


class SoftmaxCrossEntropyWithLogits(Cell):
    """The cross entropy of softmax for each row; ``sparse`` labels are classes, else probabilities."""

    def __init__(self, sparse: bool = False, reduction: str = "none") -> None:
        super().__init__()
        self.sparse, self.reduction = sparse, _checked(type(self).__name__, reduction)

    def construct(self, logits: Any, labels: Any) -> Any:
        """Return the loss."""
        target = labels.to(torch.int64) if self.sparse else labels
        return wrap(functional.cross_entropy(logits, target, reduction=self.reduction))


def _checked(name: str, reduction: str) -> str:
    if reduction not in REDUCTIONS:
        rule = f"reduction must be one of {', '.join(REDUCTIONS)}"
        raise ArgumentValueError(f"nn.{name}", rule, repr(reduction))
    return reduction
