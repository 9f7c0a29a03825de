"""``ops.Custom`` and ``ops.CustomOpBuilder``: polyop's, with MindSpore's ``Tensor`` for rules and results."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch

from ...define.custom.custom import Custom as _Custom
from ...define.module.builder import CustomOpBuilder as _Builder
from ...define.module.module import OperatorModule, PlainFunction
from .. import context
from ..bprop import bridge
from ..capture import is_capturing
from ..grad import depth
from ..interpose import call_script, plain, wrap_new
from .arguments import wrapped


class Custom(_Custom):
    """An operator from a library, a source or a Python function; see ``polyop.Custom``."""

    keeps_first_information = True

    def __init__(
        self,
        func: Any,
        out_shape: Any = None,
        out_dtype: Any = None,
        func_type: str = "pyfunc",
        bprop: Callable[..., Any] | None = None,
        reg_info: Any = None,
    ) -> None:
        """Check what can be checked before the first call."""
        super().__init__(func, out_shape, out_dtype, func_type, _eager(bprop), reg_info)
        compute = functools.partial(_Custom.__call__, self)
        self._traced = None if bprop is None else bridge(self.subject, compute, bprop, attributes=True)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the outputs: one tensor, a tuple of several, or None."""
        # PyTorch's compiler traces this function. A rule that it traces further down would get tensors
        # without MindSpore's methods. But a second derivative of the bridge would be zero there.
        listed = any(isinstance(value, (list, tuple)) for value in args)
        bridgeable = not kwargs and not listed and depth() < 2
        if self._traced is not None and bridgeable and torch.compiler.is_dynamo_compiling():
            return self._traced(*args)
        return super().__call__(*args, **kwargs)


def _eager(bprop: Any) -> Any:
    if not callable(bprop):
        return bprop  # None, or a value that the constructor refuses

    @functools.wraps(bprop)
    def rule(*args: Any) -> Any:
        result = call_script(bprop, *wrap_new(args))
        return tuple(map(plain, result)) if isinstance(result, tuple) else result

    with contextlib.suppress(TypeError, ValueError):  # a function of C
        rule.__signature__ = inspect.signature(bprop, follow_wrapped=False)  # type: ignore[attr-defined]
    return rule


_MODULES: dict[int, Module] = {}


class Module:
    """The functions of a C++ module as attributes; an unknown name raises ``AttributeError``."""

    def __init__(self, loaded: OperatorModule) -> None:
        self.loaded = loaded  # keeps it alive, so that its id is not used again
        if loaded.has_modes:
            return  # a name means another function in graph mode, so it is looked up at each use
        for name in dir(loaded):
            value = _named(getattr(loaded, name))
            if not name.startswith("__") and callable(value):
                self.__dict__[name] = value

    def __getattr__(self, name: str) -> Any:
        return _named(getattr(self.__dict__["loaded"], name))

    def __repr__(self) -> str:
        return repr(self.loaded)


def _named(value: Any) -> Any:
    # a plain function gets no tensor from which it could tell the framework of its results
    return wrapped(value) if isinstance(value, PlainFunction) else value


def in_graph() -> bool:
    """Whether functions are looked up for graph mode: it is set, or a graph is being captured."""
    return context.graph_mode() or is_capturing()


class CustomOpBuilder(_Builder):
    """Builds C++ sources into a module of operators; see ``polyop.CustomOpBuilder``."""

    def load(self, *, infer: Mapping[str, Any] | None = None, dims: Mapping[str, Any] | None = None) -> Any:
        """Return the module, built if it is not cached; raises what ``polyop.CustomOpBuilder`` raises."""
        loaded = super().load(infer=infer, dims=dims)
        if id(loaded) not in _MODULES:
            _MODULES[id(loaded)] = Module(loaded)
        return _MODULES[id(loaded)]

    def _graph_mode(self) -> Callable[[], bool]:
        return in_graph

    def _like(self) -> Callable[[], Any]:
        return lambda: torch.empty(0, device=context.device())
