"""The gradient of a call inside a graph: the author's rule, read by the compiler or run on arrays."""

from __future__ import annotations

import types
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import numpy as np
from mindspore import ops
from mindspore.ops.primitive import constexpr

from ...core import registry
from ...core.errors import FallbackWarning, GradientError
from ...core.operator import Operator
from ...core.origin import of_function
from ...core.parse import parse
from ...core.spec import Spec
from ...gradients.rule import no_gradient
from ...kernels.tensors import TensorKernel
from ..base import load
from ..bound import BoundOperator
from .rule_text import as_function
from .written import function

_FOREIGN = {"numpy", "array_api_compat", "torch", "jax", "scipy", "math", "ml_dtypes"}
"""Modules whose functions MindSpore's compiler cannot read."""


def of(launch: Any) -> Any:
    """Return the function that MindSpore asks for the gradient of a launch.

    What has no gradient is told when one is computed: MindSpore also makes gradients that nobody wants.
    """
    operator: Operator = launch.bound.operator
    if operator.part_of and operator.gradient is None:
        again = "was run on NumPy arrays or recorded, and MindSpore cannot differentiate it again"
        return _refusing(
            launch, GradientError(operator.part_of, f"its gradient {again}", where=operator.origin)
        )
    if operator.gradient is None:
        return _refusing(launch, no_gradient(operator))
    if operator.schema.mutates:
        words = "writes an argument in place, and MindSpore's graphs have no gradient for that"
        return _refusing(launch, GradientError(operator.name, words, where=operator.origin))
    if not isinstance(operator.gradient, types.FunctionType):
        return _on_arrays(launch)  # a C++ module's, or a provider's: it is no Python text
    rule = as_function(operator.gradient)
    why = "its text is not to be found" if rule is None else _foreign(rule)
    if rule is None or why:
        text = f"{operator.name}: MindSpore's compiler cannot read the gradient rule: {why}"
        warnings.warn(f"{text}. It runs on NumPy arrays, without a second derivative", FallbackWarning, 2)
        return _on_arrays(launch)
    return _read(launch, rule)


def _names(launch: Any) -> list[str]:
    return [f"a{i}" for i in range(launch.inputs)]


def _refusing(launch: Any, problem: GradientError) -> Any:
    def refuse(*given: Any) -> NoReturn:
        del given
        raise problem

    return _through(launch, refuse)


def _foreign(rule: types.FunctionType) -> str:
    """Return what a rule reads that is not MindSpore's, polyop's or plain Python; "" for nothing."""
    cells = [cell.cell_contents for cell in rule.__closure__ or ()]
    outside = dict(zip(rule.__code__.co_freevars, cells, strict=True))
    for name in (*rule.__code__.co_names, *rule.__code__.co_freevars):
        value = outside.get(name, rule.__globals__.get(name))
        module = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None)
        if isinstance(module, str) and module.split(".", 1)[0] in _FOREIGN:
            return f"it uses {module}"
    return ""


def _read(launch: Any, rule: types.FunctionType) -> Any:
    """Return a function that calls the rule with the operator's arguments, attributes among them."""
    operator: Operator = launch.bound.operator
    names = _names(launch)
    left = iter(names)
    fixed: dict[str, Any] = {}
    shown: list[str] = []
    for number, (argument, value) in enumerate(zip(operator.schema.arguments, launch.arguments, strict=True)):
        if not argument.type.is_tensor:
            fixed[f"fixed{number}_"] = value
            shown.append(f"fixed{number}_{{n}}")
        elif isinstance(value, (list, tuple)):
            shown.append("(" + "".join(f"{'None' if item is None else next(left)}, " for item in value) + ")")
        else:
            shown.append("None" if value is None else next(left))
    ends = ("out", "dout") if operator.several else ("out[0]", "dout[0]")
    lines = [
        f"def bprop{{n}}({', '.join(names)}, out, dout):",
        f"    grads = rule{{n}}({', '.join((*shown, *ends))})",
        "    count = len(grads) if isinstance(grads, tuple) else -1",
        "    checked = check{n}(count)",
    ]
    made = []
    for number, (place, text) in enumerate(_gradients(launch)):
        lines += [
            f"    g{number} = {text}",
            f"    if not checked or g{number} is None:",
            f"        g{number} = zeros{{n}}({place})",
            f"    elif not shape{{n}}({number}, g{number}.shape, {place}.shape):",
            f"        g{number} = zeros{{n}}({place})",
        ]
        made.append(f"g{number}, ")
    lines.append(f"    return ({''.join(made)})")
    return function(
        "bprop",
        "\n".join(lines),
        rule=rule,
        check=constexpr(_checker(operator)),
        shape=constexpr(_shape_checker(operator, [name for name, _ in _gradients(launch)])),
        zeros=ops.zeros_like,
        **fixed,
    )


def _gradients(launch: Any) -> Iterator[tuple[str, str]]:
    """Yield (tensor, where its gradient is in what the rule returns)."""
    left = iter(_names(launch))
    for number, (argument, value) in enumerate(
        zip(launch.bound.schema.arguments, launch.arguments, strict=True)
    ):
        if not argument.type.is_tensor or value is None:
            continue
        if not isinstance(value, (list, tuple)):
            yield next(left), f"grads[{number}]"
            continue
        for index, item in enumerate(value):
            if item is not None:
                yield next(left), f"None if grads[{number}] is None else grads[{number}][{index}]"


def _checker(operator: Operator) -> Any:
    count = len(operator.schema.arguments)

    def check(seen: int) -> bool:
        if seen == count:
            return True
        rule = f"the gradient rule must return a tuple of {count}, one gradient or None per input"
        shown = f"{seen}" if seen >= 0 else "something else"
        raise GradientError(operator.name, rule, shown, where=of_function(operator.gradient))

    return check


def _shape_checker(operator: Operator, names: Sequence[str]) -> Any:
    def check(number: int, seen: Any, wanted: Any) -> bool:
        if tuple(seen) == tuple(wanted):
            return True
        subject = f"{operator.name}: gradient of tensor {names[number][1:]}"
        rule = f"must have the input's shape {tuple(wanted)}"
        raise GradientError(subject, rule, tuple(seen), where=of_function(operator.gradient))

    return check


def _through(launch: Any, pull: Any) -> Any:
    """Return a function that leaves the gradient to ``pull``, an operator's kernel on NumPy arrays."""
    from .graph import call_of

    names = _names(launch)
    text = (
        f"def bprop{{n}}({', '.join(names)}, out, dout):\n"
        f"    found = pull{{n}}(({''.join(f'{name}, ' for name in names)}), out, dout)\n"
        f"    return ({''.join(f'found[{i}], ' for i in range(len(names)))})"
    )
    return function("bprop", text, pull=call_of(_pull_operator(launch.bound.operator, pull)))


class _LikeInputs:
    """Gradients are like the inputs."""

    repeatable = True

    def __call__(self, arguments: Sequence[Any]) -> tuple[Spec, ...]:
        """Return the specs of the inputs."""
        return tuple(arguments[0])


def _pull_operator(operator: Operator, pull: Any) -> BoundOperator:
    name = registry.unique(operator.schema.namespace, f"{operator.schema.name}_pulled")
    text = "(Tensor[] inputs, Tensor[] outputs, Tensor[] grads) -> Tensor[]"
    made = Operator(
        schema=parse(f"{operator.schema.namespace}::{name}{text}"),
        infer=_LikeInputs(),
        kernels=(TensorKernel(pull, f"the gradient of {operator.name}"),),
        part_of=operator.part_of or operator.name,
        origin=operator.origin,
    )
    return BoundOperator(made, register=False)


def _on_arrays(launch: Any) -> Any:
    """Return a function that runs the rule, or a recorded Backward, on NumPy arrays."""
    bound = launch.bound
    positions = bound.schema.tensor_positions

    def pull(inputs: Any, outputs: Any, grads: Any) -> tuple[Any, ...]:
        del outputs
        arguments = _filled(launch.arguments, positions, inputs)
        host: Any = load("numpy")
        _, back = host.vjp(bound, arguments)
        found = back(tuple(grads))
        flat = [one for i in positions for one in _paired(arguments[i], found[i])]
        return tuple(
            np.zeros_like(x) if grad is None else np.asarray(grad, x.dtype)
            for x, grad in zip(inputs, flat, strict=True)
        )

    return _through(launch, pull)


def _filled(arguments: Sequence[Any], positions: Sequence[int], inputs: Sequence[Any]) -> tuple[Any, ...]:
    left = iter(inputs)
    return tuple(
        value
        if i not in positions or value is None
        else tuple(None if item is None else next(left) for item in value)
        if isinstance(value, (list, tuple))
        else next(left)
        for i, value in enumerate(arguments)
    )


def _paired(value: Any, grad: Any) -> list[Any]:
    """Return one gradient or None for each tensor of an argument that is there."""
    if value is None:
        return []
    if not isinstance(value, (list, tuple)):
        return [grad]
    grads = (None,) * len(value) if grad is None else grad
    return [one for item, one in zip(value, grads, strict=True) if item is not None]
