"""An operator as ``torch.ops.<namespace>.<name>``: schema, kernels, fake kernel, dispatch keys, flop counter.

One composition serves every transform (reverse, forward and nested modes, vmap, compile,
export): an ``autograd.Function`` with ``setup_context``, ``backward``, ``jvp`` and ``vmap``,
called from the Autograd key through the C-level ``apply``, and from functorch's front key
through ``apply`` itself.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Sequence
from typing import Any, cast

import torch
import torch.autograd.forward_ad
import torch.fx

from ...call.bound import BoundOperator
from ...call.host import map_tensors, spec_of, specs
from ...call.operator import Operator
from ...call.padded import refuse_data_sizes
from ...call.prepare import normalise
from ...call.rule import Rule
from ...core import locks
from ...core.arguments import bind
from ...core.errors import ArgumentTypeError, GradientError, PolyopError, SchemaError
from ...core.schema import Schema
from ...core.sizes import DataSize
from ...core.spec import Spec
from ...core.untraced import untraced
from ...kernels.base import KernelBase, LoopKernelBase, flatten
from . import autograd_function, batch, module_gradient, nested, tensors
from .compiling import definitions
from .distributed.offer import offer
from .leaving import CALLERS, BusyError, Registration, destroy, is_free, leave, overload_until_left
from .run import run

_TRACED = " while it is traced"
_FRONT = "FuncTorchDynamicLayerFrontMode"


class RefusedError(SchemaError):
    """PyTorch does not take the schema; ``reason`` has its words."""

    def __init__(self, schema: str, problem: Exception, where: object) -> None:
        """Take the first line of PyTorch's text that has words; the rest shows the schema again."""
        lines = [line.strip(" :") for line in str(problem).splitlines() if line.strip()]
        self.reason = lines[0] if lines else type(problem).__name__
        super().__init__(schema, f"PyTorch does not take this schema: {self.reason}", where=where)


def register(bound: BoundOperator) -> Any:
    """Return the operator's overload, registering it with PyTorch on first use."""
    overload = bound.__dict__.get("torch_overload")
    while overload is None:
        overload = overload_until_left(bound.name, bound)  # waits without the lock
        if overload is not None:
            break
        with locks.define:
            overload = bound.__dict__.get("torch_overload")
            if overload is None and is_free(bound.name):
                overload = _register(bound)
    return overload


def _register(bound: BoundOperator) -> Any:
    schema = bound.schema.without_written_returns()
    name = schema.qualified_name
    library = torch.library.Library(schema.namespace, "FRAGMENT")
    try:
        if not any(cast("KernelBase", one).registers_in_torch(name) for one in bound.operator.kernels):
            short = name.split("::", 1)[1]
            library.define(f"{short}{schema.signature}", tags=(torch.Tag.pt2_compliant_tag,))
        packet = getattr(getattr(torch.ops, schema.namespace), schema.name)
        overload = getattr(packet, schema.overload or "default")
    except (RuntimeError, IndexError, AttributeError, AssertionError) as problem:
        destroy(library)
        raise RefusedError(str(schema), problem, bound.operator.origin) from None
    bound.__dict__["torch_library"] = library
    try:
        _implement(bound, library, overload)
    except BaseException as problem:  # the name is free again
        del bound.__dict__["torch_library"]
        destroy(library)
        if isinstance(problem, RuntimeError) and not isinstance(problem, PolyopError):
            raise RefusedError(str(schema), problem, bound.operator.origin) from None
        raise
    bound.__dict__["torch_overload"] = overload
    definitions.note(bound)
    offer(bound)
    count_flops(bound, packet)
    rule = bound.operator.gradient
    if isinstance(rule, Rule) and "backward" in rule.part_kinds and not schema.name.endswith("__backward"):
        # a backward graph from PyTorch's cache names it, and nothing traces it first
        with contextlib.suppress(BusyError):  # else its first call registers it
            register(rule.part("backward"))
    return overload


def unregister(bound: BoundOperator) -> None:
    """Take an operator out of ``torch.ops``; what was compiled with it cannot run any more."""
    with locks.define:
        definitions.forget(bound)
        overload = bound.__dict__.pop("torch_overload", None)
        if overload is not None:
            forget(overload.overloadpacket)
        bound.__dict__.pop("dtensor_overload", None)
        bound.__dict__.pop("dtensor_gradient", None)
        bound.dtensor_call = None
        library = bound.__dict__.pop("torch_library", None)
        if library is not None:
            leave(bound.name, Registration(bound, overload, library))


def call_overload(bound: BoundOperator, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Call the overload with bound arguments; return its fresh outputs as a tuple."""
    positional, keywords = bound.schema.split(tensors.for_torch(bound.schema, arguments))
    result = register(bound)(*positional, **keywords)
    if isinstance(result, torch.fx.Proxy) and not bound.schema.returns_list and len(bound.schema.fresh) != 1:
        return tuple(result[number] for number in range(len(bound.schema.fresh)))
    return tensors.as_outputs(result)


CALLERS[call_overload.__code__] = "bound"


def _implement(bound: BoundOperator, library: Any, overload: Any) -> None:
    schema, operator = bound.schema, bound.operator
    name = overload._schema.name.split("::", 1)[1]
    if overload._overloadname != "default":
        name = f"{name}.{overload._overloadname}"
    full = f"{schema.namespace}::{name}"

    @untraced
    def kernel(*args: Any, **kwargs: Any) -> Any:
        return run(bound, normalise(operator, bind(schema, args, kwargs)))

    def fake(*args: Any, **kwargs: Any) -> Any:
        return _fake(bound, bind(schema, args, kwargs))

    library.impl(name, kernel, "CompositeExplicitAutograd")
    torch.library.register_fake(full, fake, lib=library, allow_override=True)
    if schema.mutates:
        _implement_mutation(bound, library, overload, name)
        batch.register_rule(bound, overload, library, name)
    else:
        make = module_gradient.make_traced if module_gradient.recorded(bound) else autograd_function.make
        apply, front = make(bound, overload)
        library.impl(name, apply, "Autograd")
        library.impl(name, front, _FRONT)
    nested.offer(bound, library, overload, name)
    if operator.autocast is not None:
        kind = tensors.TORCH_DTYPES[operator.autocast]
        for device in ("cpu", "cuda"):
            torch.library.register_autocast(full, device, kind, lib=library)


def _fake(bound: BoundOperator, arguments: tuple[Any, ...]) -> Any:
    definitions.tag()
    operator = bound.operator
    where = tensors.device_of(arguments)

    def spec(name: str, value: Any, _: Any) -> Spec:
        if (value.device.type == "meta") != (where.type == "meta"):  # the outputs would never be written
            rule = f"must be on {where}, as the first tensor is"
            shown = operator.part_of or operator.name
            raise ArgumentTypeError(f"{shown}: argument {name}", rule, str(value.device))
        return spec_of(tensors, operator, name, value)

    specs = map_tensors(operator, arguments, spec)
    outputs = operator.infer(normalise(operator, specs))
    if _has_negative_size(outputs):
        operator.infer(
            normalise(operator, _with_numbers(operator, specs))
        )  # raises, in the words of the rule
    sizes: dict[str, Any] = {}  # those that depend on data, by name
    results = tuple(tensors.empty(_with_symbols(operator, spec, sizes), where) for spec in outputs)
    if operator.schema.returns_list:
        return list(results)
    return results[0] if len(results) == 1 else results or None


def _has_negative_size(specs: Sequence[Spec]) -> bool:
    """Whether a symbolic size is negative in the call that is traced."""
    sizes = [size for spec in specs for size in spec.shape if isinstance(size, torch.SymInt)]
    if not sizes:
        return False
    from torch.fx.experimental.symbolic_shapes import guard_or_false  # here, as it imports sympy

    return any(guard_or_false(size < 0) for size in sizes)


def _with_numbers(operator: Operator, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments of a traced call as those of the call that is traced: sizes are numbers."""

    def number(value: Any) -> Any:
        return int(value) if isinstance(value, torch.SymInt) else value

    def with_numbers(name: str, spec: Spec, _: Any) -> Spec:
        del name
        return dataclasses.replace(spec, shape=tuple(map(number, spec.shape)))

    return tuple(map(number, map_tensors(operator, arguments, with_numbers)))


def _with_symbols(operator: Operator, spec: Spec, sizes: dict[str, Any]) -> Spec:
    """Return the spec with a symbol of PyTorch's tracer for each size that depends on data.

    ``sizes`` has the symbols by name. Raises ``DataSizeError`` for tensors without data outside of a tracer.
    """
    if not any(isinstance(size, DataSize) for size in spec.shape):
        return spec

    try:
        context = torch.library.get_ctx()
    except RuntimeError:
        refuse_data_sizes(operator, "a tensor on the meta device has no data")
        raise

    def symbol(size: Any) -> Any:
        if not isinstance(size, DataSize):
            return size
        if size.name not in sizes:
            most = size.most if type(size.most) is int else None
            sizes[size.name] = context.new_dynamic_size(max=most)
            if most is None:
                torch._check(sizes[size.name] <= size.most)
        return sizes[size.name]

    return dataclasses.replace(spec, shape=tuple(map(symbol, spec.shape)))


def _wants_derivative(tensor: torch.Tensor) -> bool:
    if tensor.requires_grad and torch.is_grad_enabled():
        return True
    level = torch.autograd.forward_ad._current_level
    return level >= 0 and torch.autograd.forward_ad.unpack_dual(tensor, level=0).tangent is not None


def _fresh(schema: Schema, result: Any) -> Any:
    """Return what the overload does of a call's outputs: the new ones."""
    outputs = tensors.as_outputs(result)
    results = [outputs[i] for i in schema.fresh]
    return results[0] if len(results) == 1 else tuple(results) or None


def _implement_mutation(bound: BoundOperator, library: Any, overload: Any, name: str) -> None:
    schema = bound.schema
    written = [i for i, argument in enumerate(schema.arguments) if argument.type.writes]

    @untraced
    def autograd(*args: Any, **kwargs: Any) -> Any:
        arguments = bind(schema, args, kwargs)
        differentiable: list[torch.Tensor] = []
        tensors.map_arguments(lambda t: differentiable.append(t) if _wants_derivative(t) else None, arguments)
        distributed: list[bool] = []
        tensors.map_arguments(lambda t: distributed.append(tensors.is_distributed(t)), arguments)
        traced = any(map(tensors.is_traced, differentiable))
        if differentiable and module_gradient.recorded(bound) and not traced and not any(distributed):
            result = bound.differentiate(*arguments)
            return _fresh(schema, result)
        if differentiable:
            where = (
                ""
                if not module_gradient.recorded(bound)
                else " for DTensors"
                if any(distributed)
                else _TRACED
            )
            rule = f"writes an argument in place, and such an operator has no gradient{where}"
            hint = "return a new tensor instead, or call it under torch.no_grad()"
            raise GradientError(bound.name, rule, where=bound.operator.origin, hint=hint)
        with torch._C._AutoDispatchBelowAutograd():
            return overload(*args, **kwargs)

    @untraced
    def bump_versions(keys: Any, *args: Any, **kwargs: Any) -> Any:
        # autograd finds a saved tensor that was written afterwards by its version
        with torch._C._AutoDispatchBelowADInplaceOrView():
            result = overload.redispatch(keys & torch._C._after_ADInplaceOrView_keyset, *args, **kwargs)
        arguments = bind(schema, args, kwargs)
        for position in written:
            tensors.map_arguments(torch.autograd.graph.increment_version, (arguments[position],))
        return result

    library.impl(name, autograd, "Autograd")
    library.impl(name, bump_versions, "ADInplaceOrView", with_keyset=True)


def count_flops(bound: BoundOperator, packet: Any) -> None:
    """Give PyTorch's counter the formula of an operator, if its first kernel is a loop kernel.

    A counter that is active already gets it too: it has copied the formulas when it was made.
    """
    kernel: Any = next(iter(bound.operator.kernels), None)
    if not isinstance(kernel, LoopKernelBase):
        return
    from torch.utils import flop_counter
    from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

    def formula(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
        del out_val
        return flops(bound, kernel, bind(bound.schema, args, kwargs))

    flop_counter.flop_registry[packet] = formula
    for mode in _get_current_dispatch_mode_stack():
        counter = getattr(mode, "counter", None)
        if isinstance(counter, flop_counter.FlopCounterMode):
            counter.flop_registry[packet] = formula


def flops(bound: BoundOperator, kernel: Any, arguments: tuple[Any, ...]) -> int:
    """Return the operations of one call; 0 where only data tell how many iterations a loop has."""
    from ...loops.analysis.work import work_of_loops

    values = normalise(bound.operator, specs(tensors, bound.operator, arguments))
    schema = bound.schema
    inputs = tuple(values[i] for i in schema.tensor_positions)
    attributes = {argument.name: values[i] for i, argument in schema.attributes()}
    work = work_of_loops(kernel.for_all_sizes(inputs, attributes), list(flatten(inputs)), attributes)
    return 0 if work.flops is None else round(work.flops)


def forget(packet: Any) -> None:
    """Remove the formula of an operator that is taken out of ``torch.ops``."""
    from torch.utils import flop_counter

    flop_counter.flop_registry.pop(packet, None)
