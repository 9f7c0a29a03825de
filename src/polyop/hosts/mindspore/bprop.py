"""The gradient of a call inside a graph.

MindSpore compiles the author's rule where it can, which readable.py tries first. A rule of polyop that only
calls operators is traced and written as Python source (symbols.py). Otherwise, and for a provider's rules,
the gradient is an operator that runs on NumPy arrays.
"""

from __future__ import annotations

import os
import types
from collections.abc import Sequence
from typing import Any, NoReturn

import mindspore
import numpy as np
from mindspore import Tensor, ops
from mindspore.ops.functional import isconstant
from mindspore.ops.primitive import constexpr

from ...call import registry
from ...call.bound import BoundOperator
from ...call.flat_tensors import flat_gradients, tensor_names, with_absent, with_tensors
from ...call.host import load, map_tensors
from ...call.operator import Operator
from ...call.rule import (
    Rule,
    apply_rule,
    check_gradient,
    check_gradients,
    check_real,
    wrong_list,
    wrong_result,
)
from ...core.derived_names import derived_from
from ...core.errors import GradientError, PolyopError
from ...core.origin import of_function
from ...core.parse import parse
from ...core.spec import Spec
from ...kernels.python import TensorKernel
from ...rules.module.recorded import Call, Recorded
from .generated import calling_function, make_function
from .gradient import no_rule
from .readable import problem_of, tensor_like, warn_unread
from .rule_text import as_function, foreign
from .symbols import Recording, Symbol, record
from .unknown_sizes import may_be_equal


def bprop_of(launch: Any) -> Any:
    """Return the function that computes the gradient of a launch.

    Without a rule, the function raises only when it runs, because MindSpore requests gradients that it never
    computes.
    """
    operator: Operator = launch.bound.operator
    if operator.part_of and operator.gradient is None:
        problem = (
            "its gradient was run on NumPy arrays or recorded, and MindSpore cannot differentiate it again"
        )
        return _raising(launch, GradientError(operator.part_of, problem, where=operator.origin))
    if operator.gradient is None or operator.schema.mutates:
        return _raising(launch, no_rule(operator))
    if isinstance(operator.gradient, Rule):
        rule = operator.gradient
        traced = rule.saving_part is not None if isinstance(rule, Recorded) else rule.calls_operators
        return _recorded(launch) if traced else _on_arrays(launch)
    rule, why = _read(operator)
    if rule is None:
        warn_unread(operator, why)
        return _on_arrays(launch)
    return _tried(launch, rule)


def _read(operator: Operator) -> tuple[types.FunctionType | None, str]:
    """Return the author's rule as a function with readable source, or None and the reason."""
    assert operator.gradient is not None
    rule = as_function(operator.gradient, len(operator.schema.arguments) + 2)
    why = "its source text cannot be found" if rule is None else foreign(rule)
    return (None, why) if why else (rule, "")


def reason_of(launch: Any, shapes: Sequence[Any], dtypes: Sequence[Any]) -> str:
    """Return why MindSpore cannot compile the author's rule of a launch; "" if it can.

    ``shapes`` and ``dtypes`` are those of its tensors and of its outputs.
    """
    rule, why = _read(launch.bound.operator)
    return why if rule is None else _problem(launch, rule, shapes, dtypes)


def _problem(launch: Any, rule: types.FunctionType, shapes: Sequence[Any], dtypes: Sequence[Any]) -> str:
    tensors = [tensor_like(*row) for row in zip(shapes, dtypes, strict=True)]
    return problem_of(_trial(launch, rule), [*tensors, *tensors[launch.inputs :]])  # outputs' gradients


def _input_names(launch: Any) -> list[str]:
    return [f"a{i}" for i in range(launch.inputs)]


def _raising(launch: Any, problem: PolyopError) -> Any:
    def fail(*arrays: Any) -> NoReturn:
        del arrays
        raise problem

    return _through(launch, fail)


_UNKNOWN = "something else"  # in errors: what the compiler passes for a value that is no constant

# The texts of a compiled rule. check, listed, refuse, shape and real are Python functions, which the compiler
# calls while it compiles the graph: see _checks.
_FIT = """
def fit{n}(checked, number, grad, like):
    if not checked or grad is None:
        return zeros{n}(like)
    if not isinstance(grad, Tensor{n}):
        return refuse{n}(number, grad, like.shape)
    if not shape{n}(number, grad.shape, like.shape):
        return zeros{n}(like)
    if not real{n}(number, grad.dtype, like.dtype):
        return zeros{n}(like)
    return cast{n}(grad, like.dtype)
"""

_RULE = """
def bprop{n}({names}, out, dout):
    grads = rule{n}({arguments})
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


def _tried(launch: Any, rule: types.FunctionType) -> Any:
    """Return a function that calls the rule if MindSpore can compile it, else the rule on NumPy arrays.

    That is tried for each combination of dtypes and numbers of dimensions.
    """
    operator: Operator = launch.bound.operator
    names = _input_names(launch)
    values = [*names, *(f"out[{k}]" for k in range(launch.output_count))]
    shapes, dtypes = ("".join(f"{value}.{what}, " for value in values) for what in ("shape", "dtype"))
    text = (
        f"def bprop{{n}}({', '.join(names)}, out, dout):\n"
        f"    return choose{{n}}(({shapes}), ({dtypes}))({', '.join(names)}, out, dout)"
    )
    made: dict[bool, Any] = {}  # by whether it runs on arrays
    problems: dict[str, str] = {}

    def choose(shapes: Any, dtypes: Any) -> Any:
        ranks = [len(shape) if isinstance(shape, (tuple, list)) else None for shape in shapes]
        key = f"{ranks} {dtypes}"
        if key not in problems:
            problems[key] = _problem(launch, rule, shapes, dtypes)
        on_arrays = bool(problems[key])
        if on_arrays:
            warn_unread(operator, problems[key])
        if on_arrays not in made:
            made[on_arrays] = _on_arrays(launch) if on_arrays else _compiled(launch, rule)
        return made[on_arrays]

    return make_function("bprop", text, choose=constexpr(choose))


def _trial(launch: Any, rule: types.FunctionType) -> Any:
    """Return the function of inputs, outputs and output gradients that only calls the rule."""
    names, count = _input_names(launch), launch.output_count
    outs, douts = ([f"{what}{k}" for k in range(count)] for what in ("out", "dout"))
    passed, fixed = _rule_arguments(launch, outs, douts)
    text = f"def trial{{n}}({', '.join((*names, *outs, *douts))}):\n    return rule{{n}}({', '.join(passed)})"
    return make_function("trial", text, rule=rule, **fixed)


def _rule_arguments(
    launch: Any, outs: Sequence[str], douts: Sequence[str]
) -> tuple[list[str], dict[str, Any]]:
    """Return the arguments of an author's rule as text, and the values that the text names."""
    operator: Operator = launch.bound.operator
    schema = operator.schema
    fixed: dict[str, Any] = {}
    passed: list[str] = []
    rows = zip(
        schema.arguments,
        launch.arguments,
        with_tensors(schema, launch.arguments, _input_names(launch)),
        strict=True,
    )
    for i, (argument, value, name) in enumerate(rows):
        if not argument.type.is_tensor:
            fixed[f"fixed{i}_"] = value
            passed.append(f"fixed{i}_{{n}}")
        else:
            passed.append(_tuple(name) if isinstance(name, tuple) else str(name))
    return passed + ([_tuple(outs), _tuple(douts)] if operator.several else [outs[0], douts[0]]), fixed


def _tuple(texts: Sequence[Any]) -> str:
    return f"({''.join(f'{text}, ' for text in texts)})"


def _compiled(launch: Any, rule: types.FunctionType) -> Any:
    """Return a function that calls the rule with the operator's arguments, for MindSpore to compile.

    The attributes are constants of the function. It checks and casts each gradient.
    """
    schema = launch.bound.operator.schema
    tensors = _input_names(launch)
    fits: list[str] = []
    lists: list[str] = []
    for i, name in enumerate(with_tensors(schema, launch.arguments, tensors)):
        if not schema.arguments[i].type.is_tensor:
            continue
        if isinstance(name, tuple):
            lists.append(_LIST.replace("{i}", str(i)).replace("{absent}", "None, " * len(name)))
            items = [(f"row{i}[{k}] if checked{i} else None", item) for k, item in enumerate(name) if item]
            fits += [
                f"fit{{n}}(checked, {len(fits) + k}, {g}, {item}), " for k, (g, item) in enumerate(items)
            ]
        elif name is not None:
            fits.append(f"fit{{n}}(checked, {len(fits)}, grads[{i}], {name}), ")
    numbers = range(launch.output_count)
    douts = [f"dout[{k}]" for k in numbers]
    if _is_kept():
        # the call names the rule by a digest: it stays in the graph also where no gradient needs its value
        douts = [f"depend{{n}}({dout}, out)" for dout in douts]
    passed, fixed = _rule_arguments(launch, [f"out[{k}]" for k in numbers], douts)
    head = _RULE.replace("{names}", ", ".join(tensors)).replace("{arguments}", ", ".join(passed))
    text = f"{_FIT}{head}{''.join(lists)}\n    return ({''.join(fits)})"
    checks = {name: constexpr(check) for name, check in _checks(launch).items()}
    return make_function(
        "bprop",
        text,
        rule=rule,
        zeros=ops.zeros_like,
        cast=ops.cast,
        depend=ops.depend,
        Tensor=Tensor,
        **checks,
        **fixed,
    )


def _is_kept() -> bool:
    """Whether MindSpore keeps the graph on disk, for later processes."""
    setting = mindspore.get_context("enable_compile_cache")
    return (os.getenv("MS_COMPILER_CACHE_ENABLE") == "1") if setting is None else setting in (True, "1")


def _checks(launch: Any) -> dict[str, Any]:
    """Return the checks of a rule's result, run while a graph is compiled; they raise PyNative's errors."""
    operator: Operator = launch.bound.operator
    arguments = operator.schema.arguments
    names = tensor_names(operator.schema, launch.arguments)

    def constant(value: Any) -> Any:
        if not isinstance(value, (int, tuple, list)):
            rule = "MindSpore's compiler cannot tell what the gradient rule returns"
            raise GradientError(operator.name, rule, where=of_function(operator.gradient))
        return value if value != -1 else _UNKNOWN

    def check(count: Any) -> bool:
        if constant(count) != len(arguments):
            raise wrong_result(operator, len(arguments), constant(count))
        return True

    def listed(number: int, count: Any) -> bool:
        expected = len(launch.arguments[number])
        if constant(count) != expected:
            raise wrong_list(operator, arguments[number].name, expected, constant(count))
        return True

    def refuse(number: int, grad: Any, shape: Any) -> None:
        shown = type(_UNKNOWN, (), {})() if grad is None else grad
        check_gradient(operator, names[number], shown, shape, Tensor)

    def shape(number: int, grad_shape: Any, expected: Any) -> bool:
        if launch.dtypes is not None and may_be_equal(grad_shape, expected):
            return True  # what is unknown now is known when the graph runs
        grad = types.SimpleNamespace(shape=tuple(constant(grad_shape)))
        check_gradient(operator, names[number], grad, expected)
        return True

    return {
        "check": check,
        "listed": listed,
        "refuse": refuse,
        "shape": shape,
        "real": _real(operator, names),
    }


def _real(operator: Operator, names: Sequence[str]) -> Any:
    """Return the check that no gradient of a real tensor is complex, by the dtypes."""

    def real(number: int, grad_dtype: Any, dtype: Any) -> bool:
        grad, value = types.SimpleNamespace(dtype=grad_dtype), types.SimpleNamespace(dtype=dtype)
        check_real(operator, names[number], grad, value)
        return True

    return real


def _recorded(launch: Any) -> Any:
    """Return a function that runs the operators which the rule calls, for the shapes of each graph."""
    names = _input_names(launch)
    tensors = ", ".join(names)
    shapes = "".join(f"{name}.shape, " for name in names)
    dtypes = "".join(f"{name}.dtype, " for name in names)
    constants = "".join(f"isconstant{{n}}({name}), " for name in names)
    text = (
        f"def bprop{{n}}({tensors}, out, dout):\n"
        f"    return choose{{n}}(({shapes}), ({dtypes}), ({constants}))({tensors}, out, dout)"
    )

    def choose(shapes: Sequence[Sequence[int]], dtypes: Sequence[Any], constants: Sequence[bool]) -> Any:
        specs = [launch.spec_of(i, *row) for i, row in enumerate(zip(shapes, dtypes, strict=True))]
        try:
            return _record_rule(launch, specs, constants)
        except PolyopError as problem:  # MindSpore also compiles gradients that it never computes
            return _raising(launch, problem)

    return make_function("bprop", text, choose=constexpr(choose), isconstant=isconstant)


def _record_rule(launch: Any, specs: Sequence[Spec], constants: Sequence[bool]) -> Any:
    """Return the function (inputs, outputs, output gradients) -> input gradients, as a compiled text."""
    operator: Operator = launch.bound.operator
    names = _input_names(launch)
    output_specs = list(enumerate(launch.output_specs(specs)))
    with record(type(launch).of) as recording:
        inputs = [Symbol(recording, *row) for row in zip(names, specs, constants, strict=True)]
        outputs = [Symbol(recording, f"out[{k}]", spec) for k, spec in output_specs]
        output_grads = [Symbol(recording, f"dout[{k}]", spec) for k, spec in output_specs]
        arguments = with_tensors(operator.schema, launch.arguments, inputs)
        grads = _gradients(recording, operator, arguments, outputs, output_grads)
        flat = flat_gradients(operator.schema, arguments, grads)
    fits = [
        f"zeros{{n}}({name}), " if grad is None else f"{recording.text(grad)}, "
        for name, grad in zip(names, flat, strict=True)
    ]
    return recording.function([*names, "out", "dout"], f"({''.join(fits)})", zeros=ops.zeros_like)


def _gradients(
    recording: Recording, operator: Operator, arguments: Any, outputs: Sequence[Any], grads: Sequence[Any]
) -> Sequence[Any]:
    """Return one gradient or None per argument.

    Those of a module's function are computed from what Forward saves: inputs, outputs, and what only the
    operator ``<name>__saving`` returns.
    """
    rule = operator.gradient
    if not isinstance(rule, Recorded):
        return apply_rule(operator, arguments, outputs, grads)
    specs = map_tensors(operator, arguments, lambda name, symbol, argument: symbol.spec)
    tensors = with_absent(operator.schema, specs)
    needs_gradient = tuple(spec is not None and spec.dtype.is_floating for spec in tensors)
    derived = Call.of(operator.schema, specs, needs_gradient).derive(rule.kernel)
    saving, inputs = rule.saving_part, (*arguments, needs_gradient)
    if derived is not None and derived.own:
        outputs = recording.call(saving, inputs)
    grads = (*grads, *(None,) * (len(outputs) - len(grads)))
    return apply_rule(saving.operator, inputs, outputs, grads)[:-1]


def _through(launch: Any, pull: Any) -> Any:
    """Return a function that computes the gradient by an operator, whose kernel is ``pull``."""
    names = _input_names(launch)
    text = (
        f"def bprop{{n}}({', '.join(names)}, out, dout):\n"
        f"    grads = pull{{n}}(({''.join(f'{name}, ' for name in names)}), out, dout)\n"
        f"    return ({''.join(f'grads[{i}], ' for i in range(len(names)))})"
    )
    return make_function("bprop", text, pull=calling_function(_pull_operator(launch.bound.operator, pull)))


class _LikeInputs:
    """The infer rule of a gradient: like the inputs."""

    repeatable = True

    def __call__(self, arguments: Sequence[Any]) -> tuple[Spec, ...]:
        """Return the specs of the inputs."""
        return tuple(arguments[0])


def _pull_operator(operator: Operator, pull: Any) -> BoundOperator:
    name = registry.unique(operator.schema.namespace, f"{operator.schema.name}_pulled")
    text = "(Tensor[] inputs, Tensor[] outputs, Tensor[] grads) -> Tensor[]"
    pull_operator = Operator(
        schema=derived_from(operator.schema, "backward", parse(f"{operator.schema.namespace}::{name}{text}")),
        infer=_LikeInputs(),
        kernels=(TensorKernel(pull, f"the gradient of {operator.name}"),),
        part_of=operator.part_of or operator.name,
        origin=operator.origin,
    )
    return BoundOperator(pull_operator, register=False)


def _on_arrays(launch: Any) -> Any:
    """Return a function that runs the rule on NumPy arrays; for a recorded Backward, the forward too."""
    bound = launch.bound
    operator: Operator = bound.operator

    def pull(inputs: Any, outputs: Any, grads: Any) -> tuple[Any, ...]:
        arguments = with_tensors(bound.schema, launch.arguments, inputs)
        if isinstance(operator.gradient, Rule) and operator.gradient.is_recorded:
            host = load("numpy")
            assert host is not None
            found = host.vjp(bound, arguments)[1](tuple(grads))
        else:  # with the graph's own outputs: those of a random operator would be others
            found = apply_rule(operator, arguments, tuple(outputs), tuple(grads))
            check_gradients(operator, arguments, found)
        return tuple(
            np.zeros_like(x) if grad is None else np.asarray(grad, x.dtype)
            for x, grad in zip(inputs, flat_gradients(bound.schema, arguments, found), strict=True)
        )

    return _through(launch, pull)
