"""How PyTorch's tensors become MindSpore's, and who sees which attributes.

``Tensor.__torch_function__`` comes here. Results of PyTorch's functions become ``Tensor`` by
their class alone: no copy, no view, the same autograd node. While ``torch.compile`` traces,
where a class cannot be assigned, ``as_subclass`` does it.

``dtype``, ``shape``, ``size`` and a few methods differ between the two frameworks. A script
gets MindSpore's; PyTorch's own Python code and polyop's hosts, which are handed the same
object, get PyTorch's: the calling frame decides.
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

plain_attributes = torch._C.DisableTorchFunctionSubclass  # noqa: SLF001 - PyTorch names it so for subclasses
"""Within it a ``Tensor`` is to PyTorch like any other, and results are plain."""

tensor_class: list[Any] = []
"""The class of results; ``tensor.py`` puts it here."""

_ERRORS = (  # PyTorch's words, MindSpore's
    (
        "created inside a custom Function",
        "This view tensor is output of custom cell, which has custom bprop, it may not support view+inplace",
    ),
    ("function that returns multiple views", "A view of base is being inplace modified, among several views"),
    ("a leaf Variable", "A leaf tensor that need grad is being used in an inplace operator"),
)


def wrap(value: Any) -> Any:
    """Return a result with MindSpore's ``Tensor`` in place of each plain tensor; containers are opened."""
    if isinstance(value, torch.Tensor):
        if torch.compiler.is_dynamo_compiling():
            return value if isinstance(value, tensor_class[0]) else value.as_subclass(tensor_class[0])
        if type(value) is torch.Tensor:
            value.__class__ = tensor_class[0]
        return value
    if isinstance(value, (tuple, list)):
        return type(value)(wrap(item) for item in value)
    return value


def wrap_apart(value: Any, given: Iterable[Any] | None = None) -> Any:
    """Do the same, but leave plain tensors that are somebody else's as they are: all, or those given.

    In their place comes a ``Tensor`` of the same memory and history.
    """
    if isinstance(value, (tuple, list)):
        return type(value)(wrap_apart(item, given) for item in value)
    foreign = given is None or any(value is other for other in given)
    if foreign and type(value) is torch.Tensor and not torch.compiler.is_dynamo_compiling():
        return value.as_subclass(tensor_class[0])
    return wrap(value)


def wrap_traced(value: Any) -> Any:
    """Do the same for a tensor that PyTorch's compiler gives a traced backward."""
    if isinstance(value, torch.Tensor) and torch.compiler.is_dynamo_compiling():
        with plain_attributes():  # it may be of a class between the two, of which as_subclass is not traced
            value = value.view_as(value)
        return wrap(value)
    return wrap_apart(value)


def plain(value: Any) -> Any:
    """Return a tensor as PyTorch's own class, its history kept; anything else as it is."""
    if not isinstance(value, tensor_class[0]):
        return value
    if torch.compiler.is_dynamo_compiling():  # which makes subclasses of tensors, and not the way back
        with plain_attributes():
            return value.view_as(value)
    return value.as_subclass(torch.Tensor)


def run(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return what PyTorch's function returns, as MindSpore's; errors take MindSpore's words."""
    try:
        with plain_attributes():
            result = function(*args, **kwargs)
    except RuntimeError as problem:
        for words, text in _ERRORS:
            if words in str(problem):
                raise GradientError(getattr(function, "__name__", "tensor"), text) from problem
        raise
    if function in NO_WRAP or any(result is value for value in args):
        return result
    if result is kwargs.get("out", function):
        return result
    return wrap_apart(result, args) if isinstance(result, (tuple, list)) else wrap(result)


def run_traced(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Do the same while ``torch.compile`` traces."""
    if isinstance(function, types.FunctionType):  # asks its arguments again, and the tracer says yes
        args = _plain_all(args)
        kwargs = {name: _plain_all(value) for name, value in kwargs.items()}
    with plain_attributes():
        result = function(*args, **kwargs)
    return result if function in NO_WRAP else wrap(result)


def _plain_all(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value)([_plain_all(item) for item in value])
    return plain(value)


def call_script(function: Callable[..., Any], *args: Any) -> Any:
    """Call a script's function from within PyTorch, a gradient's for one: its tensors stay MindSpore's."""
    if torch.compiler.is_dynamo_compiling():
        return function(*args)
    with torch._C._EnableTorchFunction():  # noqa: SLF001 - the engine runs with it switched off
        return function(*args)


def for_script(depth: int) -> bool:
    """Whether the frame ``depth`` above the caller is a script's, not PyTorch's nor a host's."""
    names = sys._getframe(depth + 1).f_globals  # noqa: SLF001
    if "__name__" not in names and "G" in names:  # a guard: code that PyTorch's compiler generates
        return False
    name = names.get("__name__", "")
    return name.partition(".")[0] not in ("torch", "polyop") or name.startswith("polyop.mindspore")


def unlike_torch(method: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a method whose arguments mean something else in PyTorch: PyTorch's own code gets PyTorch's."""
    original = getattr(torch.Tensor, method.__name__)

    @functools.wraps(method)
    def chosen(self: Any, *args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_dynamo_compiling() or for_script(1):
            return method(self, *args, **kwargs)
        return original(self, *args, **kwargs)

    return chosen
