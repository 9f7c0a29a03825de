"""Cells of a training loop."""

from __future__ import annotations

from typing import Any

from ..cell import Cell
from ..grad import evaluate
from ..ops.creation import full_like


class WithLossCell(Cell):
    """The loss of a network: ``loss_fn(backbone(data), label)``."""

    def __init__(self, backbone: Any, loss_fn: Any) -> None:
        super().__init__(auto_prefix=False)
        self.backbone, self.loss_fn = backbone, loss_fn

    def construct(self, data: Any, label: Any) -> Any:
        """Return the loss."""
        return self.loss_fn(self.backbone(data), label)


class TrainOneStepCell(Cell):
    """One training step: computes the loss and its gradients times ``sens``, updates, returns the loss.

    In ``GRAPH_MODE`` the network's forward and backward are a graph; the update is not part of it.
    """

    _is_captured = False

    def __init__(self, network: Any, optimizer: Any, sens: float = 1.0) -> None:
        super().__init__(auto_prefix=False)
        self.network, self.optimizer, self.sens = network, optimizer, sens

    def construct(self, *inputs: Any) -> Any:
        """Return the loss before the update."""
        weights = list(self.optimizer.parameters)
        loss, _, gradients = evaluate(self.network, inputs, {}, (), weights)
        if self.sens != 1.0:
            gradients = tuple(g * full_like(g, self.sens) for g in gradients)
        self.optimizer(gradients)
        return loss
