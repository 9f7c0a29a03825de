"""Checks of hand-written gradients, shared by ``Cell.bprop`` and ``_Function``.

The texts of the errors are MindSpore's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ..core.errors import GradientError
from .interpose import plain, plain_attributes, wrap_traced


def checked(subject: str, result: Any, inputs: Sequence[Any]) -> tuple[Any, ...]:
    """Return one gradient or None per input, cast and summed to the input's dtype and shape.

    Raises ``GradientError`` for a wrong number of gradients, for a gradient of a value that is no
    tensor, for one that is no tensor itself, and for one that cannot be summed to the input's shape.
    """
    gradients = tuple(result) if isinstance(result, (tuple, list)) else (result,)
    if len(gradients) != len(inputs):
        rule = f"Function backward return a wrong number of gradients, expect: {len(inputs)}"
        raise GradientError(subject, f"{rule} but: {len(gradients)}")
    rows = enumerate(zip(gradients, inputs, strict=True))
    return tuple(_fitted(f"{subject}, gradient {i}", g, x) for i, (g, x) in rows)


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
    """Return the gradient summed over the broadcast dimensions."""
    target, actual = tuple(value.shape), tuple(gradient.shape)
    padded = (1,) * (len(actual) - len(target)) + target
    if len(target) > len(actual) or any(w not in (1, s) for w, s in zip(padded, actual, strict=True)):
        rule = f"For custom function, grad tensor should be broadcast to input shape {target}"
        raise GradientError(subject, rule, actual)
    return gradient.sum_to_size(target)


def filled(gradients: Sequence[Any], outputs: Sequence[Any]) -> tuple[Any, ...]:
    """Return the output gradients, with zeros for an output that was not used."""
    return tuple(
        wrap_traced(torch.zeros_like(x) if g is None else g) for g, x in zip(gradients, outputs, strict=True)
    )
