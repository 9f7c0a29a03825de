"""Calls to be timed, in each framework, one file each; it is imported only with its framework.

Each file has three functions:

* ``convert(case, gradient) -> arguments``: the arguments of a case as the framework's tensors;
* ``timed(case, function, arguments, gradient) -> call``: a call without arguments that runs ``function`` and
  waits for its result: the outputs, or with ``gradient`` the gradients of the sum of all of them;
* ``arrays(case, result) -> list``: what the call returned, as NumPy arrays.
"""

from __future__ import annotations

import importlib.util
from typing import Any

from ...core.errors import ArgumentValueError

NAMES = {"numpy": "NumPy", "torch": "PyTorch", "jax": "JAX"}


def framework(name: str) -> Any:
    """Return the module for a framework; raises ``ArgumentValueError`` where it is not installed."""
    if name not in NAMES:
        raise ArgumentValueError("framework", f"must be one of {', '.join(NAMES)}", repr(name))
    if importlib.util.find_spec(name) is None:
        raise ArgumentValueError(
            "framework", f"{NAMES[name]} must be installed", repr(name), hint=f"pip install {name}"
        )
    if name == "torch":
        from . import torch as module
    elif name == "jax":
        from . import jax as module  # type: ignore[no-redef]
    else:
        from . import numpy as module  # type: ignore[no-redef]
    return module
