"""PyTorch's own checks of an operator, and a trace with symbolic sizes. Only where PyTorch is used."""

from __future__ import annotations

from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

from ...core.spec import Spec
from ..case import BrokenRuleError, Case
from . import torch_tensors


def opcheck(case: Case) -> None:
    """Run ``torch.library.opcheck`` on the registered operator."""
    gradients = case.has_gradient and not case.operator.schema.mutates
    args, keywords = case.positional(torch_tensors.arguments(case, gradients=gradients))
    found = torch.library.opcheck(case.bound.torch, args, keywords, raise_exception=False)
    for name, outcome in found.items():
        if outcome != "SUCCESS":
            text = str(outcome).strip().splitlines()[0] if str(outcome).strip() else repr(outcome)
            raise BrokenRuleError(f"torch.library.opcheck, {name}, must succeed", text)


def check_symbolic(case: Case, expected: tuple[Spec, ...]) -> None:
    """Compare the specs that are inferred for symbolic sizes with the expected ones."""
    environment = ShapeEnv(duck_shape=True)
    mode = FakeTensorMode(shape_env=environment)
    names: dict[Any, str] = {}

    def fake(name: str, value: Any) -> Any:
        real = torch_tensors.to_torch(value, "cpu")
        context = StatelessSymbolicContext([DimDynamic.DUCK] * real.ndim)
        made = mode.from_tensor(real, symbolic_context=context)
        for axis, size in enumerate(made.shape):
            if not isinstance(size, int):
                names.setdefault(size.node.expr, f"dimension {axis} of {name}")
        return made

    arguments = case.map(fake)
    args, keywords = case.positional(arguments)
    with mode:
        result = case.bound.torch(*args, **keywords)
    outputs = list(result) if isinstance(result, (tuple, list)) else [] if result is None else [result]
    for symbol, value in environment.replacements.items():
        if value.is_number and symbol in names:
            raise BrokenRuleError(
                f"the infer rule must not fix {names[symbol]}: with symbolic sizes it stays a symbol",
                f"the number {value} (a comparison with a number, or int() of a size, does this)",
            )
    for number, (value, spec) in enumerate(zip(outputs, expected, strict=True)):
        shape = tuple(_number(size) for size in value.shape)
        if shape != tuple(spec.shape):
            raise BrokenRuleError(
                f"output {number}: the infer rule gives {spec}", f"{shape} under fake tensors"
            )


def _number(size: Any) -> int:
    return size if isinstance(size, int) else int(size.node.hint)
