"""The gradient of a call inside a graph: the author's rule, read by the compiler or run on arrays."""

from __future__ import annotations

import types
import warnings
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
from mindspore import Tensor, ops
from mindspore.ops.primitive import constexpr

from ...call import registry
from ...call.bound import BoundOperator
from ...call.host import load
from ...call.operator import Operator
from ...call.rule import Rule, check_gradient, wrong_list, wrong_result
from ...core.errors import FallbackWarning, GradientError
from ...core.origin import of_function
from ...core.parse import parse
from ...core.spec import Spec
from ...kernels.tensors import TensorKernel
from .gradient import no_rule
from .places import filled, names, paired
from .rule_text import as_function, foreign
from .written import call_of, function


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
    if operator.gradient is None or operator.schema.mutates:
        return _refusing(launch, no_rule(operator))
    if isinstance(operator.gradient, Rule):
        return _on_arrays(launch)  # a C++ module's, or a provider's: it is no Python text
    rule = as_function(operator.gradient, len(operator.schema.arguments) + 2)
    why = "its text is not to be found" if rule is None else foreign(rule)
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


_UNKNOWN = "something else"  # the compiler says no more of what is no constant

_FIT = """
def fit{n}(checked, number, grad, like):
    if not checked or grad is None:
        return zeros{n}(like)
    if not isinstance(grad, Tensor{n}):
        return refuse{n}(number, grad, like.shape)
    if not shape{n}(number, grad.shape, like.shape):
        return zeros{n}(like)
    return cast{n}(grad, like.dtype)
"""

_RULE = """
def bprop{n}({names}, out, dout):
    grads = rule{n}({given})
    count = len(grads) if isinstance(grads, tuple) else -1
    checked = check{n}(count)
"""

_LIST = """
    row{i} = grads[{i}]
    if row{i} is None:
        row{i} = ({absent})
    length{i} = len(row{i}) if isinstance(row{i}, (tuple, list)) else -1
    checked{i} = checked and listed{n}({i}, length{i})
"""


def _read(launch: Any, rule: types.FunctionType) -> Any:
    """Return a function that calls the rule with the operator's arguments, attributes among them."""
    operator: Operator = launch.bound.operator
    schema = operator.schema
    tensors = _names(launch)
    fixed: dict[str, Any] = {}
    shown: list[str] = []
    fits: list[str] = []
    lists: list[str] = []
    rows = zip(schema.arguments, launch.arguments, filled(schema, launch.arguments, tensors), strict=True)
    for i, (argument, value, name) in enumerate(rows):
        if not argument.type.is_tensor:
            fixed[f"fixed{i}_"] = value
            shown.append(f"fixed{i}_{{n}}")
        elif isinstance(name, tuple):
            shown.append("(" + "".join(f"{one}, " for one in name) + ")")
            lists.append(_LIST.replace("{i}", str(i)).replace("{absent}", "None, " * len(name)))
            places = [(f"row{i}[{k}] if checked{i} else None", one) for k, one in enumerate(name) if one]
            fits += [f"fit{{n}}(checked, {len(fits) + k}, {g}, {one}), " for k, (g, one) in enumerate(places)]
        else:
            shown.append(str(name))
            if name is not None:
                fits.append(f"fit{{n}}(checked, {len(fits)}, grads[{i}], {name}), ")
    given = ", ".join((*shown, *(("out", "dout") if operator.several else ("out[0]", "dout[0]"))))
    head = _RULE.replace("{names}", ", ".join(tensors)).replace("{given}", given)
    text = f"{_FIT}{head}{''.join(lists)}\n    return ({''.join(fits)})"
    checks = {name: constexpr(check) for name, check in _checks(launch).items()}
    return function(
        "bprop", text, rule=rule, zeros=ops.zeros_like, cast=ops.cast, Tensor=Tensor, **checks, **fixed
    )


def _checks(launch: Any) -> dict[str, Any]:
    """Return what is asked while a graph is compiled; each answers True, or raises as PyNative does."""
    operator: Operator = launch.bound.operator
    arguments = operator.schema.arguments
    tensors = names(operator.schema, launch.arguments)

    def known(seen: Any) -> Any:
        if not isinstance(seen, (int, tuple, list)):
            rule = "MindSpore's compiler cannot tell what the gradient rule returns"
            raise GradientError(operator.name, rule, where=of_function(operator.gradient))
        return seen if seen != -1 else _UNKNOWN

    def check(seen: Any) -> bool:
        if known(seen) != len(arguments):
            raise wrong_result(operator, len(arguments), known(seen))
        return True

    def listed(number: int, seen: Any) -> bool:
        count = len(launch.arguments[number])
        if known(seen) != count:
            raise wrong_list(operator, arguments[number].name, count, known(seen))
        return True

    def refuse(number: int, grad: Any, shape: Any) -> None:
        shown = type(_UNKNOWN, (), {})() if grad is None else grad
        check_gradient(operator, tensors[number], shown, shape, Tensor)

    def shape(number: int, seen: Any, wanted: Any) -> bool:
        seen = types.SimpleNamespace(shape=tuple(known(seen)))
        check_gradient(operator, tensors[number], seen, wanted)
        return True

    return {"check": check, "listed": listed, "refuse": refuse, "shape": shape}


def _through(launch: Any, pull: Any) -> Any:
    """Return a function that leaves the gradient to ``pull``, an operator's kernel on NumPy arrays."""
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

    def pull(inputs: Any, outputs: Any, grads: Any) -> tuple[Any, ...]:
        del outputs
        arguments = filled(bound.schema, launch.arguments, inputs)
        host = load("numpy")
        assert host is not None
        _, back = host.vjp(bound, arguments)
        found = back(tuple(grads))
        flat = paired(bound.schema, arguments, found)
        return tuple(
            np.zeros_like(x) if grad is None else np.asarray(grad, x.dtype)
            for x, grad in zip(inputs, flat, strict=True)
        )

    return _through(launch, pull)
