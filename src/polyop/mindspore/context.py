"""Mode and device of a script: ``set_context``, ``get_context``, ``set_device``.

``PYNATIVE_MODE`` runs operator by operator. In ``GRAPH_MODE`` the call of a ``Cell`` is captured as
one graph by ``torch.compile(fullgraph=True)``; code that cannot be captured is an error.
"""

from __future__ import annotations

import difflib
from typing import Any

import torch

from ..core.errors import ArgumentTypeError, ArgumentValueError, HostError

GRAPH_MODE = 0
PYNATIVE_MODE = 1

DEVICES = ("CPU", "GPU", "Ascend")

# settings of MindSpore's compiler, memory pool and log: without effect, but get_context returns them
WITHOUT_EFFECT = {
    "save_graphs": False, "save_graphs_path": ".", "precompile_only": False, "max_call_depth": 1000,
    "max_device_memory": "1024GB", "variable_memory_max_size": "30GB", "mempool_block_size": "1GB",
    "memory_optimize_level": "O0", "memory_offload": "OFF", "enable_graph_kernel": False,
    "graph_kernel_flags": "", "enable_compile_cache": False, "compile_cache_path": "", "jit_config": {},
    "jit_level": "", "jit_syntax_level": 2, "jit_enable_inplace_ops": True, "pynative_synchronize": False,
    "print_file_path": "", "env_config_path": "", "ascend_config": {}, "gpu_config": {}, "aoe_tune_mode": "",
    "aoe_config": {}, "auto_tune_mode": "", "check_bprop": False, "deterministic": "OFF",
    "enable_reduce_precision": True, "exec_order": "", "grad_for_scalar": False, "op_timeout": 900,
    "reserve_class_name_in_scope": False, "runtime_num_threads": 0, "inter_op_parallel_num": 0,
    "support_binary": False, "debug_level": 0, "save_compile_cache": False, "load_compile_cache": False,
}  # fmt: skip

_values: dict[str, Any] = {"mode": PYNATIVE_MODE, "device_target": "CPU", "device_id": 0, **WITHOUT_EFFECT}


def set_context(**settings: Any) -> None:
    """Set mode, ``device_target`` and ``device_id``. MindSpore's other settings are stored without effect.

    Raises ``ArgumentValueError`` for an unknown name or value, ``HostError`` for a device that
    this machine does not have.
    """
    for name in settings:
        if name not in _values:
            close = difflib.get_close_matches(name, _values, n=1)
            hint = f"did you mean {close[0]}?" if close else None
            raise ArgumentValueError("set_context", "must be a setting of MindSpore", name, hint=hint)
    if settings.get("mode", GRAPH_MODE) not in (GRAPH_MODE, PYNATIVE_MODE):
        rule = "mode must be GRAPH_MODE (0) or PYNATIVE_MODE (1)"
        raise ArgumentValueError("set_context", rule, repr(settings["mode"]))
    number = settings.get("device_id", 0)
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        raise ArgumentTypeError("set_context", "device_id must be an int from 0", repr(number))
    if "device_target" in settings:
        _check_device(settings["device_target"], number)
    _values.update(settings)


def set_device(device_target: str, device_id: int | None = None) -> None:
    """Set the device; raises what ``set_context`` raises."""
    set_context(device_target=device_target, device_id=device_id or 0)


def get_context(attr_key: str) -> Any:
    """Return a setting; raises ``ArgumentValueError`` for an unknown name.

    >>> get_context("mode") == PYNATIVE_MODE
    True
    """
    if attr_key not in _values:
        raise ArgumentValueError("get_context", f"must be one of {', '.join(_values)}", repr(attr_key))
    return _values[attr_key]


def device() -> Any:
    """Return PyTorch's device for new tensors."""
    return device_of(_values["device_target"])


def device_of(target: str) -> Any:
    """Return PyTorch's device for "CPU", "GPU" or "Ascend"; raises what ``set_context`` raises."""
    if target == "GPU":
        _check_device(target, _values["device_id"])
        return torch.device("cuda", _values["device_id"])
    if target != _values["device_target"]:
        _check_device(target, 0)
    return torch.device("cpu")


def graph_mode() -> bool:
    """Whether cells are captured as graphs."""
    return _values["mode"] == GRAPH_MODE  # type: ignore[no-any-return]


def _check_device(target: Any, number: int) -> None:
    if target not in DEVICES:
        rule = f"device_target must be one of {', '.join(DEVICES)}"
        raise ArgumentValueError("set_context", rule, repr(target))
    if target == "Ascend":
        from ..providers.aclnn.rehearsal import ascend

        ascend()
    if target == "GPU" and number >= torch.cuda.device_count():
        count = torch.cuda.device_count()
        rule = f"device_target is 'GPU' with device_id {number}, and PyTorch finds {count} CUDA devices"
        hint = "use device_target='CPU', or install a PyTorch that is built for this machine's CUDA"
        raise HostError("set_context", rule, hint=hint)
