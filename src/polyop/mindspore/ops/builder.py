"""``ops.CustomOpBuilder``: polyop's builder, whose modules return MindSpore's ``Tensor``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from ...define.module.builder import CustomOpBuilder as _Builder
from ...define.module.module import OperatorModule, PlainFunction
from .. import context
from ..capture import is_capturing
from .arguments import wrapped

_MODULES: dict[int, Module] = {}


class Module:
    """The functions of a C++ module as attributes; an unknown name raises ``AttributeError``."""

    def __init__(self, loaded: OperatorModule) -> None:
        self.loaded = loaded  # keeps it alive, so that its id is not used again
        if loaded.has_modes:
            return  # a name means another function in graph mode, so it is looked up at each use
        for name in dir(loaded):
            value = _named(getattr(loaded, name))
            if not name.startswith("__") and callable(value):
                self.__dict__[name] = value

    def __getattr__(self, name: str) -> Any:
        return _named(getattr(self.__dict__["loaded"], name))

    def __repr__(self) -> str:
        return repr(self.loaded)


def _named(value: Any) -> Any:
    # a plain function gets no tensor from which it could tell the framework of its results
    return wrapped(value) if isinstance(value, PlainFunction) else value


def in_graph() -> bool:
    """Whether functions are looked up for graph mode: it is set, or a graph is being captured."""
    return context.graph_mode() or is_capturing()


class CustomOpBuilder(_Builder):
    """Builds C++ sources into a module of operators; see ``polyop.CustomOpBuilder``."""

    def load(self, *, infer: Mapping[str, Any] | None = None, dims: Mapping[str, Any] | None = None) -> Any:
        """Return the module, built if it is not cached; raises what ``polyop.CustomOpBuilder`` raises."""
        loaded = super().load(infer=infer, dims=dims)
        if id(loaded) not in _MODULES:
            _MODULES[id(loaded)] = Module(loaded)
        return _MODULES[id(loaded)]

    def _graph_mode(self) -> Callable[[], bool]:
        return in_graph

    def _like(self) -> Callable[[], Any]:
        return lambda: torch.empty(0, device=context.device())
