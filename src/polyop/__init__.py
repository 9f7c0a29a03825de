"""Write a custom operator once, call it from every machine-learning framework."""

from .core.data_types import DataType
from .core.dtypes import DType, dtype
from .core.errors import FallbackWarning, PolyopError
from .core.schema import Schema
from .core.spec import Spec
from .define.custom import Custom
from .define.custom_reg_op import CustomRegOp, custom_info_register
from .define.operator import operator
from .hosts.bound import BoundOperator
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
