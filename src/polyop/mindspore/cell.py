"""``nn.Cell``: PyTorch's ``Module`` with MindSpore's names, ``construct`` and ``bprop``."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import torch

from . import context
from .bprop import of_cell
from .capture import captured_cell
from .parameter import DEFAULT_NAME, Parameter, ParameterTuple


class Cell(torch.nn.Module):  # type: ignore[misc]
    """A network or a part of one. Parameters and cells are attributes; ``construct`` computes.

    In ``GRAPH_MODE`` the outermost cell that is called is captured as one graph, with the cells in
    it. A method ``bprop(self, *inputs, out, dout)`` is the cell's gradient: it returns a tuple with
    one gradient or None per input. For a cell with parameters it returns (that tuple, a dict from
    the parameters to their gradients).
    """

    _is_captured = True  # whether GRAPH_MODE makes a graph of a call

    def __init__(self, auto_prefix: bool = True, flags: Any = None) -> None:
        super().__init__()
        del flags  # hints for MindSpore's compiler
        self.auto_prefix = auto_prefix
        self.training = False  # PyTorch's modules start in training mode
        self._own_bprop = getattr(type(self), "bprop", None) is not None
        self._bridge: Any = None

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Parameter) and value.name == DEFAULT_NAME:
            value.name = name
        if isinstance(value, ParameterTuple):  # MindSpore's cells own its items, by their names
            self._parameters.update((p.name, p) for p in value)
        if isinstance(value, Cell) and self.__dict__.get("auto_prefix", True):
            value.update_parameters_name(f"{name}.", recurse=True)
        super().__setattr__(name, value)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_bridge": None, "_graph": None}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return ``construct``'s result; in ``GRAPH_MODE`` it is computed by a graph."""
        if self._own_bprop and self._bridge is None:
            self._prepare()
        if torch.compiler.is_dynamo_compiling() or not (context.graph_mode() and self._is_captured):
            return super().__call__(*args, **kwargs)
        if self.__dict__.get("_graph") is None:
            for _, cell in self.cells_and_names():
                cell._prepare()  # noqa: SLF001 - another cell's
            self.__dict__["_graph"] = captured_cell(self)
        return self.__dict__["_graph"](*args, **kwargs)

    def _prepare(self) -> None:
        if self._own_bprop and self._bridge is None:
            self._bridge = of_cell(self)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return ``construct``'s result, with ``bprop`` as its gradient if the cell has one."""
        if self._own_bprop:
            return self._bridge(*args, **kwargs)
        return self.construct(*args, **kwargs)

    def construct(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the cell's result. Every cell defines it."""
        raise NotImplementedError(f"{type(self).__name__} has no method construct")

    def get_parameters(self, expand: bool = True) -> Iterator[Parameter]:
        """Yield the parameters, with those of the cells inside unless ``expand`` is False."""
        yield from self.parameters(recurse=expand)

    def parameters_and_names(self, name_prefix: str = "", expand: bool = True) -> Iterator[tuple[str, Any]]:
        """Yield (attribute path, parameter)."""
        yield from self.named_parameters(prefix=name_prefix, recurse=expand)

    def parameters_dict(self, recurse: bool = True) -> OrderedDict[str, Any]:
        """Return the parameters by their names."""
        return OrderedDict((p.name, p) for p in self.get_parameters(recurse))

    def trainable_params(self, recurse: bool = True) -> list[Any]:
        """Return the parameters with ``requires_grad``."""
        return [p for p in self.get_parameters(recurse) if p.requires_grad]

    def untrainable_params(self, recurse: bool = True) -> list[Any]:
        """Return the parameters without ``requires_grad``."""
        return [p for p in self.get_parameters(recurse) if not p.requires_grad]

    def update_parameters_name(self, prefix: str = "", recurse: bool = True) -> None:
        """Name the parameters by their attribute paths, after a prefix."""
        for name, parameter in self.parameters_and_names(expand=recurse):
            parameter.name = prefix + name

    def cells(self) -> Iterator[Any]:
        """Yield the cells that are attributes."""
        yield from self.children()

    def name_cells(self) -> OrderedDict[str, Any]:
        """Return the cells that are attributes, by name."""
        return OrderedDict(self.named_children())

    def cells_and_names(self, cells: Any = None, name_prefix: str = "") -> Iterator[tuple[str, Any]]:
        """Yield (attribute path, cell) for this cell and all cells inside."""
        for name, cell in self.named_modules(cells, name_prefix):
            if isinstance(cell, Cell):
                yield name, cell

    def insert_child_to_cell(self, child_name: str, child_cell: Any) -> None:
        """Set a cell as an attribute."""
        setattr(self, child_name, child_cell)

    def insert_param_to_cell(self, param_name: str, param: Any, check_name_contain_dot: bool = True) -> None:
        """Set a parameter as an attribute."""
        del check_name_contain_dot
        setattr(self, param_name, param)

    def set_train(self, mode: bool = True) -> Any:
        """Set training mode and return the cell."""
        return self.train(mode)

    def set_grad(self, requires_grad: bool = True) -> Any:
        """Return the cell unchanged: every call can be differentiated."""
        del requires_grad
        return self

    def set_inputs(self, *inputs: Any, **kwargs: Any) -> None:
        """Do nothing: shapes come from the call."""
        del inputs, kwargs

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing: a cell is compiled when it is first called in ``GRAPH_MODE``."""
        del args, kwargs
