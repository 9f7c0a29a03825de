"""``grad`` and ``value_and_grad``: gradients of functions and cells, computed by PyTorch's autograd."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from ..core.errors import ArgumentTypeError, ArgumentValueError, UnsupportedError
from .interpose import plain, plain_attributes, tracked_copy, wrap
from .parameter import Parameter

Position = int | tuple[int, ...] | None

_nesting = threading.local()


def depth() -> int:
    """Return how many gradients are being computed, each inside the one before."""
    return getattr(_nesting, "depth", 0)


def grad(
    fn: Callable[..., Any],
    grad_position: Position = 0,
    weights: Any = None,
    has_aux: bool = False,
    return_ids: bool = False,
) -> Callable[..., Any]:
    """Return a function that computes the gradient of ``fn``, a function or a cell.

    ``grad_position``  an int, or a tuple of one: the gradient of that input; more: a tuple of gradients;
                       None: no gradient of an input.
    ``weights``        a ``Parameter``: its gradient; a list: a tuple of gradients. With both, the
                       result is ``(gradients of the inputs, gradients of the weights)``.
    ``has_aux``        only the first output is differentiated; the result is
                       ``(gradients, the other outputs)``.

    Several outputs are summed. An input that the outputs do not depend on has gradient zero.

    >>> from polyop.mindspore import Tensor
    >>> print(grad(lambda x: x * x)(Tensor([1.0, 4.0, 9.0])))
    [ 2.  8. 18.]

    Raises ``ArgumentTypeError`` or ``ArgumentValueError`` if there is no tensor at a position, and
    ``UnsupportedError`` for ``return_ids``.
    """
    both = value_and_grad(fn, grad_position, weights, has_aux, return_ids)

    @functools.wraps(_function(fn))
    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, gradients = both(*args, **kwargs)
        return (gradients, tuple(value[1:])) if has_aux else gradients

    return gradient


def value_and_grad(
    fn: Callable[..., Any],
    grad_position: Position = 0,
    weights: Any = None,
    has_aux: bool = False,
    return_ids: bool = False,
) -> Callable[..., Any]:
    """Return a function for ``(what fn returns, gradients)``; the arguments are those of ``grad``."""
    _check(fn, grad_position, weights, return_ids)
    positions = (grad_position,) if isinstance(grad_position, int) else grad_position or ()
    parameters = [weights] if isinstance(weights, Parameter) else list(weights or ())

    @functools.wraps(_function(fn))
    def both(*args: Any, **kwargs: Any) -> Any:
        value, inputs, of_weights = evaluate(fn, args, kwargs, positions, parameters, has_aux)
        input_grads: Any = inputs[0] if len(inputs) == 1 else inputs
        weight_grads: Any = of_weights[0] if isinstance(weights, Parameter) else of_weights
        if weights is None:
            return value, input_grads
        return value, (weight_grads if grad_position is None else (input_grads, weight_grads))

    return both


def evaluate(
    fn: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    positions: Sequence[int],
    parameters: Sequence[Any],
    has_aux: bool = False,
    sens: Any = None,
) -> tuple[Any, tuple[Any, ...], tuple[Any, ...]]:
    """Return (value, gradients of the inputs at positions, gradients of the parameters).

    ``sens`` are the gradients of the outputs; the default is ones.
    """
    with _level() as nested, torch.enable_grad():
        tracked = list(args)
        for position in positions:
            tracked[position] = _tracked(args, position, nested)
        value = fn(*tracked, **kwargs)
        first = value[0] if has_aux else value
        inputs = [tracked[p] for p in positions]
        flat, form = pytree.tree_flatten((inputs, list(parameters)))
        gradients = differentiate(first, flat, sens, create_graph=nested)
        input_grads, parameter_grads = pytree.tree_unflatten(gradients, form)
    if not nested:
        value = detached(value)
    return value, tuple(input_grads), tuple(parameter_grads)


def differentiate(
    outputs: Any, inputs: list[Any], sens: Any = None, *, create_graph: bool = False
) -> list[Any]:
    """Return the gradient of the outputs for each input; zeros if they do not depend on it.

    With ``create_graph`` the gradients can be differentiated again.
    """
    flat = [x for x in pytree.tree_leaves(outputs) if isinstance(x, torch.Tensor)]
    with plain_attributes():  # a graph's backward accepts PyTorch's own tensor class only
        output_grads = [torch.ones_like(x) for x in flat] if sens is None else _sens(sens, flat)
    pairs = [(x, g) for x, g in zip(flat, output_grads, strict=True) if x.requires_grad]
    smooth = [x for x in inputs if x.requires_grad]
    remaining: Iterator[Any] = iter(())
    if pairs and smooth:
        ends, starts = zip(*pairs, strict=True)
        remaining = iter(
            torch.autograd.grad(ends, smooth, starts, create_graph=create_graph, allow_unused=True)
        )
    gradients = (next(remaining, None) if x.requires_grad else None for x in inputs)
    return [wrap(torch.zeros_like(x) if g is None else g) for x, g in zip(inputs, gradients, strict=True)]


def detached(value: Any) -> Any:
    """Return the value with every tensor in it, at any depth of containers, detached."""
    return pytree.tree_map(lambda x: x.detach() if isinstance(x, torch.Tensor) else x, value)


def _sens(sens: Any, outputs: list[Any]) -> list[Any]:
    gradients = pytree.tree_leaves(sens)
    if len(gradients) != len(outputs):
        rule = f"needs one gradient for each of {len(outputs)} outputs"
        raise ArgumentValueError("the gradient of the outputs", rule, str(len(gradients)))
    for g, x in zip(gradients, outputs, strict=True):
        if tuple(g.shape) != tuple(x.shape):
            rule = f"must be of the output's shape {tuple(x.shape)}"
            raise ArgumentValueError("the gradient of the outputs", rule, tuple(g.shape))
    return [plain(g) for g in gradients]


def _tracked(args: Sequence[Any], position: int, nested: bool) -> Any:
    if not -len(args) <= position < len(args):
        rule = f"position {position} is outside of the {len(args)} inputs"
        raise ArgumentValueError("grad_position", rule)

    def track(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            rule = f"input {position} must be a Tensor, or a tuple or list of them"
            raise ArgumentTypeError("grad_position", rule, type(value).__name__)
        if nested and value.requires_grad:
            return value.view_as(value)  # a new tensor, which keeps the outer call's history
        return tracked_copy(value)

    return pytree.tree_map(track, args[position])


@contextlib.contextmanager
def _level() -> Iterator[bool]:
    """Yield whether this gradient is computed inside another."""
    outer = depth()
    _nesting.depth = outer + 1
    try:
        yield outer > 0
    finally:
        _nesting.depth = outer


def _function(fn: Any) -> Any:
    return fn.construct if isinstance(fn, torch.nn.Module) else fn


def _check(fn: Any, position: Any, weights: Any, return_ids: Any) -> None:
    if not callable(fn):
        raise ArgumentTypeError("grad", "fn must be a function or a Cell", type(fn).__name__)
    if return_ids:
        hint = "leave return_ids out: the gradients come in the order of grad_position and weights"
        raise UnsupportedError("grad", "return_ids is not supported", hint=hint)
    if position is None and weights is None:
        raise ArgumentValueError("grad", "grad_position and weights cannot both be None")
    items = position if isinstance(position, tuple) else () if position is None else (position,)
    if any(isinstance(item, bool) or not isinstance(item, int) for item in items):
        raise ArgumentTypeError(
            "grad", "grad_position must be an int, a tuple of ints or None", repr(position)
        )
    listed = [weights] if isinstance(weights, Parameter) or weights is None else weights
    if not isinstance(listed, (list, tuple)) or any(not isinstance(w, Parameter | None) for w in listed):
        rule = "weights must be a Parameter, or a list or ParameterTuple of them"
        raise ArgumentTypeError("grad", rule, type(weights).__name__)
