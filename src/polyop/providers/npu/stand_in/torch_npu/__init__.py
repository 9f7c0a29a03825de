"""The stand-in for ``torch_npu`` in rehearsal: the NPU is the CPU.

``x.npu()`` copies a tensor, as it does on Ascend, and the device ``"npu"`` is the CPU. Operators are those of
the project, with the NPU's dispatch keys, which polyop's ``pytorch_npu_helper.hpp`` registers for the CPU.
"""

from __future__ import annotations

from typing import Any

from polyop.providers.aclnn.rehearsal import ascend
from polyop.providers.npu import compiling

from . import devices, npu, testing, utils

__all__ = ["get_npu_format", "npu", "npu_format_cast", "testing", "utils"]

_ND = 2  # the number of the plain format


def npu_format_cast(tensor: Any, format: int) -> Any:  # noqa: A002 - its name
    """Return the tensor: the CPU has one format."""
    del format
    return tensor


def get_npu_format(tensor: Any) -> int:
    """Return the number of the plain format."""
    del tensor
    return _ND


def __getattr__(name: str) -> Any:
    rule = "rehearsal (POLYOP_ASCEND=rehearse) does not have it: it runs a project's own operators"
    raise AttributeError(f"torch_npu.{name}: {rule}\n  it has {', '.join(__all__)}")


ascend(above=2)  # warns once that the CPU runs what is meant for Ascend
devices.install(npu)
compiling.name_backends("npu", "npugraph_ex")
