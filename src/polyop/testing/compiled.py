"""Compiled programs against eager calls, and PyTorch's own operator checks."""

from __future__ import annotations

import types
from itertools import count
from typing import Any

from .case import BrokenRuleError, Case, Check
from .compare import close


def compiled_against_eager(case: Case) -> None:
    """Compile one call as a full graph, with dynamic sizes, and compare it with an eager call."""
    import torch

    from . import frameworks

    bound = case.bound

    def program(*args: Any, **keywords: Any) -> Any:
        return bound(*args, **keywords)

    # PyTorch counts the compilations of one code object, and a limit stops it: each call has its own
    code = program.__code__.replace(co_name=f"program_{next(_numbers)}")
    own = types.FunctionType(code, program.__globals__, code.co_name, None, program.__closure__)
    step = torch.compile(own, fullgraph=True, backend="aot_eager", dynamic=True)
    args, keywords = case.positional(arguments := frameworks.arguments(case))
    result = step(*args, **keywords)
    outputs = list(result) if isinstance(result, (tuple, list)) else [] if result is None else [result]
    written = case.written(arguments)
    schema = case.operator.schema
    fresh = outputs if schema.returns_list else [outputs[i] for i in schema.fresh]
    close(
        case, "torch.compile", frameworks.to_arrays(fresh + written), frameworks.run(case), "the eager call"
    )


def opcheck(case: Case) -> None:
    """Run ``torch.library.opcheck`` on the registered operator."""
    import torch

    from . import frameworks

    gradients = case.has_gradient and not case.operator.schema.mutates
    args, keywords = case.positional(frameworks.arguments(case, gradients=gradients))
    found = torch.library.opcheck(case.bound.torch, args, keywords, raise_exception=False)
    for name, outcome in found.items():
        if outcome != "SUCCESS":
            text = str(outcome).strip().splitlines()[0] if str(outcome).strip() else repr(outcome)
            raise BrokenRuleError(f"torch.library.opcheck, {name}, must succeed", text)


_numbers = count(1)

CHECKS = (
    Check("compiled", "torch", compiled_against_eager),
    Check("opcheck", "torch", opcheck),
)
