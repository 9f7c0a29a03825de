"""``initializer``: the initial values of a parameter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ...core.errors import ArgumentValueError
from .. import context
from ..dtype import to_torch
from ..interpose import wrap

INITIALIZERS: dict[str, Callable[[Any], Any]] = {
    "zeros": torch.nn.init.zeros_,
    "ones": torch.nn.init.ones_,
    "normal": lambda x: torch.nn.init.normal_(x, 0.0, 0.01),
    "uniform": lambda x: torch.nn.init.uniform_(x, -0.07, 0.07),
    "xavier_uniform": torch.nn.init.xavier_uniform_,
    "xavier_normal": torch.nn.init.xavier_normal_,
    "he_uniform": torch.nn.init.kaiming_uniform_,
    "he_normal": torch.nn.init.kaiming_normal_,
}


def initializer(init: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Return a tensor with the values of a named initializer, of one number, or of another tensor.

    >>> print(initializer("ones", (2,)))
    [1. 1.]

    Raises ``ArgumentValueError`` for an unknown name or a tensor of another shape.
    """
    kind = to_torch(dtype) or torch.float32
    if isinstance(init, torch.Tensor):
        if shape is not None and tuple(init.shape) != tuple(shape):
            raise ArgumentValueError(
                "initializer", f"needs values of shape {tuple(shape)}", tuple(init.shape)
            )
        return wrap(init.detach().clone())
    values = torch.empty(tuple(shape or ()), dtype=kind, device=context.device())
    if isinstance(init, (int, float)):
        return wrap(values.fill_(init))
    fill = INITIALIZERS.get(init.lower()) if isinstance(init, str) else None
    if fill is None:
        raise ArgumentValueError(
            "initializer", f"must be a number or one of {', '.join(INITIALIZERS)}", repr(init)
        )
    return wrap(fill(values))
