"""Write a custom operator once, call it from every machine-learning framework."""

from typing import TYPE_CHECKING, Any

from .core.dtypes import DType, dtype
from .core.errors import FallbackWarning, PolyopError
from .core.schema import Schema
from .core.spec import Spec
from .define.operator import operator
from .hosts.bound import BoundOperator

if TYPE_CHECKING:
    from .core.data_types import DataType
    from .define.custom import Custom
    from .define.custom_reg_op import CustomRegOp, custom_info_register
    from .kernels.library import library
    from .kernels.source import source

__all__ = [
    "BoundOperator",
    "Custom",
    "CustomRegOp",
    "DType",
    "DataType",
    "FallbackWarning",
    "PolyopError",
    "Schema",
    "Spec",
    "custom_info_register",
    "dtype",
    "library",
    "operator",
    "source",
]

_LATER = {  # imported when they are asked for: MindSpore's front end, and what reads and builds libraries
    "Custom": "define.custom",
    "CustomRegOp": "define.custom_reg_op",
    "DataType": "core.data_types",
    "custom_info_register": "define.custom_reg_op",
    "library": "kernels.library",
    "source": "kernels.source",
}


def __getattr__(name: str) -> Any:
    import importlib

    if name == "__version__":
        return importlib.import_module("importlib.metadata").version("polyop")
    if name not in _LATER:
        raise AttributeError(f"module 'polyop' has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{_LATER[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
