"""Operators in the programs that Paddle traces: ``paddle.jit.to_static`` and static graphs.

A call becomes a Python operator of Paddle (``paddle.static.register_op`` makes such). It runs the call on
tensors when the program runs. Its text names the operator of polyop (call/foreign.py). Its gradient is a
second one, inside ``static_pylayer`` of Paddle.
"""

from __future__ import annotations

import functools
import hashlib
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import paddle
from paddle.jit.dy2static.py_layer import StaticPyLayerContext

from ...call import tracing
from ...call.bound import BoundOperator
from ...call.foreign import call_text, flatten, parse_call_text, unflatten
from ...call.host import map_tensors, specs
from ...call.prepare import normalise, prepare
from ...core.errors import HostError, InferError, UnsupportedError
from ...core.spec import Spec
from ...core.untraced import pause_with
from . import gradient, tensors

_SIZES = (5040, 7560, 6, 1)
"""What stands for an unknown size: an output's size that is the same for all of them is that number."""


def start() -> None:
    """Have ``to_static`` call operators as they are; by itself it rewrites or interprets every function.

    With ``full_graph=True`` it rewrites functions, and an operator puts itself into the program. Without, it
    interprets their bytecode, and an operator runs eagerly between two compiled parts.
    """
    tracing.marks.append(_mark)
    kinds: list[type[BoundOperator]] = [BoundOperator]
    for kind in kinds:
        _mark(kind)
        kinds += kind.__subclasses__()
    folder = str(pathlib.Path(__file__).parents[2])
    paddle.framework.core.eval_frame_skip_file_prefix((folder,))
    pause_with(_stop)


def _mark(kind: type[BoundOperator]) -> None:
    """Have ``to_static`` leave the methods of a class of operators as they are."""
    if "__call__" in vars(kind):
        paddle.jit.marker.unified(vars(kind)["__call__"], for_sot=False)
    if "_slow" in vars(kind):
        paddle.jit.marker.force_dynamic(vars(kind)["_slow"])


def _stop() -> Callable[[], object]:
    """Stop Paddle's interpreter in this thread; return the function that lets it go on."""
    callback = paddle.framework.core.set_eval_frame(None)
    return functools.partial(paddle.framework.core.set_eval_frame, callback)


def call(bound: Any, arguments: tuple[Any, ...], run: gradient.Run) -> tuple[Any, ...]:
    """Put a call into the program that is being traced; return the values of its outputs.

    Raises ``UnsupportedError`` for an operator that writes an argument, ``HostError`` for a tensor with data,
    ``ArgumentTypeError`` for an output of a dtype that Paddle lacks, and what ``prepare`` raises for these
    specs.
    """
    if bound.schema.mutates:
        rule = "writes an argument in place, which a program that Paddle traces cannot express"
        hint = "call it outside of to_static and static graphs, or return a new tensor"
        raise UnsupportedError(bound.name, rule, where=bound.operator.origin, hint=hint)
    inputs = list(flatten(bound.schema, arguments))
    for tensor in inputs:
        if not tensors.is_traced(tensor):
            rule = "a program that Paddle traces takes no tensor that has data already"
            hint = "pass the tensor to the traced function, or make it a parameter of the layer"
            raise HostError(bound.name, rule, where=bound.operator.origin, hint=hint)
    outputs = _infer(bound, arguments)
    for spec in outputs:  # Paddle ends the process for an error in the program
        tensors.held(spec.dtype, bound.name)
    text = call_text(bound, arguments)
    forward = functools.partial(_run, text, run)
    if not outputs or not any(map(tensors.needs_gradient, inputs)):
        return tuple(_python_op(f"{text} forward", forward, inputs, outputs))
    return _with_gradient(text, run, inputs, outputs)


def _with_gradient(text: str, run: gradient.Run, inputs: list[Any], outputs: list[Spec]) -> tuple[Any, ...]:
    context = StaticPyLayerContext()

    def forward(*values: Any) -> Any:
        results = _python_op(f"{text} forward", functools.partial(_run, text, run), values, outputs)
        context.save_for_backward(*values, *results)
        return tuple(results)

    def backward(*grads: Any) -> Any:
        saved = context.saved_tensor()
        kept = saved[len(inputs) :]
        given = [paddle.zeros_like(x) if g is None else g for g, x in zip(grads, kept, strict=True)]
        pull = functools.partial(_pull, text, run, len(inputs), len(kept))
        return tuple(_python_op(f"{text} backward", pull, [*saved, *given], list(map(tensors.spec, inputs))))

    returned = paddle.static.nn.static_pylayer(forward, inputs, backward)
    results = tuple(returned) if isinstance(returned, (tuple, list)) else (returned,)
    for result, spec in zip(results, outputs, strict=True):
        if not spec.dtype.is_floating:
            result.stop_gradient = True
    return results


def _infer(bound: Any, arguments: tuple[Any, ...]) -> list[Spec]:
    """Return the specs of the outputs, with -1 for a size that is not known yet."""
    inputs = specs(tensors, bound.operator, arguments)
    if all(size >= 0 for x in flatten(bound.schema, inputs) for size in x.shape):
        return list(prepare(bound.operator, inputs, infer=True).outputs)
    found: list[Sequence[Spec]] = []
    problem: InferError | None = None
    for size in _SIZES:
        known = map_tensors(bound.operator, inputs, functools.partial(_with_size, size))
        try:
            found.append(prepare(bound.operator, known, infer=True).outputs)
        except InferError as error:
            problem = problem or error
    if not found and problem is not None:
        raise problem
    return [_common(column) for column in zip(*found, strict=True)]


def _with_size(size: int, name: str, spec: Spec, argument: Any) -> Spec:
    del name, argument
    return Spec(tuple(size if s < 0 else s for s in spec.shape), spec.dtype)


def _common(column: Sequence[Spec]) -> Spec:
    sizes = zip(*(spec.shape for spec in column), strict=True)
    return Spec(tuple(s[0] if len(set(s)) == 1 else -1 for s in sizes), column[0].dtype)


def _python_op(
    key: str, function: Callable[..., Any], values: Sequence[Any], outputs: Sequence[Spec]
) -> list[Any]:
    """Add a Python operator to the program; ``key`` says what it computes, as its name must."""
    shapes = "".join(map(str, outputs))
    digest = hashlib.sha256(f"{key} {shapes}".encode()).hexdigest()[:24]

    def run(*args: Any) -> Any:
        with paddle.base.dygraph.base.guard(), paddle.no_grad():
            return function(*args)

    def infer_meta(*_: Any) -> Any:
        metas = tuple(paddle.static.MetaTensor(shape=list(x.shape), dtype=_dtype(x)) for x in outputs)
        return metas[0] if len(metas) == 1 else metas

    results: list[Any] = paddle._C_ops._run_python_op(  # noqa: SLF001 - register_op allows no lists of tensors
        *values,
        name=f"polyop_{digest}",
        input_names=[f"input{i}" for i in range(len(values))],
        output_names=[f"output{i}" for i in range(len(outputs))],
        attrs={"infer_meta_fn_ptr": infer_meta, "fn_ptr": run},
        inplace_map={},
    )
    return results


def _dtype(spec: Spec) -> Any:
    return getattr(paddle, spec.dtype.name)


def _arguments(text: str, inputs: Sequence[Any]) -> tuple[Any, tuple[Any, ...]]:
    bound, values = parse_call_text(text)
    return bound, normalise(bound.operator, unflatten(bound.schema, values, inputs))


def _run(text: str, run: gradient.Run, *inputs: Any) -> Any:
    bound, arguments = _arguments(text, inputs)
    outputs = run(bound, arguments)
    return outputs[0] if len(outputs) == 1 else outputs


def _pull(text: str, run: gradient.Run, inputs: int, outputs: int, *values: Any) -> Any:
    bound, arguments = _arguments(text, values[:inputs])
    kept, grads = values[inputs : inputs + outputs], values[inputs + outputs :]
    results = gradient.pull_again(bound, arguments, tuple(kept), grads, run)
    tensors = tuple(
        paddle.zeros_like(x) if grad is None else grad
        for x, grad in zip(values[:inputs], results, strict=True)
    )
    return tensors[0] if len(tensors) == 1 else tensors
