"""Compare gradients with finite differences: first and second order, forward mode, other layouts."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..core.errors import GradientError
from . import difference, frameworks
from .case import BrokenRuleError, Case, Check, NotRunError, one_line
from .compare import near
from .difference import Precision, inner, wide
from .frameworks import numpy as numpy_arrays
from .memory_layouts import expanded, repeated, torch_every_second, torch_transposed, transposed

Pull = Callable[[Case, "list[Any]"], "dict[str, Any]"]
TRIES = 2  # near a kink of the function a right gradient can fail for one direction; one success is enough


def _needs_rule(case: Case) -> None:
    case.need_gradient()
    if not any(difference.is_floating(value) for _, value in case.tensors()):
        raise NotRunError("no input of floating dtype")


def _floating(case: Case) -> Iterator[tuple[str, Any]]:
    return ((name, value) for name, value in case.tensors() if difference.is_floating(value))


def _weighted(cotangents: list[Any]) -> Callable[[Case], float]:
    """Return the function from a case to the weighted sum of the operator's outputs."""

    def total(case: Case) -> float:
        pairs = zip(cotangents, case.on_cpu(), strict=True)
        return sum(inner(v, output) for v, output in pairs if difference.is_floating(output))

    return total


def _quotient(case: Case, name: str, function: Callable[[Case], float], along: Any, step: float) -> float:
    """Return the difference quotient of a function of the case when one tensor moves."""

    def moved(value: Any) -> float:
        return function(case.mapped(lambda n, old: value if n == name else old))

    return difference.quotient(moved, dict(case.tensors())[name], along, step)


def _first_order(case: Case, host: str) -> str | None:
    pull: Pull = frameworks.load(host).gradients
    _needs_rule(case)
    case, precision = difference.precise(case)
    problems: list[BrokenRuleError] = []
    for attempt in range(TRIES):
        try:
            missing = _compare(case, pull, precision, f"{host} {attempt}")
        except BrokenRuleError as problem:
            problems.append(problem)
            continue
        remark = f"in {precision.dtype}"
        return f"{remark}; no gradient for {', '.join(missing)}" if missing else remark
    raise problems[0]


def _compare(case: Case, pull: Pull, precision: Precision, purpose: str) -> list[str]:
    """Compare each gradient with a quotient along a random direction; return the inputs without one."""
    cotangents = difference.random_cotangents(case.on_cpu(), case.rng(purpose))
    gradients = pull(case, cotangents)
    rng = case.rng(f"direction {purpose}")
    missing = []
    for name, value in _floating(case):
        along = difference.direction(value, rng)
        grad = gradients[name]
        if grad is None:
            missing.append(name)
            continue
        if grad.shape != value.shape:
            raise BrokenRuleError(
                f"gradient of {name}: must have the input's shape {value.shape}", grad.shape
            )
        along = difference.turned(along, grad)
        expected = _quotient(case, name, _weighted(cotangents), along, precision.step)
        scale = float(np.sum(np.abs(wide(grad)) * np.abs(along))) if grad.size else 0.0
        difference.agree(f"{name}: its gradient", inner(grad, along), expected, scale * 0.1, precision)
    return missing


def first_order(host: str) -> Callable[[Case], str | None]:
    """Return the check that compares a framework's gradients with finite differences."""
    return functools.partial(_first_order, host=host)


def second_order(case: Case) -> str | None:
    """Compare the gradient of the gradient with finite differences of the gradient."""
    _needs_rule(case)
    case, precision = difference.precise(case)
    from .frameworks import torch_gradient

    cotangents = difference.random_cotangents(case.run(), case.rng("second order"))
    rng = case.rng("second order weights")
    weights = {name: difference.direction(value, rng) for name, value in _floating(case)}
    second = torch_gradient.second_order(case, cotangents, weights)

    def weighted(variant: Case) -> float:
        gradients = torch_gradient.gradients(variant, cotangents)
        return sum(inner(weights[n], g) for n, g in gradients.items() if n in weights and g is not None)

    for name, value in _floating(case):
        along = difference.direction(value, rng)
        expected = _quotient(case, name, weighted, along, precision.step)
        grad = second.get(name)
        derivative = 0.0 if grad is None else inner(grad, along)
        scale = 0.0 if grad is None else float(np.sum(np.abs(grad) * np.abs(along)))
        difference.agree(f"{name}: its second derivative", derivative, expected, scale * 0.1, precision)
    return f"in {precision.dtype}"


def layouts_numpy(case: Case) -> None:
    """Compare gradients for strided inputs and output gradients with those for dense ones."""
    _needs_rule(case)
    cotangents = difference.random_cotangents(case.run(), case.rng("layouts"))
    dense = numpy_arrays.gradients(case, cotangents)
    laid_out = case.mapped(lambda _, value: transposed(value) if value.ndim else value)
    args, keywords = case.operator.schema.split(laid_out.arguments)
    _, pull = case.bound.vjp(*args, **keywords)
    single = len(cotangents) == 1 and not case.operator.returns_tuple
    strided = [transposed(v) if v.ndim else v for v in cotangents]
    _same(
        case,
        numpy_arrays.named(case, pull(strided[0] if single else tuple(strided))),
        dense,
        "transposed arrays",
    )
    constant = [repeated(v) if v.ndim else v for v in cotangents]
    broadcast = [expanded(v) if v.ndim else v for v in cotangents]
    stride_0 = numpy_arrays.named(case, pull(broadcast[0] if single else tuple(broadcast)))
    _same(case, stride_0, numpy_arrays.gradients(case, constant), "output gradients with stride 0")


def layouts_torch(case: Case) -> None:
    """Do the same in PyTorch, and also for ``out.sum().backward()``, whose output gradient has stride 0."""
    _needs_rule(case)
    from .frameworks import torch_gradient

    cotangents = difference.random_cotangents(case.run(), case.rng("layouts"))
    dense = torch_gradient.gradients(case, cotangents)
    for label, layout in (("every second element", torch_every_second), ("transposed", torch_transposed)):
        gradients = torch_gradient.gradients(case, cotangents, layout)
        _same(case, gradients, dense, f"tensors laid out as: {label}")
    ones = [np.ones_like(v) for v in cotangents]
    _same(
        case,
        torch_gradient.of_sum(case),
        torch_gradient.gradients(case, ones),
        "out.sum().backward() (stride 0)",
    )


def _same(case: Case, gradients: dict[str, Any], expected: dict[str, Any], what: str) -> None:
    for name, grad in expected.items():
        other = gradients[name]
        if (grad is None) != (other is None):
            raise BrokenRuleError(f"gradient of {name}: must exist for every layout", f"none for {what}")
        if grad is None:
            continue
        try:
            near(
                what,
                0,
                other,
                grad,
                tolerance=case.tolerance(grad.dtype),
                other="dense data of the same values",
            )
        except BrokenRuleError as problem:
            raise BrokenRuleError(str(problem).replace("output 0", f"gradient of {name}", 1)) from None


def forward_mode(host: str) -> Callable[[Case], str | None]:
    """Return the check that compares a framework's forward mode with finite differences."""
    return functools.partial(_forward_mode, host=host)


def _forward_mode(case: Case, host: str) -> str | None:
    if case.operator.jvp is None and not case.has_gradient:
        raise NotRunError("no jvp rule and no gradient rule")
    case.need_derivative()
    case, precision = difference.precise(case)
    push = frameworks.load(host).forward
    cotangents = difference.random_cotangents(case.run(), case.rng("forward mode"))
    rng = case.rng("forward mode direction")
    for name, value in _floating(case):
        along = difference.direction(value, rng)
        try:
            tangents = push(case, name, along)
        except GradientError as problem:
            raise NotRunError(one_line(problem)) from None
        derivative = sum(inner(v, t) for v, t in zip(cotangents, tangents, strict=True))
        expected = _quotient(case, name, _weighted(cotangents), along, precision.step)
        difference.agree(f"{name}: forward mode", derivative, expected, abs(derivative), precision)
    return f"in {precision.dtype}"


CHECKS = (
    *(Check("gradient", host, first_order(host)) for host in frameworks.FRAMEWORKS),
    Check("second order", "torch", second_order),
    *(Check("forward mode", host, forward_mode(host)) for host in ("torch", "jax")),
    Check("gradient, layouts", "numpy", layouts_numpy),
    Check("gradient, layouts", "torch", layouts_torch),
)
