"""``ops.Custom``: polyop's own, whose ``bprop`` sees MindSpore's tensors."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ...define.custom import Custom as _Custom
from ..interpose import call_script, plain, wrap


class Custom(_Custom):
    """An operator from a library, a source or a Python function; see ``polyop.Custom``."""

    def __init__(
        self,
        func: Any,
        out_shape: Any = None,
        out_dtype: Any = None,
        func_type: str = "pyfunc",
        bprop: Callable[..., Any] | None = None,
        reg_info: Any = None,
    ) -> None:
        """Check everything that can be checked before the first call."""
        super().__init__(func, out_shape, out_dtype, func_type, _seen(bprop), reg_info)


def _seen(bprop: Any) -> Any:
    if not callable(bprop):
        return bprop  # None, or what the constructor refuses

    @functools.wraps(bprop)
    def rule(*args: Any) -> Any:
        found = call_script(bprop, *wrap(args))
        return tuple(map(plain, found)) if isinstance(found, tuple) else found

    return rule
