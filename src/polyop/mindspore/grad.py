"""``grad`` and ``value_and_grad``: gradients of functions and cells, by PyTorch's autograd."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from ..core.errors import ArgumentTypeError, ArgumentValueError, UnsupportedError
from .interpose import plain, plain_attributes, wrap
from .parameter import Parameter

Position = int | tuple[int, ...] | None

_nesting = threading.local()


def grad(
    fn: Callable[..., Any],
    grad_position: Position = 0,
    weights: Any = None,
    has_aux: bool = False,
    return_ids: bool = False,
) -> Callable[..., Any]:
    """Return a function for the gradient of ``fn``, which may be a cell.

    ``grad_position``  an int gives one gradient, a tuple a tuple; None none of the inputs'.
    ``weights``        a ``Parameter`` gives one gradient, a list a tuple, beside the inputs':
                       ``(of the inputs, of the weights)``.
    ``has_aux``        only the first output is differentiated; the result is
                       ``(gradients, the other outputs)``.

    Several outputs are summed, and what an output does not depend on has gradient zero.

    >>> from polyop.mindspore import Tensor
    >>> print(grad(lambda x: x * x)(Tensor([1.0, 4.0, 9.0])))
    [ 2.  8. 18.]

    Raises ``ArgumentTypeError`` and ``ArgumentValueError`` for a position that is no tensor's,
    ``UnsupportedError`` for ``return_ids``.
    """
    both = value_and_grad(fn, grad_position, weights, has_aux, return_ids)

    @functools.wraps(_function(fn))
    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, found = both(*args, **kwargs)
        return (found, tuple(value[1:])) if has_aux else found

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
        mine: Any = inputs[0] if isinstance(grad_position, int) else inputs
        theirs: Any = of_weights[0] if isinstance(weights, Parameter) else of_weights
        if weights is None:
            return value, mine
        return value, (theirs if grad_position is None else (mine, theirs))

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

    ``sens`` are the gradients of the outputs; ones, without.
    """
    with _level() as nested, torch.enable_grad():
        given = list(args)
        for position in positions:
            given[position] = _tracked(args, position, nested)
        value = fn(*given, **kwargs)
        first = value[0] if has_aux else value
        wanted = [given[p] for p in positions]
        flat, form = pytree.tree_flatten((wanted, list(parameters)))
        found = differentiate(first, flat, sens, keep=nested)
        inputs, of_parameters = pytree.tree_unflatten(found, form)
    if not nested:
        value = detached(value)
    return value, tuple(inputs), tuple(of_parameters)


def differentiate(outputs: Any, wanted: list[Any], sens: Any = None, *, keep: bool = False) -> list[Any]:
    """Return the gradient of the outputs for each wanted tensor; zeros where there is none."""
    flat = [x for x in pytree.tree_leaves(outputs) if isinstance(x, torch.Tensor)]
    with plain_attributes():  # a graph's backward knows PyTorch's own class only
        given = [torch.ones_like(x) for x in flat] if sens is None else _sens(sens, flat)
    pairs = [(x, g) for x, g in zip(flat, given, strict=True) if x.requires_grad]
    smooth = [x for x in wanted if x.requires_grad]
    found: Iterator[Any] = iter(())
    if pairs and smooth:
        ends, starts = zip(*pairs, strict=True)
        found = iter(torch.autograd.grad(ends, smooth, starts, create_graph=keep, allow_unused=True))
    gradients = (next(found, None) if x.requires_grad else None for x in wanted)
    return [wrap(torch.zeros_like(x) if g is None else g) for x, g in zip(wanted, gradients, strict=True)]


def detached(value: Any) -> Any:
    """Return the value without its history; containers are opened."""
    return pytree.tree_map(lambda x: x.detach() if isinstance(x, torch.Tensor) else x, value)


def _sens(sens: Any, outputs: list[Any]) -> list[Any]:
    given = pytree.tree_leaves(sens)
    if len(given) != len(outputs):
        rule = f"needs one gradient for each of {len(outputs)} outputs"
        raise ArgumentValueError("the gradient of the outputs", rule, str(len(given)))
    for g, x in zip(given, outputs, strict=True):
        if tuple(g.shape) != tuple(x.shape):
            rule = f"must be of the output's shape {tuple(x.shape)}"
            raise ArgumentValueError("the gradient of the outputs", rule, tuple(g.shape))
    return [plain(g) for g in given]


def _tracked(args: Sequence[Any], position: int, nested: bool) -> Any:
    if not -len(args) <= position < len(args):
        rule = f"position {position} is outside of the {len(args)} inputs"
        raise ArgumentValueError("grad_position", rule)

    def track(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            rule = f"input {position} must be a Tensor, or a tuple or list of them"
            raise ArgumentTypeError("grad_position", rule, type(value).__name__)
        if nested and value.requires_grad:
            return value.view_as(value)  # this call's own, with the outer call's history
        start = value.detach()
        return start.requires_grad_(start.is_floating_point() or start.is_complex())

    return pytree.tree_map(track, args[position])


@contextlib.contextmanager
def _level() -> Iterator[bool]:
    """Yield whether another gradient is being taken around this one."""
    depth = getattr(_nesting, "depth", 0)
    _nesting.depth = depth + 1
    try:
        yield depth > 0
    finally:
        _nesting.depth = depth


def _function(fn: Any) -> Any:
    return fn.construct if isinstance(fn, torch.nn.Module) else fn


def _check(fn: Any, position: Any, weights: Any, return_ids: Any) -> None:
    if not callable(fn):
        raise ArgumentTypeError("grad", "fn must be a function or a Cell", type(fn).__name__)
    if return_ids:
        hint = "leave return_ids out: the gradients come in the order of grad_position and weights"
        raise UnsupportedError("grad", "return_ids is not here", hint=hint)
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
