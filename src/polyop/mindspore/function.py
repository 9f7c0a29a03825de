"""``_Function``: a forward and a backward written in Python, on PyTorch's ``autograd.Function``.

MindSpore adds that gradients are cast to the input's dtype and summed to its shape, and checks
every use. The texts of the errors are MindSpore's.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch

from ..core.errors import ArgumentTypeError, GradientError, UnsupportedError
from .capture import is_capturing
from .custom_gradient import checked
from .interpose import call_script, plain_attributes, wrap_new

_CLASS = "_autograd"  # the attribute that holds PyTorch's class for a _Function


class FunctionContext:
    """What ``forward`` passes to ``backward``: attributes of any name, and the methods below."""

    def __init__(self, needs_input_grad: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs_input_grad
        self._saved: tuple[Any, ...] = ()
        self._dirty: tuple[Any, ...] = ()
        self._constant: tuple[Any, ...] = ()
        self._materialise = True

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The tensors passed to ``save_for_backward``."""
        return self._saved

    def save_for_backward(self, *tensors: Any) -> None:
        """Save tensors or None for ``backward``; a second call replaces the first."""
        for i, value in enumerate(tensors):
            if value is not None and not isinstance(value, torch.Tensor):
                rule = "takes tensors and None; other values can be attributes of ctx"
                raise ArgumentTypeError(f"save_for_backward: argument {i}", rule, type(value).__name__)
        self._saved = tensors

    def mark_dirty(self, *tensors: Any) -> None:
        """Declare inputs that ``forward`` writes; they must be among its outputs."""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Declare outputs that have no gradient."""
        self._constant = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Choose whether the gradient of an unused output is zeros (the default) or None."""
        self._materialise = bool(value)


class _Function:
    """A function with its own gradient: static ``forward(ctx, ...)`` and ``backward(ctx, *grads)``.

    ``apply`` calls it. ``backward`` returns one gradient, or None, for each argument of
    ``forward`` after ``ctx``.

    >>> from polyop.mindspore import Tensor, grad
    >>> class Triple(_Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return x * 3
    ...
    ...     @staticmethod
    ...     def backward(ctx, dout):
    ...         return dout * 3
    >>> print(grad(Triple.apply)(Tensor(5.0)))
    3.0

    Raises ``GradientError`` for a gradient that breaks these rules, ``UnsupportedError`` in a graph.
    """

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        """Compute the result. Every function defines it."""
        raise NotImplementedError("a _Function needs a static method forward(ctx, ...)")

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Return the gradients. Every function defines it."""
        raise NotImplementedError("a _Function needs a static method backward(ctx, *grads)")

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Return ``forward``'s result, as one node of the gradient."""
        if is_capturing():
            rule = "a _Function runs in PYNATIVE_MODE only, as MindSpore's does"
            raise UnsupportedError(cls.__name__, rule, hint="in a graph, use a cell with construct and bprop")
        return wrap_new(_node(cls).apply(*args), args)


def _node(function: Any) -> Any:
    if _CLASS not in function.__dict__:  # one class per subclass
        body = {
            "forward": staticmethod(functools.partial(_forward, function)),
            "backward": staticmethod(functools.partial(_backward, function)),
        }
        setattr(function, _CLASS, type(function.__name__, (torch.autograd.Function,), body))
    return getattr(function, _CLASS)


def _forward(function: Any, node: Any, *args: Any) -> Any:
    ctx = FunctionContext(tuple(node.needs_input_grad))
    result = call_script(function.forward, ctx, *args)
    outputs = result if isinstance(result, tuple) else (result,)
    _check_dirty(function.__name__, ctx, args, outputs)
    node.mark_dirty(*ctx._dirty)  # noqa: SLF001 - the context is this file's
    node.mark_non_differentiable(*ctx._constant)  # noqa: SLF001
    node.set_materialize_grads(ctx._materialise)  # noqa: SLF001
    node.save_for_backward(*ctx._saved)  # noqa: SLF001
    # shapes and dtypes of the inputs, without their memory
    node.inputs = [x.detach().new_empty(()).expand(x.shape) if _is_tensor(x) else x for x in args]
    ctx._saved = ()  # noqa: SLF001 - PyTorch saves them, and detects later writes
    node.user = ctx
    return result


def _backward(function: Any, node: Any, *gradients: Any) -> Any:
    ctx = node.user
    ctx._saved = wrap_new(node.saved_tensors)  # noqa: SLF001
    try:
        input_grads = call_script(function.backward, ctx, *wrap_new(gradients))
    finally:
        ctx._saved = ()  # noqa: SLF001
    subject = f"{function.__name__}.backward"
    return checked(subject, input_grads, node.inputs)


def _check_dirty(name: str, ctx: Any, args: Sequence[Any], outputs: Sequence[Any]) -> None:
    for tensor in ctx._dirty:  # noqa: SLF001
        if not any(tensor is output for output in outputs):
            raise GradientError(name, "The dirty tensors must all be outputs of the forward function.")
        with plain_attributes():
            if tensor.requires_grad and tensor.is_leaf and any(tensor is x for x in args):
                raise GradientError(name, "A leaf tensor that need grad is being used in an inplace operator")
            if len(outputs) > 1 and tensor._is_view():  # noqa: SLF001
                raise GradientError(name, "A view is one of output for multi output operator")


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)
