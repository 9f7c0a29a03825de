"""The stand-in for ``torchair`` in rehearsal: programs are compiled by PyTorch, and no GE graph is built.

Converters and the functions of generated files can be defined; nothing calls them.
``polyop.graph.torchair.rehearse`` builds real graphs, and needs the torch-npu wheel.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any, TypeVar

from polyop.providers.npu.compiling import backend

_F = TypeVar("_F", bound=Callable[..., Any])
_PARTS = (
    "configs", "configs.compiler_config", "core", "core.utils", "ge", "ge._ge_graph", "ge_concrete_graph",
    "ge_concrete_graph.fx2ge_converter", "ge_concrete_graph.ge_graph", "ge_concrete_graph.utils",
    "_ge_concrete_graph", "_ge_concrete_graph.compat_ir", "_ge_concrete_graph.fx2ge_converter",
    "_ge_concrete_graph.utils",
)  # fmt: skip


class Placeholder:
    """Stands for a value of torchair: it takes any attribute and any call, and is their result."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *_args: Any, **_kwargs: Any) -> Any:
        """Return itself."""
        return self


class _Part(types.ModuleType):
    """A module of torchair; every name in it is a placeholder."""

    __path__: list[str] = []  # noqa: RUF012 - of a package, as importlib reads it

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Placeholder()


def register_fx_node_ge_converter(operator: Any) -> Callable[[_F], _F]:
    """Return a decorator that leaves a converter as it is."""
    del operator
    return lambda converter: converter


def get_npu_backend(*, compiler_config: Any = None, **options: Any) -> Callable[..., Any]:
    """Return a backend for ``torch.compile``: PyTorch's own, without a code generator."""
    del compiler_config, options
    return backend


CompilerConfig = Placeholder


def _add(part: str) -> None:
    module: Any = _Part(f"{__name__}.{part}")
    module.register_fx_node_ge_converter = register_fx_node_ge_converter
    sys.modules[module.__name__] = module
    parent, _, last = module.__name__.rpartition(".")
    setattr(sys.modules[parent], last, module)


for _name in _PARTS:
    _add(_name)
