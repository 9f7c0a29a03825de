"""Losses as cells, with MindSpore's defaults."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ..cell import Cell
from ..ops import losses


class _Loss(Cell):
    _function: Callable[..., Any]

    def __init__(self, reduction: str = "mean", **settings: Any) -> None:
        super().__init__()
        self.reduction = losses.checked_reduction(f"nn.{type(self).__name__}", reduction)
        self.settings = settings

    def construct(self, logits: Any, labels: Any) -> Any:
        """Return the loss."""
        return self._function(logits, labels, reduction=self.reduction, **self.settings)


class MSELoss(_Loss):
    """The mean of squared differences."""

    _function = staticmethod(losses.mse_loss)


class L1Loss(_Loss):
    """The mean of absolute differences."""

    _function = staticmethod(losses.l1_loss)


class BCELoss(_Loss):
    """The cross entropy of probabilities of two classes."""

    _function = staticmethod(losses.binary_cross_entropy)

    def __init__(self, weight: Any = None, reduction: str = "mean") -> None:
        super().__init__(reduction, weight=weight)


class CrossEntropyLoss(_Loss):
    """The cross entropy of softmax; labels are class indices of any integer dtype, or probabilities."""

    _function = staticmethod(losses.cross_entropy)

    def __init__(
        self,
        weight: Any = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(reduction, weight=weight, ignore_index=ignore_index, label_smoothing=label_smoothing)


class SoftmaxCrossEntropyWithLogits(_Loss):
    """The cross entropy of softmax per row; labels are class indices if ``sparse``, else probabilities."""

    def __init__(self, sparse: bool = False, reduction: str = "none") -> None:
        super().__init__(reduction)
        self.sparse = sparse

    def construct(self, logits: Any, labels: Any) -> Any:
        """Return the loss."""
        target = labels.to(torch.int64) if self.sparse else labels.detach()  # MindSpore's have no gradient
        return losses.cross_entropy(logits, target, reduction=self.reduction)
