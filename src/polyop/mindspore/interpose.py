"""Turns PyTorch's tensors into MindSpore's, and decides whose attributes a caller sees.

``Tensor.__torch_function__`` calls :func:`run`. A result of a PyTorch function becomes a ``Tensor``
by assigning its class: no copy, no view, the same autograd node. A class cannot be assigned while
``torch.compile`` traces, so ``as_subclass`` is used there.

``dtype``, ``shape``, ``size`` and a few methods differ between the two frameworks. The calling frame
decides: a script gets MindSpore's, PyTorch's Python code and polyop's hosts get PyTorch's.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable, Iterable
from typing import Any

import torch

from ..core.errors import GradientError

NO_WRAP = frozenset(torch.overrides.get_default_nowrap_functions())

plain_attributes = torch._C.DisableTorchFunctionSubclass  # noqa: SLF001 - it has no public name
"""A context in which ``__torch_function__`` is off: attributes are PyTorch's, and results are plain."""

tensor_class: list[Any] = []
"""The class of results. ``tensor.py``, which imports this file, appends it."""

_ERRORS = (  # part of PyTorch's message, MindSpore's message
    (
        "created inside a custom Function",
        "This view tensor is output of custom cell, which has custom bprop, it may not support view+inplace",
    ),
    ("function that returns multiple views", "A view of base is being inplace modified, among several views"),
    ("a leaf Variable", "A leaf tensor that need grad is being used in an inplace operator"),
)


def wrap(value: Any) -> Any:
    """Return a result with each plain tensor turned into a ``Tensor``, in tuples and lists too."""
    if isinstance(value, torch.Tensor):
        if torch.compiler.is_dynamo_compiling():
            return value if isinstance(value, tensor_class[0]) else value.as_subclass(tensor_class[0])
        if type(value) is torch.Tensor:
            value.__class__ = tensor_class[0]
        return value
    if isinstance(value, (tuple, list)):
        return type(value)(wrap(item) for item in value)
    return value


def wrap_new(value: Any, shared: Iterable[Any] | None = None) -> Any:
    """Return the same as ``wrap``, without changing the class of tensors that the caller shares.

    For these the result is a new ``Tensor`` with the same memory and history. ``shared`` lists them;
    None means that all tensors are shared.
    """
    if isinstance(value, (tuple, list)):
        return type(value)(wrap_new(item, shared) for item in value)
    is_shared = shared is None or any(value is other for other in shared)
    if is_shared and type(value) is torch.Tensor and not torch.compiler.is_dynamo_compiling():
        return value.as_subclass(tensor_class[0])
    return wrap(value)


def wrap_traced(value: Any) -> Any:
    """Return the same as ``wrap_new``, for a tensor passed to a backward that may be traced."""
    if isinstance(value, torch.Tensor) and torch.compiler.is_dynamo_compiling():
        with plain_attributes():  # as_subclass cannot be traced for an intermediate class
            value = value.view_as(value)
        return wrap(value)
    return wrap_new(value)


def plain(value: Any) -> Any:
    """Return a ``Tensor`` as PyTorch's own class, with its history; anything else unchanged."""
    if not isinstance(value, tensor_class[0]):
        return value
    if torch.compiler.is_dynamo_compiling():  # it traces as_subclass to a subclass only
        with plain_attributes():
            return value.view_as(value)
    return value.as_subclass(torch.Tensor)


def run(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a PyTorch function and return its result as ``Tensor``; errors get MindSpore's words."""
    try:
        with plain_attributes():
            result = function(*args, **kwargs)
    except RuntimeError as problem:
        for part, text in _ERRORS:
            if part in str(problem):
                raise GradientError(getattr(function, "__name__", "tensor"), text) from problem
        raise
    if function in NO_WRAP or any(result is value for value in args):
        return result
    if result is kwargs.get("out", function):
        return result
    return wrap_new(result, args) if isinstance(result, (tuple, list)) else wrap(result)


def run_traced(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return what ``run`` returns, while ``torch.compile`` traces."""
    if isinstance(function, types.FunctionType):  # it would call __torch_function__ again
        args = _plain_all(args)
        kwargs = {name: _plain_all(value) for name, value in kwargs.items()}
    with plain_attributes():
        result = function(*args, **kwargs)
    return result if function in NO_WRAP else wrap(result)


def _plain_all(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value)([_plain_all(item) for item in value])
    return plain(value)


def set_requires_grad(tensor: Any, flag: bool) -> Any:
    """Set whether gradients of a tensor are recorded, and return it; integers have none."""
    with plain_attributes():
        smooth = tensor.is_floating_point() or tensor.is_complex()
        return torch.Tensor.requires_grad_(tensor, flag and smooth)


def tracked_copy(tensor: Any) -> Any:
    """Return a tensor of the same memory, without history, whose gradients are recorded."""
    return set_requires_grad(tensor.detach(), True)


def call_script(function: Callable[..., Any], *args: Any) -> Any:
    """Call a script's function from inside PyTorch, with MindSpore's attributes of its tensors."""
    if torch.compiler.is_dynamo_compiling():
        return function(*args)
    with torch._C._EnableTorchFunction():  # noqa: SLF001 - the autograd engine switches it off
        return function(*args)


def for_script(depth: int) -> bool:
    """Whether the frame ``depth`` above the caller is a script's: neither PyTorch's nor a host's."""
    names = sys._getframe(depth + 1).f_globals  # noqa: SLF001
    if "__name__" not in names and "G" in names:  # a guard, which PyTorch's compiler generates
        return False
    name = names.get("__name__", "")
    return name.partition(".")[0] not in ("torch", "polyop") or name.startswith("polyop.mindspore")


def called_by_library(depth: int) -> bool:
    """Whether the frame ``depth`` above the caller is PyTorch's or polyop's."""
    name = sys._getframe(depth + 1).f_globals.get("__name__", "torch")  # noqa: SLF001
    return name.partition(".")[0] in ("torch", "polyop")


def unlike_torch(method: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a method whose meaning differs from PyTorch's: PyTorch's own code still gets PyTorch's."""
    original = getattr(torch.Tensor, method.__name__)

    @functools.wraps(method)
    def dispatch(self: Any, *args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_dynamo_compiling() or for_script(1):
            return method(self, *args, **kwargs)
        return original(self, *args, **kwargs)

    return dispatch
