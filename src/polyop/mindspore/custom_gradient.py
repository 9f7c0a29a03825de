"""What a gradient written by hand must return; ``Cell.bprop`` and ``_Function`` share it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ..core.errors import GradientError
from .interpose import plain, plain_attributes, wrap_traced


def checked(subject: str, found: Any, inputs: Sequence[Any]) -> tuple[Any, ...]:
    """Return one gradient or None for each input, of the input's dtype and shape.

    Raises ``GradientError`` for a wrong number, a gradient of something that is no tensor, a
    gradient that is none, and one that cannot be summed to the input's shape.
    """
    given = tuple(found) if isinstance(found, (tuple, list)) else (found,)
    if len(given) != len(inputs):
        rule = f"Function backward return a wrong number of gradients, expect: {len(inputs)}"
        raise GradientError(subject, f"{rule} but: {len(given)}")
    return tuple(
        _fitted(f"{subject}, gradient {i}", g, x) for i, (g, x) in enumerate(zip(given, inputs, strict=True))
    )


def _fitted(subject: str, gradient: Any, value: Any) -> Any:
    if gradient is None:
        return None
    if not isinstance(value, torch.Tensor):
        rule = "Input is not tensor, but gradient is not none"
        raise GradientError(subject, rule, hint=f"return None for an input of type {type(value).__name__}")
    if not isinstance(gradient, torch.Tensor):
        raise GradientError(subject, "Gradient should be none or tensor", type(gradient).__name__)
    with plain_attributes():
        if gradient.dtype != value.dtype:
            gradient = gradient.to(value.dtype)
        if gradient.shape != value.shape:
            gradient = _summed(subject, gradient, value)
    return plain(gradient)


def _summed(subject: str, gradient: Any, value: Any) -> Any:
    """Sum over what broadcasting has repeated."""
    wanted, seen = tuple(value.shape), tuple(gradient.shape)
    ones = (1,) * (len(seen) - len(wanted)) + wanted
    if len(wanted) > len(seen) or any(w not in (1, s) for w, s in zip(ones, seen, strict=True)):
        rule = f"For custom function, grad tensor should be broadcast to input shape {wanted}"
        raise GradientError(subject, rule, seen)
    return gradient.sum_to_size(wanted)


def filled(gradients: Sequence[Any], outputs: Sequence[Any]) -> tuple[Any, ...]:
    """Return the output gradients with zeros for those that nothing has asked for."""
    return tuple(
        wrap_traced(torch.zeros_like(x) if g is None else g) for g, x in zip(gradients, outputs, strict=True)
    )
