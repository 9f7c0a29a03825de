"""NumPy arrays: the plain call, which the other frameworks are compared with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ...call.bound import BoundOperator
from ..case import Array, Case, NotRunError
from .framework import DemoRow


def run(case: Case) -> list[Array]:
    """Call the operator on copies of the arrays."""
    return case.run()


def gradients(case: Case, cotangents: Sequence[Array]) -> dict[str, Array | None]:
    """Return the input gradients of ``op.vjp``."""
    return pulled(case, case.copy(), cotangents, np.asarray)


def pulled(
    case: Case, arguments: tuple[Any, ...], cotangents: Sequence[Any], array: Callable[[Any], Array]
) -> dict[str, Array | None]:
    """Return what ``op.vjp`` gives for arguments of any host, each gradient as ``array`` makes it one."""
    args, keywords = case.operator.schema.split(arguments)
    _, pull = case.bound.vjp(*args, **keywords)
    operator = case.operator
    listed = operator.schema.returns_list and not operator.unpacks
    single = len(cotangents) == 1 and not operator.returns_tuple and not listed
    return named(case, pull(cotangents[0] if single else tuple(cotangents)), array)


def named(case: Case, gradients: Any, array: Callable[[Any], Array] = np.asarray) -> dict[str, Array | None]:
    """Return gradients by the name of the tensor; ``gradients`` has one for each argument."""
    grads: dict[str, Any] = {}
    for argument, value, grad in zip(case.operator.schema.arguments, case.arguments, gradients, strict=True):
        if not argument.type.is_tensor or value is None:
            continue
        if isinstance(value, (list, tuple)) and argument.type.is_list:
            items = grad if grad is not None else [None] * len(value)
            grads.update({f"{argument.name}[{i}]": item for i, item in enumerate(items)})
        else:
            grads[argument.name] = grad
    return {name: None if grad is None else array(grad) for name, grad in grads.items()}


def compiled(case: Case) -> list[Array]:
    """Raise ``NotRunError``."""
    del case
    raise NotRunError("NumPy has no compiler")


def compiled_gradients(case: Case, cotangents: Sequence[Array]) -> dict[str, Array | None]:
    """Raise ``NotRunError``."""
    del case, cotangents
    raise NotRunError("NumPy has no compiler")


def batched(samples: Sequence[Case]) -> list[Array]:
    """Raise ``NotRunError``."""
    del samples
    raise NotRunError("NumPy has no vmap")


def demo(bound: BoundOperator, x: Array) -> Iterator[DemoRow]:
    """Yield the calls of an operator of one tensor, with values and gradients."""
    yield "NumPy", bound(x), bound.vjp(x)[1](np.ones_like(x))[0], lambda: bound(x)
