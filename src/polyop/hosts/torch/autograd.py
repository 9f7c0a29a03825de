"""What all of polyop's ``autograd.Function`` classes share: differentiable dtypes, inherited names."""

from __future__ import annotations

import inspect

import torch

from ...core.dtypes import DTYPES
from .tensors import TORCH_DTYPES

DIFFERENTIABLE = {TORCH_DTYPES[row.name] for row in DTYPES if row.is_floating and row.name in TORCH_DTYPES}

INHERITED = {
    name: inspect.getattr_static(torch.autograd.Function, name)
    for name in ("setup_context", "clear_saved_tensors_on_access", "boxed_grads_call")
    if hasattr(torch.autograd.Function, name)
}
"""What each call asks its class for, past Python's cache of attributes: found sooner in the class itself."""
