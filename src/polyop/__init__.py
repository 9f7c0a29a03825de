"""Write a custom operator once, call it from every machine-learning framework."""

from .core.dtypes import DType, dtype
from .core.errors import FallbackWarning, PolyopError
from .core.schema import Schema
from .core.spec import Spec
from .define.operator import operator
from .hosts.bound import BoundOperator
from .kernels.library import library
from .kernels.source import source

__all__ = ["BoundOperator", "DType", "FallbackWarning", "PolyopError", "Schema", "Spec", "dtype", "library", "operator", "source"]
