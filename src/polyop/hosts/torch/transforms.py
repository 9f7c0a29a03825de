"""Tell which transforms of ``torch.func`` are active, by the names of PyTorch's enumeration."""

from __future__ import annotations

from typing import Literal

import torch

Transform = Literal["Grad", "Jvp", "Vmap"]
"""``grad`` and ``vjp``; ``jvp`` and ``jacfwd``; ``vmap``."""


def is_innermost(kind: Transform) -> bool:
    """Whether the innermost transform is of a kind."""
    level = torch._C._functorch.peek_interpreter_stack()
    return level is not None and level.key() == getattr(torch._C._functorch.TransformType, kind)


def depth(kind: Transform) -> int:
    """Return how many transforms of a kind are around; torch.compile's tracing counts too."""
    levels = torch._C._functorch.get_interpreter_stack() or ()
    return sum(level.key() == getattr(torch._C._functorch.TransformType, kind) for level in levels)
