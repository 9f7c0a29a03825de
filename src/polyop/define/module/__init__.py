"""C++ operator modules: ``CustomOpBuilder``, whose files from ``op_def`` import ``OperatorModule``."""

from .module import OperatorModule

__all__ = ["OperatorModule"]
