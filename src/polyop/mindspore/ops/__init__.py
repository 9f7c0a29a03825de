"""``mindspore.ops``: functions, primitives, transforms, and polyop's ``Custom`` and ``CustomOpBuilder``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from ...core.information.data_types import DataType
from ...define.custom.reg_op import CustomRegOp, custom_info_register
from ...define.kernel import python_kernel as kernel
from ..grad import grad, value_and_grad
from ..nearest import missing
from ..tensor import is_tensor
from ..transforms import GradOperation, jvp, stop_gradient, vjp, vmap
from .custom import Custom
from .primitives import FUNCTIONS, PRIMITIVES, Primitive

if TYPE_CHECKING:
    from .custom import CustomOpBuilder

_NAMES: dict[str, Any] = {**FUNCTIONS, **PRIMITIVES}

for _path in ("composite", "functional", "operations"):  # older scripts import from there
    sys.modules[f"{__name__}.{_path}"] = globals()[_path] = sys.modules[__name__]

__all__ = [  # noqa: PLE0604 - with the names of tables
    "Custom", "CustomOpBuilder", "CustomRegOp", "DataType", "GradOperation", "Primitive",
    "custom_info_register", "grad", "is_tensor", "jvp", "kernel", "stop_gradient", "value_and_grad", "vjp",
    "vmap", *sorted(_NAMES),
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name == "CustomOpBuilder":  # late, because it imports the code that builds C++
        from .custom import CustomOpBuilder

        return CustomOpBuilder
    if name in _NAMES:
        return _NAMES[name]
    raise missing(__name__, name, __all__)


def __dir__() -> list[str]:
    return list(__all__)
