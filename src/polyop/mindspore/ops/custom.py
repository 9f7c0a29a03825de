"""``ops.Custom``: polyop's ``Custom``, whose ``bprop`` gets MindSpore's ``Tensor``."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable
from typing import Any

import torch

from ...define.custom.custom import Custom as _Custom
from ..bprop import bridge
from ..grad import depth
from ..interpose import call_script, plain, wrap_new


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
