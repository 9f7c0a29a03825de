"""Ways to call an exported library, beside its plain C functions: one file each, and a row here.

Each has ``refused(operator)``, the reason why it cannot call an operator or None, and
``source(operators)``, the C++ of one file.
"""

from __future__ import annotations

from . import kernel, onnx, torch, tvm_ffi, xla

SURFACES = {"polyop": kernel, "torch": torch, "onnx": onnx, "xla": xla, "tvm_ffi": tvm_ffi}
