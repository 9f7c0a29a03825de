"""``polyop explain``: everything that polyop decided about an operator, as a text."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from ..core.errors import ArgumentTypeError, PolyopError
from ..core.infer import FromSpecs
from ..core.schema import MISSING
from ..core.spec import Spec
from ..kernels.base import LoopKernelBase
from .bound import BoundOperator
from .choose import choose
from .host import hosts
from .operator import Operator
from .prepare import normalise
from .ranks import described, example, ranks_of
from .rule import Rule


def explain(
    bound: BoundOperator, inputs: tuple[Spec, ...] = (), attributes: Mapping[str, Any] | None = None
) -> str:
    """Return a text: schema, kernels with the reasons of the choice, gradient, batching, hosts.

    A kernel is chosen for ``inputs`` (a spec for each tensor of the schema) and ``attributes`` (values by
    name). Without inputs, all kernels are listed. If the inputs do not fit the schema, the text says
    which are missing, and does not raise.
    """
    arguments: tuple[Any, ...] = ()
    problem = ""
    if inputs:
        try:
            arguments = arguments_of(bound, inputs, attributes or {})
        except PolyopError as error:
            problem = str(error)
    if arguments and bound.is_module:
        module: Any = bound
        module.refine_schema(arguments)  # as the first call does: it marks written arguments in the schema
    operator = bound.operator
    lines = [str(operator), f"  defined at  {operator.origin}"]
    lines += [f"  name        {bound.name_note}"] if bound.name_note else []
    lines += [f"  about       {line}" for line in operator.doc.strip().splitlines()[:1]]
    lines += [f"  kernel      none: {problem}"] if problem else _kernels(bound, arguments)
    lines += [f"  attributes  {name} = {value!r}" for name, value in operator.attributes.items()]
    first, *more = _gradient(bound, arguments)
    lines += [f"  gradient    {first}", *(f"  {text}" for text in more)]
    lines.append(f"  forward     {_forward(operator)}")
    lines += _dims(bound, arguments)
    lines.append(f"  batching    {_batching(operator)}")
    lines.append(f"  infer rule  {_infer(operator.infer)}")
    lines.append(f"  fast call   {_fast(bound)}")
    lines += [f"  {host.name:<11} {host.state(bound)}" for host in hosts()]
    return "\n".join(lines)


def arguments_of(
    bound: BoundOperator, inputs: tuple[Spec, ...], attributes: Mapping[str, Any]
) -> tuple[Any, ...]:
    """Return arguments in schema order; raises ``ArgumentTypeError`` that names a missing one."""
    schema, where = bound.schema, bound.operator.origin
    tensors = schema.tensor_arguments
    if len(inputs) > len(tensors):
        rule = f"takes {len(tensors)} tensors {schema.signature}"
        raise ArgumentTypeError(bound.name, rule, f"{len(inputs)} inputs", where=where)
    values: dict[str, Any] = {a.name: a.default for a in schema.arguments}
    if bound.records:
        attributes = bound.as_schema_arguments((), dict(attributes))[1]
    for argument, spec in zip(tensors, inputs, strict=False):
        given = tuple(spec) if isinstance(spec, (list, tuple)) else (spec,)
        values[argument.name] = given if argument.type.is_list else spec
    values.update((name, attributes[name]) for name in attributes if name in values)
    for argument in schema.arguments:
        if values[argument.name] is not MISSING:
            continue
        if argument.type.is_tensor and argument.type.is_optional:
            values[argument.name] = None
            continue
        rank = ranks_of(bound.operator).get(argument.name)
        how = (
            f"a spec for each tensor, in order, as --input '{example(rank)}'"
            if argument.type.is_tensor
            else f"its value, as --attribute {argument.name}=VALUE"
        )
        kind = "input" if argument.type.is_tensor else "attribute"
        rule = f"needs the {kind} {argument.name!r} {schema.signature}"
        raise ArgumentTypeError(bound.name, rule, where=where, hint=f"give {how}")
    return normalise(bound.operator, tuple(values.values()))


def _kernels(bound: BoundOperator, arguments: tuple[Any, ...]) -> Iterator[str]:
    operator = bound.operator
    if not arguments:
        yield from (
            f"  kernel      {kernel} (on {kernel.device}{_dtypes(kernel)})" for kernel in operator.kernels
        )
        return
    tensors, attributes = bound.schema.tensors_and_attributes(arguments)
    try:
        outputs = operator.infer(arguments)
        yield "  outputs     " + (", ".join(map(str, outputs)) or "none")
        choice = choose(operator, tensors, outputs)
    except PolyopError as problem:
        yield f"  kernel      none: {problem}"
        return
    chosen: Any = choice.kernel
    yield f"  kernel      {chosen or 'none'}{_dtypes(chosen)}"
    if isinstance(chosen, LoopKernelBase):
        yield from (f"    {line}" for line in chosen.explain(tensors, attributes))
        from ..kernels.loop.rows import describe

        yield from (f"    {line}" for line in describe(cast("Any", chosen), tensors, attributes))
    yield from (f"  refused     {refusal}" for refusal in choice.refusals)


def _dtypes(kernel: Any) -> str:
    dtypes = kernel.declared_dtypes
    if kernel.accepts is None or (not dtypes and (not kernel.native or isinstance(kernel, LoopKernelBase))):
        return ""
    return (
        f", for {', '.join(map(str, dtypes))}" if dtypes else ", no dtypes declared: every one is passed on"
    )


def _gradient(bound: BoundOperator, arguments: tuple[Any, ...]) -> Iterator[str]:
    rule: Any = bound.operator.gradient
    if isinstance(rule, Rule) and rule.is_derived:
        yield from _derived(bound, rule, arguments)
        return
    if not (isinstance(rule, Rule) and rule.is_recorded):
        source = rule.made_by if isinstance(rule, Rule) else "given"
        yield source if rule else "none: asking for one is an error"
        return
    more = "" if arguments else "; give inputs to see what it saves"
    yield f"recorded from the C++ Function that is called{more}"
    if not arguments:
        return
    try:
        recorded: Any = rule
        derived = recorded.kernel.derive(*bound.schema.tensors_and_attributes(arguments))
    except PolyopError as problem:
        yield f"traced, Forward runs again in backward, as it depends on data: {problem}"
        return
    if not derived.recorded:
        yield "none: no Function's Apply is called, so asking for one is an error"
    own_bytes = sum(one.spec.nbytes for one in derived.saved if one.kind == "own")
    saved = [f"{one.kind} {one.index}" if one.kind != "own" else str(one.spec) for one in derived.saved]
    yield f"saves {', '.join(saved) or 'nothing'}; {own_bytes} bytes beside inputs and outputs"
    launches = [step[1] for step in derived.steps if step[0] in ("launch", "kernel")]
    yield f"launches {', '.join(launches) or 'nothing'} in Forward"


def _derived(bound: BoundOperator, rule: Any, arguments: tuple[Any, ...]) -> Iterator[str]:
    yield f"derived from the loops{'' if arguments else '; give inputs to see what it needs'}"
    if not arguments:
        return
    try:
        lines = rule.adjoints(*bound.schema.tensors_and_attributes(arguments)).explain()
        yield from (f"  {line}" for line in lines)
    except PolyopError as problem:
        yield f"none: {problem}"


def _forward(operator: Any) -> str:
    if operator.jvp is not None:
        return "derived" if isinstance(operator.jvp, Rule) else "given (jvp)"
    if operator.gradient is None:
        return "none"
    return "the gradient rule, transposed; an error where that is not differentiable itself"


def _dims(bound: BoundOperator, arguments: tuple[Any, ...]) -> Iterator[str]:
    """Yield what the author says of dimensions, and what is proved of them from loops."""
    operator = bound.operator
    if operator.dims is not None:
        yield f"  dimensions  {operator.dims}"
        whole = [name for name in operator.dims.whole if name != "..."]
        if whole:
            yield f"  whole       {', '.join(whole)}: nothing is claimed of slices along them"
    elif isinstance(operator.infer, FromSpecs) and isinstance(operator.infer.rule, str):
        yield f"  dimensions  output like {operator.infer.rule}; nothing else is claimed"
    kernel = next((k for k in operator.kernels if isinstance(k, LoopKernelBase)), None)
    if kernel is None:
        return
    if not arguments:
        told = described(ranks_of(operator)) if operator.dims is None else ""
        yield from [f"  dimensions  {told}, by uses in the loops"] if told else []
        yield "  slices      derived from the loops; give inputs to see which dimensions can be cut"
        return
    yield from _slices("slices", kernel, lambda: bound.schema.tensors_and_attributes(arguments))
    gradient: Any = operator.gradient
    if isinstance(operator.gradient, Rule) and gradient.is_derived:
        yield from _slices("of gradient", gradient.kernel, lambda: gradient.whole_call(arguments))


def _slices(label: str, kernel: Any, call: Callable[[], tuple[Any, Any]]) -> Iterator[str]:
    """Yield what is proved of slices of a call, whose tensors and attributes ``call`` returns."""
    try:
        inputs, attributes = call()
        first, *more = kernel.explain_dims(inputs, attributes)
    except PolyopError as problem:
        yield f"  {label:<11} none: {problem}"
        return
    yield f"  {label:<11} {first}"
    yield from (f"                {line}" for line in more)
    with contextlib.suppress(PolyopError):
        bits = kernel.explain_bits(inputs, attributes)
        yield from [f"    bits        {bits}"] if bits else []


def _batching(operator: Operator) -> str:
    rule = operator.batch
    if rule is None:
        return "fallback: one call per sample, with a warning the first time"
    if isinstance(rule, Rule):
        return f"derived: {rule.batching}" if rule.is_derived else rule.batching
    return "given"


def _infer(rule: Any) -> str:
    if rule.repeatable:
        return "run once for each set of input specs"
    return "run at every call: it reads variables that can change"


def _fast(bound: BoundOperator) -> str:
    if bound.schema.mutates:
        return "no: an argument is written in place, which goes through the framework's dispatcher"
    if bound.operator.target not in (None, "cpu"):
        return f"no: the operator is bound to {bound.operator.target}"
    if not bound.native:
        return "no: no kernel is native"
    count = bound.prepared()
    return f"yes; {count} prepared kernel{'s' if count != 1 else ''}" if count else "yes; not called yet"
