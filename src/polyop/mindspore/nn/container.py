"""Cells that hold cells: containers, and the cells of a training loop."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any

from ..cell import Cell
from ..grad import evaluate
from ..ops.creation import full_like


class _CellContainer(Cell):
    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __getitem__(self, index: Any) -> Any:
        selected = list(self._modules.values())[index]
        return type(self)(selected) if isinstance(index, slice) else selected

    def append(self, cell: Any) -> Any:
        """Add a cell at the end, and return this one."""
        setattr(self, str(len(self)), cell)
        return self


class SequentialCell(_CellContainer):
    """Calls its cells one after the other. Made of cells, a list of cells, or an ``OrderedDict``."""

    def __init__(self, *args: Any) -> None:
        super().__init__()
        listed = args[0] if len(args) == 1 and not isinstance(args[0], Cell) else args
        named = (
            listed.items() if isinstance(listed, OrderedDict) else ((str(i), c) for i, c in enumerate(listed))
        )
        for name, cell in named:
            setattr(self, name, cell)

    def construct(self, x: Any) -> Any:
        """Return the last cell's value."""
        for cell in self._modules.values():
            x = cell(x)
        return x


class CellList(_CellContainer):
    """A list of cells, registered with the cell that holds it."""

    def __init__(self, *args: Any) -> None:
        super().__init__()
        listed = args[0] if len(args) == 1 and not isinstance(args[0], Cell) else args
        self.extend(listed)

    def extend(self, cells: Iterable[Any]) -> CellList:
        """Add cells at the end, and return this one."""
        for cell in cells:
            self.append(cell)
        return self


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
