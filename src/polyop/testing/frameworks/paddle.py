"""Paddle tensors. Import this file only where Paddle is used."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import paddle

from ...call.bound import BoundOperator
from ...hosts.paddle import tensors
from ..case import Array, BrokenRuleError, Case, NotRunError
from .framework import DemoRow


def run(case: Case) -> list[Array]:
    """Call the operator eagerly."""
    return _arrays(case, case.call(case.map(lambda _, value: _tensor(value))))


def compiled(case: Case) -> list[Array]:
    """Call it inside ``paddle.jit.to_static``, as a full graph."""
    return _arrays(case, _traced(case, [_tensor(value) for _, value in case.tensors()]))


def gradients(case: Case, cotangents: Sequence[Array]) -> dict[str, Array | None]:
    """Return the gradients of ``paddle.grad``."""
    return _gradients(case, cotangents, lambda leaves: case.call(case.with_tensors(leaves)))


def compiled_gradients(case: Case, cotangents: Sequence[Array]) -> dict[str, Array | None]:
    """Return the gradients through a call inside ``paddle.jit.to_static``."""
    return _gradients(case, cotangents, lambda leaves: _traced(case, leaves))


def batched(samples: Sequence[Case]) -> list[Array]:
    """Raise ``NotRunError``."""
    del samples
    raise NotRunError("Paddle has no vmap")


def _tensor(array: Array) -> Any:
    return tensors.tensor(array.copy(order="C"), "a sample")


def _arrays(case: Case, results: Sequence[Any]) -> list[Array]:
    return [tensors.array(case.operator, f"result {i}", x).copy() for i, x in enumerate(results)]


def _traced(case: Case, leaves: list[Any]) -> list[Any]:
    if case.operator.schema.mutates:
        raise NotRunError("an operator that writes an argument cannot be in a program that Paddle traces")

    @paddle.jit.not_to_static  # type: ignore[untyped-decorator]  # Paddle would rewrite the functions of Case
    def call(values: list[Any]) -> Any:
        return case.call(case.with_tensors(values))

    def program(values: list[Any]) -> Any:
        return call(values)

    return list(paddle.jit.to_static(program, full_graph=True)(leaves))


def _gradients(
    case: Case, cotangents: Sequence[Array], call: Callable[[list[Any]], list[Any]]
) -> dict[str, Array | None]:
    names = [name for name, _ in case.tensors()]
    leaves = [_tensor(value) for _, value in case.tensors()]
    smooth = [i for i, leaf in enumerate(leaves) if tensors.row_of(leaf).is_floating]
    for i in smooth:
        leaves[i].stop_gradient = False
    pairs = [
        (out, _tensor(v)) for out, v in zip(call(leaves), cotangents, strict=True) if not out.stop_gradient
    ]
    outputs, grads = [out for out, _ in pairs], [grad for _, grad in pairs]
    try:
        results = paddle.grad(outputs, [leaves[i] for i in smooth], grads, allow_unused=True)
    except OSError as problem:
        missing = re.search(
            r"of kernel `(\w+)` is not registered.*?DataType `(\w+)`", str(problem), re.DOTALL
        )
        if missing is not None:
            reason = f"Paddle has no {missing[1]} of {missing[2]} on the CPU, which the rule needs"
            raise NotRunError(reason) from None
        raised = re.search(r"Error message in backward of .*?=+\s*(\w+: [^\n]*)", str(problem))
        if raised is None:
            raise
        raise BrokenRuleError("the gradient rule must not raise", raised[1]) from None
    found = dict(zip(smooth, results, strict=True))
    chosen = {name: found.get(i) for i, name in enumerate(names)}
    return {name: None if grad is None else _arrays(case, [grad])[0] for name, grad in chosen.items()}


def demo(bound: BoundOperator, x: Array) -> Iterator[DemoRow]:
    """Yield the calls of an operator of one tensor, with values and gradients."""

    def gradient(function: Any) -> Any:
        leaf = _tensor(x)
        leaf.stop_gradient = False
        function(leaf).sum().backward()
        return leaf.grad

    def program(tensor: Any) -> Any:
        return bound(tensor)

    tensor = _tensor(x)
    traced = paddle.jit.to_static(program, full_graph=True)
    yield "Paddle", bound(tensor), gradient(bound), lambda: bound(tensor)
    yield "paddle.jit.to_static", traced(tensor), gradient(traced), lambda: traced(tensor)
