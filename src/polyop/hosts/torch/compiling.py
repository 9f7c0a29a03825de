"""polyop's errors while ``torch.compile`` traces: they reach the caller as they are.

PyTorch's compiler hides an exception of another class within one of its own, behind its own text.
So an error that is made while it works is of a subclass of polyop's class and of PyTorch's.
"""

from __future__ import annotations

import functools
from typing import Any

import torch

from ...core.errors import PolyopError


def adapt(problem: PolyopError) -> None:
    """Make an error one that PyTorch's compiler lets through, where it is at work."""
    if torch._guards.CompileContext.try_get() is None:
        return
    fields: Any = problem
    kind: Any = type(problem)
    fields.__class__ = _class(kind)
    fields.msg = str(problem)
    fields.real_stack = torch._guards.TracingContext.extract_stack()
    fields.category, fields.gb_type = "polyop", ""
    fields.skip_frame = fields.logged = False
    fields.first_useful_frame = fields.frame_exec_strategy = fields._torch_dynamo_tracer_output = None


@functools.cache
def _class(kind: Any) -> type[PolyopError]:
    """Return a class for what is raised in tracing (Unsupported) and in the backend (ShortenTraceback)."""
    own = torch._dynamo.exc
    body = {"__module__": kind.__module__, "__doc__": kind.__doc__, "remove_from_stats": lambda self: None}
    return type(kind.__name__, (kind, own.Unsupported, own.ShortenTraceback), body)
