"""``ops.CustomOpBuilder``: polyop's own, whose modules make MindSpore's tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from ...define.builder import CustomOpBuilder as _Builder
from ...define.module import OperatorModule, PlainFunction
from .. import context
from .arguments import passed_on

_MODULES: dict[int, Module] = {}


class Module:
    """The functions of a C++ module as attributes; an unknown name raises ``AttributeError``."""

    def __init__(self, loaded: OperatorModule) -> None:
        self.loaded = loaded  # kept, so that its id stays its own
        for name in dir(loaded):
            value = getattr(loaded, name)
            if isinstance(value, PlainFunction):
                value = passed_on(value)  # it is given no tensor that would say whose results it makes
            if not name.startswith("__") and callable(value):
                self.__dict__[name] = value

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["loaded"], name)

    def __repr__(self) -> str:
        return repr(self.loaded)


class CustomOpBuilder(_Builder):
    """Builds C++ sources into a module of operators; see ``polyop.CustomOpBuilder``."""

    def load(self, *, infer: Mapping[str, Any] | None = None) -> Any:
        """Return the module, built where needed; raises what ``polyop.CustomOpBuilder`` does."""
        loaded = super().load(infer=infer)
        if id(loaded) not in _MODULES:
            _MODULES[id(loaded)] = Module(loaded)
        return _MODULES[id(loaded)]

    def _like(self) -> Callable[[], Any]:
        return lambda: torch.empty(0, device=context.device())
