"""Graphs, for ``jit`` and for cells in ``GRAPH_MODE``: ``torch.compile(fullgraph=True)``.

Compiled code gets plain tensors. PyTorch's compiler can trace through a tensor subclass, but its
checks of custom operators cannot.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from ..core.errors import ArgumentTypeError, PolyopError, UnsupportedError
from .interpose import plain, plain_attributes, wrap_new

# MindSpore's backends, and their options, which have no effect here
BACKENDS = {"": "inductor", "ms_backend": "inductor", "GE": "inductor"}
OPTIONS = frozenset({
    "mode", "input_signature", "hash_args", "jit_config", "compile_once", "capture_mode", "jit_level",
    "fullgraph", "disable_format_transform", "exec_order", "ge_options", "infer_boost", "debug_level",
})  # fmt: skip


def captured(function: Callable[..., Any], backend: str = "inductor", dynamic: Any = None) -> Any:
    """Return the function, compiled as one graph for each kind of arguments, at the first such call."""
    # torch.compile caches by code object, and recompiles if the backend is another object: see _backend
    compiled = torch.compile(function, fullgraph=True, backend=_backend(backend), dynamic=dynamic)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_dynamo_compiling():  # part of another graph
            return function(*args, **kwargs)
        try:
            with _gradients_in_graphs():
                return wrap_new(compiled(*args, **kwargs), (*args, *kwargs.values()))
        except torch._dynamo.exc.TorchDynamoException as problem:  # noqa: SLF001
            if not isinstance(problem, PolyopError):
                _raise_script_error(function, args, kwargs, problem)
            raise

    return call


def captured_cell(cell: Any, backend: str = "inductor", dynamic: Any = None) -> Any:
    """Return the cell's call, compiled as a separate graph.

    Each cell gets a copy of the code object with a new name. PyTorch's compiler counts recompiles,
    and remembers which sizes varied, per code object and name; shared code would soon reach its limit.
    """
    code = _call_module.__code__.replace(co_name=f"{type(cell).__name__}_{next(_numbers)}")
    return captured(types.MethodType(types.FunctionType(code, globals()), cell), backend, dynamic)


_numbers = itertools.count()


def _call_module(module: Any, *args: Any, **kwargs: Any) -> Any:
    return torch.nn.Module.__call__(module, *args, **kwargs)


# the words of PyTorch's compiler for an exception that the script itself raises, and for a new operator
_RAISED = ("Observed exception", "Attempted to call a super() attribute", "making fake tensor call")
_NEW_OPERATOR = "polyop._core.Call'>) __new__"


def _raise_script_error(function: Callable[..., Any], args: Any, kwargs: Any, problem: Exception) -> None:
    """Run the function and its gradient uncompiled, to raise the script's own error, if that is the cause.

    Raises ``UnsupportedError`` for an operator that the script makes.
    """
    if _NEW_OPERATOR in str(problem):
        rule = "an operator cannot be made while a graph is captured"
        raise UnsupportedError("Custom", rule, hint="make it before: in the __init__ of the cell") from None
    if not any(words in str(problem) for words in _RAISED):
        return
    with in_capture():
        _differentiate(function(*args, **kwargs), (*args, *kwargs.values()), function)


def _differentiate(result: Any, inputs: Iterable[Any], function: Callable[..., Any]) -> None:
    """Compute the gradient of a result for the error it may raise: a graph contains the gradient too."""
    owner = getattr(function, "__self__", function)
    parameters = owner.parameters() if isinstance(owner, torch.nn.Module) else ()
    outputs = result if isinstance(result, (tuple, list)) else (result,)
    with plain_attributes():
        ends = [x for x in outputs if isinstance(x, torch.Tensor) and x.requires_grad]
        starts = [x for x in (*inputs, *parameters) if isinstance(x, torch.Tensor) and x.requires_grad]
        if ends and starts:
            torch.autograd.grad(ends, starts, [torch.ones_like(x) for x in ends], allow_unused=True)


_capturing = False


def is_capturing() -> bool:
    """Whether a graph is being captured, or a function runs to find out why it cannot be."""
    return _capturing or torch.compiler.is_dynamo_compiling()


@contextlib.contextmanager
def in_capture() -> Iterator[None]:
    """Run as if a graph were captured."""
    global _capturing  # noqa: PLW0603 - the mode of the script
    _capturing = True
    try:
        yield
    finally:
        _capturing = False


def _gradients_in_graphs() -> Any:
    """Allow ``grad`` inside a graph. PyTorch before 2.13 has no such setting, and raises its own error."""
    settings = torch._dynamo.config  # noqa: SLF001
    return (
        settings.patch(trace_autograd_ops=True)
        if hasattr(settings, "trace_autograd_ops")
        else contextlib.nullcontext()
    )


@functools.cache
def _backend(name: str) -> Callable[..., Any]:
    def compile_graph(graph: Any, examples: Any) -> Callable[..., Any]:
        run = torch._dynamo.lookup_backend(name)(graph, examples)  # noqa: SLF001
        return lambda *inputs: run(*map(plain, inputs))

    return compile_graph


def jit(function: Any = None, *, backend: str = "", dynamic: int = 0, **options: Any) -> Any:
    """Return the function as one graph; a decorator, with or without arguments.

    ``backend`` is MindSpore's name, which means PyTorch's "inductor", or any name that
    ``torch._dynamo.list_backends(None)`` returns. ``dynamic=1`` lets sizes vary. Raises PyTorch's
    error for code that cannot be captured, and ``ArgumentTypeError`` for an unknown option.
    """
    for name in options:
        if name not in OPTIONS:
            raise ArgumentTypeError("jit", f"must be one of {', '.join(sorted(OPTIONS))}", name)
    if function is None:
        return functools.partial(jit, backend=backend, dynamic=dynamic, **options)
    if isinstance(function, torch.nn.Module):
        return captured_cell(function, BACKENDS.get(backend, backend), bool(dynamic) or None)
    if not callable(function):
        raise ArgumentTypeError("jit", "must be given a function", type(function).__name__)
    return captured(function, BACKENDS.get(backend, backend), bool(dynamic) or None)
