"""``GradOperation``, ``vjp``, ``jvp``, ``jacfwd``, ``jacrev``, ``vmap`` and ``stop_gradient``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ..core.errors import ArgumentValueError
from . import context
from .capture import captured
from .grad import detached, differentiate, evaluate
from .interpose import plain, tracked_copy, wrap
from .parameter import Parameter


class GradOperation:
    """Makes gradient functions, as MindSpore did before ``grad``.

    Without arguments it computes the gradient of the first input. ``get_all``: a tuple for all
    inputs. ``get_by_list``: a tuple for the weights; without weights, for the cell's own. Both: a pair
    of these tuples. ``sens_param``: the last argument of a call is the gradient of the output.

    >>> from polyop.mindspore import Tensor
    >>> print(GradOperation()(lambda x: x * x)(Tensor(3.0)))
    6.0
    """

    def __init__(self, get_all: bool = False, get_by_list: bool = False, sens_param: bool = False) -> None:
        self.get_all, self.get_by_list, self.sens_param = get_all, get_by_list, sens_param

    def __call__(self, fn: Callable[..., Any], weights: Any = None) -> Callable[..., Any]:
        """Return the gradient function; raises ``ArgumentValueError`` if weights are needed and missing."""
        listed: list[Any] = []
        if self.get_by_list:
            own = getattr(fn, "trainable_params", None)
            if weights is None and own is None:
                raise ArgumentValueError("GradOperation", "get_by_list of a function needs weights")
            chosen = own() if weights is None and own is not None else weights
            listed = [chosen] if isinstance(chosen, Parameter) else list(chosen)

        def gradient(*args: Any, **kwargs: Any) -> Any:
            inputs, sens = (args[:-1], args[-1]) if self.sens_param else (args, None)
            positions = [i for i, x in enumerate(inputs) if isinstance(x, torch.Tensor)]
            if not self.get_all:
                positions = [] if self.get_by_list else [0]
            _, input_grads, of_weights = evaluate(fn, inputs, kwargs, positions, listed, sens=sens)
            weight_grads: Any = of_weights[0] if isinstance(weights, Parameter) else of_weights
            if not self.get_by_list:
                return input_grads if self.get_all else input_grads[0]
            return (input_grads, weight_grads) if self.get_all else weight_grads

        return gradient


def vjp(fn: Callable[..., Any], *inputs: Any, weights: Any = None, has_aux: bool = False) -> Any:
    """Return (outputs, pullback), and with ``has_aux`` the other outputs as a third item.

    The pullback takes the gradients of the outputs. It returns a tuple with one gradient per input; with
    ``weights``, a pair of that and their gradients. It can be called more than once.
    """
    listed = [weights] if isinstance(weights, Parameter) else list(weights or ())
    with torch.enable_grad():
        tracked = [tracked_copy(x) for x in inputs]
        value = fn(*tracked)
    outputs = value[0] if has_aux else value

    def pull(*gradients: Any) -> Any:
        sens = gradients[0] if len(gradients) == 1 else gradients
        every = differentiate(outputs, [*tracked, *listed], sens, create_graph=True)
        every = [g.detach() for g in every]
        input_grads = tuple(every[: len(tracked)])
        of_weights = every[-1] if isinstance(weights, Parameter) else tuple(every[len(tracked) :])
        return input_grads if weights is None else (input_grads, of_weights)

    results = detached(outputs)
    return (results, pull, tuple(detached(value[1:]))) if has_aux else (results, pull)


def jvp(fn: Callable[..., Any], inputs: Any, v: Any, has_aux: bool = False) -> Any:
    """Return (outputs, their derivative in the direction ``v``), and with ``has_aux`` the other outputs."""
    primals = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    directions = tuple(v) if isinstance(v, (tuple, list)) else (v,)

    def function(*args: Any) -> Any:
        value = fn(*wrap(args))
        return (value[0], tuple(value[1:])) if has_aux else value

    def push(*args: Any) -> Any:
        return torch.func.jvp(function, args[: len(primals)], args[len(primals) :], has_aux=has_aux)

    return wrap(_run(push, (*primals, *directions)))


def vmap(fn: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0) -> Callable[..., Any]:
    """Return ``fn`` for a batch; ``in_axes`` has each input's batch axis, or None for an unbatched input."""

    def inner(*args: Any) -> Any:
        return fn(*wrap(args))

    batched = torch.vmap(inner, in_dims=in_axes, out_dims=out_axes)
    return lambda *args: wrap(_run(batched, args))


def jacrev(fn: Callable[..., Any], grad_position: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return a function for the Jacobian of ``fn``, by reverse mode; a tuple of positions gives a tuple."""
    return _jacobian(torch.func.jacrev, fn, grad_position, has_aux)


def jacfwd(fn: Callable[..., Any], grad_position: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return a function for the Jacobian of ``fn``, by forward mode; a tuple of positions gives a tuple."""
    return _jacobian(torch.func.jacfwd, fn, grad_position, has_aux)


def _jacobian(transform: Any, fn: Callable[..., Any], position: Any, has_aux: bool) -> Callable[..., Any]:
    def inner(*args: Any) -> Any:
        value = fn(*wrap(args))
        return (value[0], tuple(value[1:])) if has_aux else value

    jacobian = transform(inner, argnums=position, has_aux=has_aux)
    return lambda *args: wrap(_run(jacobian, args))


def _run(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    # PyTorch's transforms need PyTorch's attributes, also while they are traced
    args = tuple(map(plain, args))
    # a transform does not accept a compiled function, so in GRAPH_MODE the whole transform is compiled
    if context.graph_mode() and not torch.compiler.is_dynamo_compiling():
        return captured(function)(*args)
    return function(*args)


def stop_gradient(value: Any) -> Any:
    """Return the value, which every gradient treats as a constant."""
    return wrap(value.detach())
