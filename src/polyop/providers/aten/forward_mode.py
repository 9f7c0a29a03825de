"""Forward mode of operators that other packages registered, by the ``jvp=`` of ``load_library``.

PyTorch has no place for such a rule beside an author's gradient. An operator without a gradient gets zeros as
its tangents, without a word. So the autograd kernel is replaced by one that applies the rule where a tensor
has a tangent, and calls the author's kernel otherwise. That is done when forward mode comes first: until then
the author may register a gradient.
"""

# ruff: noqa: SLF001 - PyTorch has no public names for these

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch.autograd import forward_ad

from ...call import registry
from ...call.operator import Operator
from ...core import locks
from ...core.arguments import bind
from ...core.errors import GradientError
from ...core.origin import of_function
from ...core.untraced import untraced
from ...hosts.torch.autograd_arguments import Layout
from ...hosts.torch.tensors import as_outputs, for_torch
from ...hosts.torch.transforms import depth
from .registered import has_kernel

_KEYS = ("AutogradCPU", "AutogradCUDA")
_DIFFERENTIABLE = ("CompositeImplicitAutograd", "Autograd", *_KEYS)
"""Keys of which a kernel says what the derivative is."""
_kernels: dict[str, tuple[Any, Any]] = {}
"""The overload whose kernel was replaced, and what holds the registration, by the operator's name."""


_without_gradient: set[str] = set()
"""The operators that had no autograd kernel before."""


def in_forward_mode(name: str) -> bool:
    """Let an operator use its rule if this is called in forward mode; return True."""
    if forward_ad._current_level >= 0 or depth("Jvp"):  # torch.compile tells forward_ad of no level
        with locks.define:
            bound = registry.named(name)
            if bound is not None:
                _use_rule(bound)
    return True


# torch.compile runs the function while it traces, and treats the result as a constant
in_forward_mode._dynamo_marked_constant = True  # type: ignore[attr-defined]


def is_differentiable(name: str) -> bool:
    """Whether an operator has an autograd kernel, or is made of operators that have one."""
    return name not in _without_gradient and any(has_kernel(name, key) for key in _DIFFERENTIABLE)


def _use_rule(bound: Any) -> None:
    overload = bound.torch
    name = overload.name()
    registered, library = _kernels.get(name, (None, None))
    if registered is overload or bound.schema.mutates:
        return
    if library is not None:  # of an operator that was registered again
        library._destroy()
        _without_gradient.discard(name)
    differentiable = is_differentiable(name)
    if bound.operator.jvp is None and differentiable:
        return  # PyTorch differentiates it, or says that it cannot
    library = torch.library.Library(overload.namespace, "IMPL")
    if any(has_kernel(name, key) for key in ("Autograd", *_KEYS)):
        replaced = [(key, key) for key in _KEYS]
    else:  # a gradient that the author registers later takes its place
        replaced = [("Autograd", "AutogradCPU")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a kernel is replaced
        for key, old in replaced:
            library.impl(name.partition("::")[2], _kernel(bound, overload, old), key, with_keyset=True)
    _kernels[name] = overload, library
    if not differentiable:
        _without_gradient.add(name)


def _kernel(bound: Any, overload: Any, key: str) -> Any:
    """Return the kernel that replaces the one which an autograd key has now, and calls it."""
    author = torch.library.get_kernel(overload, key)
    layout = Layout(bound)

    @untraced
    def autograd(keyset: Any, *args: Any, **kwargs: Any) -> Any:
        flat = layout.flatten(bind(bound.schema, args, kwargs))
        primals, tangents = zip(*map(_unpacked, flat), strict=True)
        if all(tangent is None for tangent in tangents):
            return author.call_boxed(keyset, *args, **kwargs)
        values = layout.unflatten(primals)
        positional, keywords = bound.schema.split(for_torch(bound.schema, values))
        if torch.is_grad_enabled() and any(isinstance(x, torch.Tensor) and x.requires_grad for x in primals):
            result = author.call_boxed(keyset, *positional, **keywords)
        else:  # PyTorch refuses gradients in C++ inside its transforms, and none is asked for
            result = overload.redispatch(keyset & torch._C._after_autograd_keyset, *positional, **keywords)
        outputs = as_outputs(result)
        pushed = _pushed(bound.operator, values, outputs, layout.unflatten(primals, tangents))
        rows = zip(outputs, pushed, strict=True)
        dual = [x if t is None else forward_ad.make_dual(x, t, level=0) for x, t in rows]
        return dual if isinstance(result, list) else tuple(dual) if isinstance(result, tuple) else dual[0]

    return autograd


def _unpacked(value: Any) -> tuple[Any, Any]:
    return forward_ad.unpack_dual(value, level=0) if isinstance(value, torch.Tensor) else (value, None)


def _pushed(
    operator: Operator, values: Sequence[Any], outputs: Sequence[Any], tangents: Sequence[Any]
) -> list[Any]:
    """Return one tangent or None per output; raises ``GradientError`` without a rule, or for its result."""
    smooth = [isinstance(x, torch.Tensor) and (x.is_floating_point() or x.is_complex()) for x in outputs]
    if operator.jvp is None:
        if not any(smooth):
            return [None] * len(outputs)
        hint = f'polyop.load_library(..., jvp={{"{operator.schema.name}": rule}}) gives it one'
        raise GradientError(operator.name, "has no forward-mode rule", where=operator.origin, hint=hint)
    result = operator.jvp(*values, tuple(outputs) if operator.several else outputs[0], tuple(tangents))
    pushed = list(result) if operator.several else [result]
    where = of_function(operator.jvp)
    if len(pushed) != len(outputs):
        rule = f"jvp= must return {len(outputs)} tangents, one or None per output"
        raise GradientError(operator.name, rule, f"{len(pushed)}", where=where)
    for number, (tangent, output) in enumerate(zip(pushed, outputs, strict=True)):
        if tangent is not None and tuple(tangent.shape) != tuple(output.shape):
            subject = f"{operator.name}: tangent of output {number}"
            rule = f"must have the output's shape {tuple(output.shape)}"
            raise GradientError(subject, rule, tuple(tangent.shape), where=where)
    rows = zip(pushed, outputs, smooth, strict=True)
    return [None if t is None or not flag else t.to(x.dtype) for t, x, flag in rows]
