"""``GradOperation``, ``vjp``, ``jvp``, ``vmap`` and ``stop_gradient``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ..core.errors import ArgumentValueError
from . import context
from .capture import captured
from .grad import detached, differentiate, evaluate
from .interpose import plain, wrap
from .parameter import Parameter


class GradOperation:
    """Makes gradient functions, as MindSpore did before ``grad``.

    Without arguments the gradient of the first input. ``get_all``: a tuple, of all inputs.
    ``get_by_list``: a tuple, of the weights (a cell's own, if none are given). Both: the two.
    ``sens_param``: the last argument of a call is the output's gradient.

    >>> from polyop.mindspore import Tensor
    >>> print(GradOperation()(lambda x: x * x)(Tensor(3.0)))
    6.0
    """

    def __init__(self, get_all: bool = False, get_by_list: bool = False, sens_param: bool = False) -> None:
        self.get_all, self.get_by_list, self.sens_param = get_all, get_by_list, sens_param

    def __call__(self, fn: Callable[..., Any], weights: Any = None) -> Callable[..., Any]:
        """Return the gradient function; raises ``ArgumentValueError`` where weights cannot be found."""
        listed: list[Any] = []
        if self.get_by_list:
            own = getattr(fn, "trainable_params", None)
            if weights is None and own is None:
                raise ArgumentValueError("GradOperation", "get_by_list of a function needs weights")
            found = own() if weights is None and own is not None else weights
            listed = [found] if isinstance(found, Parameter) else list(found)

        def gradient(*args: Any, **kwargs: Any) -> Any:
            inputs, sens = (args[:-1], args[-1]) if self.sens_param else (args, None)
            positions = [i for i, x in enumerate(inputs) if isinstance(x, torch.Tensor)]
            if not self.get_all:
                positions = [] if self.get_by_list else [0]
            _, mine, of_weights = evaluate(fn, inputs, kwargs, positions, listed, sens=sens)
            theirs: Any = of_weights[0] if isinstance(weights, Parameter) else of_weights
            if not self.get_by_list:
                return mine if self.get_all else mine[0]
            return (mine, theirs) if self.get_all else theirs

        return gradient


def vjp(fn: Callable[..., Any], *inputs: Any, weights: Any = None, has_aux: bool = False) -> Any:
    """Return (outputs, a function from their gradients to the inputs') and, with ``has_aux``, the rest.

    The function gives one gradient for one input, a tuple for several; with ``weights``, that
    and a tuple of theirs. It can be called more than once.
    """
    listed = [weights] if isinstance(weights, Parameter) else list(weights or ())
    with torch.enable_grad():
        tracked = [x.detach().requires_grad_(x.is_floating_point() or x.is_complex()) for x in inputs]
        value = fn(*tracked)
    outputs = value[0] if has_aux else value

    def pull(*gradients: Any) -> Any:
        sens = gradients[0] if len(gradients) == 1 else gradients
        found = differentiate(outputs, [*tracked, *listed], sens, keep=True)
        plain = [g.detach() for g in found]
        mine: Any = tuple(plain[: len(tracked)])
        mine = mine[0] if len(mine) == 1 else mine
        return mine if weights is None else (mine, tuple(plain[len(tracked) :]))

    shown = detached(outputs)
    return (shown, pull, tuple(detached(value[1:]))) if has_aux else (shown, pull)


def jvp(fn: Callable[..., Any], inputs: Any, v: Any, has_aux: bool = False) -> Any:
    """Return (outputs, their derivative in the direction ``v``) and, with ``has_aux``, the rest."""
    primals = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    directions = tuple(v) if isinstance(v, (tuple, list)) else (v,)

    def function(*args: Any) -> Any:
        value = fn(*wrap(args))
        return (value[0], tuple(value[1:])) if has_aux else value

    def push(*args: Any) -> Any:
        return torch.func.jvp(function, args[: len(primals)], args[len(primals) :], has_aux=has_aux)

    return wrap(_run(push, (*primals, *directions)))


def vmap(fn: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0) -> Callable[..., Any]:
    """Return ``fn`` for a batch: ``in_axes`` says where each input has it (None: not at all)."""

    def inner(*args: Any) -> Any:
        return fn(*wrap(args))

    batched = torch.vmap(inner, in_dims=in_axes, out_dims=out_axes)
    return lambda *args: wrap(_run(batched, args))


def _run(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    # PyTorch's transforms ask their tensors for PyTorch's attributes, also while they are traced
    args = tuple(map(plain, args))
    # a transform takes no compiled function: in GRAPH_MODE the transform is in the graph
    if context.graph_mode() and not torch.compiler.is_dynamo_compiling():
        return captured(function)(*args)
    return function(*args)


def stop_gradient(value: Any) -> Any:
    """Return the value as a constant to every gradient."""
    return wrap(value.detach())
