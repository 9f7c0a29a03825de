"""``mindspore.nn``: cells."""

from __future__ import annotations

from typing import Any

from ..cell import Cell
from ..nearest import OF_NN, missing
from .activation import ACTIVATIONS
from .container import CellList, SequentialCell, TrainOneStepCell, WithLossCell
from .layers import Conv2d, Dense, Dropout, Embedding, Flatten
from .loss import BCELoss, CrossEntropyLoss, L1Loss, MSELoss, SoftmaxCrossEntropyWithLogits
from .norm import BatchNorm1d, BatchNorm2d, GroupNorm, LayerNorm
from .optim import SGD, Adam, Momentum, Optimizer
from .pooling import AvgPool2d, MaxPool2d

__all__ = [  # noqa: PLE0604 - with the names of a table
    "SGD", "Adam", "AvgPool2d", "BCELoss", "BatchNorm1d", "BatchNorm2d",
    "Cell", "CellList", "Conv2d", "CrossEntropyLoss", "Dense", "Dropout", "Embedding", "Flatten",
    "GroupNorm", "L1Loss", "LayerNorm", "MSELoss", "MaxPool2d", "Momentum", "Optimizer", "SequentialCell",
    "SoftmaxCrossEntropyWithLogits", "TrainOneStepCell", "WithLossCell", *sorted(ACTIVATIONS),
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in ACTIVATIONS:
        return ACTIVATIONS[name]
    raise missing(__name__, name, __all__, OF_NN)
