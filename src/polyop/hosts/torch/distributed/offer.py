"""Give every operator of ``torch.ops`` its rule for DTensors, once the program has imported them.

Importing ``torch.distributed.tensor`` takes about as long as importing PyTorch, so polyop does not do it.
"""

from __future__ import annotations

import functools
import importlib
import sys
import warnings
from typing import Any

import torch

from ....call.arrival import Arrival
from ....call.bound import BoundOperator
from ....core import locks
from ....core.errors import FallbackWarning
from ....rules.module.recorded import Recorded

_MODULE = "torch.distributed.tensor"


def offer(bound: BoundOperator) -> None:
    """Register the rule of an operator that is in ``torch.ops``, if DTensors are imported."""
    if _MODULE in sys.modules:
        _offer(bound)


def _offer(bound: BoundOperator) -> None:
    try:
        from . import local_gradient  # it imports DTensors, and parts of PyTorch that are not public
        from .dispatch import Divisions, direct_of, rule_of
    except ImportError as problem:
        _warn(str(problem))
        return
    tensor: Any = importlib.import_module(_MODULE).DTensor
    with locks.define:
        overload, library = (bound.__dict__.get(name) for name in ("torch_overload", "torch_library"))
        if overload is None or library is None or bound.__dict__.get("dtensor_overload") is overload:
            return  # not in torch.ops, PyTorch's own operator, or done
        divisions = Divisions(bound, overload)
        rule = rule_of(bound, divisions)
        torch.library.register_torch_dispatch(overload.name(), tensor, rule, lib=library)
        bound.__dict__["dtensor_overload"] = overload
        if not bound.schema.mutates and bound.operator.autocast is None:
            bound.dtensor_call = direct_of(bound, divisions)
        if isinstance(bound.operator.gradient, Recorded) and not bound.schema.mutates:
            bound.__dict__["dtensor_gradient"] = local_gradient.call_of(bound, overload)


@functools.cache
def _warn(problem: str) -> None:
    """Say once why operators do not run on DTensors. A call then raises PyTorch's own error."""
    rule = "this PyTorch lacks what operators need to run on DTensors"
    hint = "call them in torch.distributed.tensor.experimental.local_map, which gives them local tensors"
    warnings.warn(f"polyop: {rule}: {problem}; {hint}", FallbackWarning, stacklevel=2)


def _arrived(module: str) -> None:
    del module
    for bound in BoundOperator.alive():
        _offer(bound)


if _MODULE not in sys.modules:
    Arrival(_MODULE, _arrived).wait()
