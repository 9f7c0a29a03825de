"""The gradient path of a plain eager call: no dispatcher, one node, native launch.

The native call has already checked that nothing but gradients is wanted, so a ``Function``
with a combined ``forward`` through the C-level ``apply`` is enough; it costs about half of
one with ``setup_context``.
"""

from __future__ import annotations

from typing import Any

import torch

from ...core.arguments import bind
from ..bound import BoundOperator
from .layout import Layout
from .run import run


def attach(bound: BoundOperator) -> None:
    """Set what the native call does when gradients are wanted."""
    schema = bound.schema
    layout = Layout(bound)
    if schema.mutates or layout.has_lists:
        bound.differentiate = None  # through torch.ops
        return
    launch, count, as_tuple = bound.launch, len(schema.arguments), bound.operator.returns_tuple

    def forward(ctx: Any, *args: Any) -> Any:
        ctx.given = len(args)
        full = args if len(args) == count else bind(schema, args, {})
        output = launch(*args)
        if output is NotImplemented:
            output = run(bound, full)
        layout.save(ctx, full, output)
        return (output,) if as_tuple and not isinstance(output, tuple) else output

    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        return layout.backward(ctx, *grads)[: ctx.given]

    body = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    kind: Any = type(f"Polyop_{schema.name}", (torch.autograd.Function,), body)
    bound.differentiate = super(torch.autograd.Function, kind).apply
