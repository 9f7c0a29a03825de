"""PyTorch's own checks of an operator, and a trace with symbolic sizes. Only where PyTorch is used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

from ...core.spec import Spec
from ...core.texts import first_line
from ..case import BrokenRuleError, Case, NotRunError, as_list
from . import torch_tensors
from .framework import lacking


def opcheck(case: Case) -> str | None:
    """Run ``torch.library.opcheck`` on the registered operator; return which part of it cannot run.

    Its test of compiled gradients adds up the outputs in place, which PyTorch refuses where the sum begins
    with integers and goes on with floats.
    """
    gradients = case.has_gradient and not case.operator.schema.mutates
    args, keywords = case.operator.schema.split(torch_tensors.arguments(case, gradients=gradients))
    tests: Sequence[str] = _TESTS
    remark = None
    if gradients and case.floating_outputs()[:1] == [False]:
        tests, remark = _TESTS[:-1], f"without {_TESTS[-1]}: it cannot add up integers and floats"
    outcomes = torch.library.opcheck(
        case.bound.torch, args, keywords, test_utils=tests, raise_exception=False
    )
    for name, outcome in outcomes.items():
        if outcome != "SUCCESS":
            if lack := lacking(str(outcome)):
                raise NotRunError(lack)
            text = first_line(outcome)
            raise BrokenRuleError(f"torch.library.opcheck, {name}, must succeed", text)
    return remark


_TESTS = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")


def check_symbolic(case: Case, expected: tuple[Spec, ...]) -> None:
    """Trace the operator with symbolic sizes.

    Raises ``BrokenRuleError`` where the infer rule turns a size into a number, or where the output sizes
    are not the expected ones.
    """
    environment = ShapeEnv(duck_shape=True)
    mode = FakeTensorMode(shape_env=environment)
    names: dict[Any, str] = {}

    def fake(name: str, value: Any) -> Any:
        real = torch_tensors.to_torch(value, "cpu")
        context = StatelessSymbolicContext([DimDynamic.DUCK] * real.ndim)
        tensor = mode.from_tensor(real, symbolic_context=context)
        for axis, size in enumerate(tensor.shape):
            if not isinstance(size, int):
                names.setdefault(size.node.expr, f"dimension {axis} of {name}")
        return tensor

    arguments = case.map(fake)
    args, keywords = case.operator.schema.split(arguments)
    with mode:
        outputs = as_list(case.bound.torch(*args, **keywords))
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
