"""Rules written as ``torch.library`` has them, as rules of polyop.

The contracts are those of ``torch.library.register_autograd`` and ``register_vmap``:
https://docs.pytorch.org/docs/stable/library.html
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ...core.errors import GradientError
from ...core.schema import Schema
from ...core.takes import check_takes


class Context:
    """What ``setup_context`` fills for ``backward``: any attributes, and tensors by ``save_for_backward``."""

    saved_tensors: tuple[Any, ...] = ()

    def __init__(self, count: int) -> None:
        """Take the number of inputs."""
        self.needs_input_grad = (True,) * count

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors, for ``saved_tensors``."""
        self.saved_tensors = tensors


@dataclass(frozen=True)
class VmapInfo:
    """The first argument of a rule of ``register_vmap``."""

    batch_size: int
    randomness: str = "error"


_CHECK = "__polyop_check__"
"""The attribute of a rule that compares an author's functions with the schema."""


def check_registered(rule: Any, schema: Schema, where: Any) -> None:
    """Raise ``ArgumentTypeError`` if a function of ``register_autograd`` or ``register_vmap`` does not fit.

    The schema may be defined after the rule, so it is checked where the operator is assembled.
    """
    check = getattr(rule, _CHECK, None)
    if check is not None:
        check(schema, where)


def gradient_of(backward: Callable[..., Any], setup_context: Callable[..., Any] | None) -> Callable[..., Any]:
    """Return the gradient rule that calls ``setup_context(ctx, inputs, output)``, ``backward(ctx, *grads)``.

    Both run when a gradient is computed, so a gradient can be differentiated again. ``backward`` returns a
    gradient or None for each input, without a tuple if there is one input. The rule raises ``GradientError``
    for another number of them.
    """

    def rule(*values: Any) -> tuple[Any, ...]:
        *inputs, output, grad = values
        context = Context(len(inputs))
        if setup_context is not None:
            setup_context(context, tuple(inputs), output)
        result = backward(context, *(grad if isinstance(grad, (tuple, list)) else (grad,)))
        grads = tuple(result) if isinstance(result, (tuple, list)) else (result,)
        if len(grads) != len(inputs):
            name = getattr(backward, "__name__", "backward")
            rule = f"must return a gradient or None for each of the {len(inputs)} inputs"
            raise GradientError(name, rule, f"{len(grads)} values")
        return grads

    def check(schema: Schema, where: Any) -> None:
        if setup_context is not None:
            check_takes("setup_context", setup_context, ("ctx", "inputs", "output"), schema, where)
        if not schema.returns_list:  # else a call shows how many gradients there are
            several = len(schema.returns) > 1
            grads = [f"grad{i if several else ''}" for i in range(len(schema.returns))]
            check_takes("backward", backward, ("ctx", *grads), schema, where)

    setattr(rule, _CHECK, check)
    return rule


def batch_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the batch rule that calls ``function(info, in_dims, *inputs)``, which gives outputs and axes."""

    def rule(in_dims: Sequence[Any], inputs: Sequence[Any]) -> Any:
        size = next(_sizes(in_dims, inputs))
        return function(VmapInfo(size), tuple(in_dims), *inputs)

    def check(schema: Schema, where: Any) -> None:
        names = [argument.name for argument in schema.arguments]
        check_takes("the rule of register_vmap", function, ("info", "in_dims", *names), schema, where)

    setattr(rule, _CHECK, check)
    return rule


def _sizes(in_dims: Sequence[Any], inputs: Sequence[Any]) -> Any:
    for axis, value in zip(in_dims, inputs, strict=True):
        if isinstance(axis, (tuple, list)):
            yield from _sizes(axis, value)
        elif axis is not None:
            yield value.shape[axis]
