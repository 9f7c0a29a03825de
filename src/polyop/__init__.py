"""Write a custom operator once, call it from every machine-learning framework."""

from typing import TYPE_CHECKING, Any

from .call.bound import BoundOperator
from .core.dtypes import DType, dtype
from .core.errors import FallbackWarning, PolyopError, UninitialisedWarning
from .core.schema import Schema
from .core.spec import Spec
from .define.operator import operator

if TYPE_CHECKING:
    from .call.host import array_namespace
    from .core.information.data_types import DataType
    from .define.custom.custom import Custom
    from .define.custom.reg_op import CustomRegOp, custom_info_register
    from .define.kernel import kernel
    from .define.library.library import Library
    from .define.library.load import load_library
    from .define.module.builder import CustomOpBuilder
    from .hosts.jax.emit import export_checks as jax_export_checks
    from .kernels.library import prebuilt
    from .kernels.source import source
    from .kernels.threads import get_num_threads, set_num_threads
    from .kernels.xla_ffi import xla_ffi
    from .loops.ir.schedule import Schedule
    from .providers.aclnn import register as register_aclnn
    from .providers.aclnn import register_library as register_aclnn_library
    from .providers.aten import aten

__all__ = [
    "BoundOperator",
    "Custom",
    "CustomOpBuilder",
    "CustomRegOp",
    "DType",
    "DataType",
    "FallbackWarning",
    "Library",
    "PolyopError",
    "Schedule",
    "Schema",
    "Spec",
    "UninitialisedWarning",
    "array_namespace",
    "aten",
    "custom_info_register",
    "dtype",
    "get_num_threads",
    "jax_export_checks",
    "kernel",
    "load_library",
    "operator",
    "prebuilt",
    "register_aclnn",
    "register_aclnn_library",
    "set_num_threads",
    "source",
    "xla_ffi",
]

_LAZY = {  # public name -> module[:attribute], imported at first use so that ``import polyop`` stays quick
    "Custom": "define.custom.custom",
    "CustomOpBuilder": "define.module.builder",
    "CustomRegOp": "define.custom.reg_op",
    "DataType": "core.information.data_types",
    "Library": "define.library.library",
    "Schedule": "loops.ir.schedule",
    "array_namespace": "call.host",
    "aten": "providers.aten",
    "custom_info_register": "define.custom.reg_op",
    "get_num_threads": "kernels.threads",
    "jax_export_checks": "hosts.jax.emit:export_checks",
    "kernel": "define.kernel",
    "load_library": "define.library.load",
    "prebuilt": "kernels.library",
    "register_aclnn": "providers.aclnn:register",
    "register_aclnn_library": "providers.aclnn:register_library",
    "set_num_threads": "kernels.threads",
    "source": "kernels.source",
    "xla_ffi": "kernels.xla_ffi",
}


_RENAMED = {"library": "prebuilt"}  # a public name before -> now


def __getattr__(name: str) -> Any:
    import importlib
    import warnings

    if name in _RENAMED:
        warnings.warn(f"polyop.{name} is now polyop.{_RENAMED[name]}", DeprecationWarning, stacklevel=2)
        name = _RENAMED[name]
    if name == "__version__":
        from .core.versions import version

        return version()
    if name not in _LAZY:
        raise AttributeError(f"module 'polyop' has no attribute {name!r}")
    module, _, attribute = _LAZY[name].partition(":")
    value = getattr(importlib.import_module(f".{module}", __name__), attribute or name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
