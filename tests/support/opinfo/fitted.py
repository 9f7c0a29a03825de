"""Calls of PyTorch's operators, made of the samples of its test database, each argument by its name.

A sample is written for one Python function. Here it becomes calls of every overload that takes such arguments:
that of the entry's name, of its aliases, of what the function and its gradient call, and overloads beside these.
"""

from __future__ import annotations

import functools
import re

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from opinfo.entries import copied, entries, flat, samples_in

DTYPES = (torch.float32, torch.int64, torch.bool, torch.complex64)
CALLS = 2
"""At most so many calls of an overload from one entry in one dtype."""


def spelling(overload):
    """Return ``max.dim`` of an overload, without ``default``."""
    return str(overload).removeprefix("aten.").removesuffix(".default")


@functools.cache
def calls(name, wanted):
    """Return (spelling, dtype, arguments by name, results) of calls of an entry, for the spellings in ``wanted``."""
    op, found, counts = entries()[name], [], {}
    for kind in DTYPES:
        for sample in samples_in(op, kind) if kind in op.supported_dtypes("cpu") else ():
            for overload, args, kwargs in _candidates(op, sample, kind):
                key = spelling(overload), kind
                if key[0] not in wanted or counts.get(key, 0) == CALLS:
                    continue
                arguments = fitted(overload, args, kwargs)
                results = None if arguments is None else run(overload, arguments)
                if results is not None:
                    counts[key] = counts.get(key, 0) + 1
                    found.append((*key, arguments, results))
    return found


def run(overload, arguments):
    """Return the list of results; None if PyTorch refuses the call, or returns something else than arrays."""
    try:
        with torch.no_grad():
            results = overload(**copied(arguments))
    except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError):
        return None
    results = list(results) if isinstance(results, tuple) else [results]
    tensors = [*flat(results), *flat(arguments)]
    tensors = [x for x in tensors if isinstance(x, torch.Tensor)]
    plain = all(x.layout is torch.strided and x.dtype is not torch.complex32 for x in tensors)
    return results if plain else None


def _candidates(op, sample, kind):
    """Yield overloads with arguments that they may take."""
    args, kwargs = (sample.input, *sample.args), sample.kwargs
    names = [op.aten_name, op.name, *(alias.name for alias in op.aliases)]
    spelled = [form for name in names for form in (name.rsplit(".", 1)[-1], name.replace(".", "_"))]
    for name in dict.fromkeys(spelled):
        yield from ((overload, args, kwargs) for overload in _overloads(name))
    for overload, inner, inner_kwargs in _recorded(op, args, kwargs, kind):
        yield overload, inner, inner_kwargs
        packet = overload.overloadpacket.__name__
        for name in (packet, f"{packet}_copy", re.sub("_forward$", "", packet)):
            yield from ((o, inner, inner_kwargs) for o in _overloads(name) if o is not overload)


def _overloads(name):
    packet = getattr(torch.ops.aten, name, None)
    if not isinstance(packet, torch._ops.OpOverloadPacket):
        return []
    return [getattr(packet, overload) for overload in packet.overloads()]


class _Recorder(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if function.namespace == "aten" and not function._schema.is_mutable:
            self.calls.append((function, copied(args), copied(kwargs)))
        return function(*args, **kwargs)


def _recorded(op, args, kwargs, kind):
    """Return the calls that reach PyTorch's kernels, those of the gradient too."""
    args = copied(args)
    smooth = [x for x in flat(args) if isinstance(x, torch.Tensor) and x.dtype is kind]
    with _Recorder() as recorder:
        try:
            if kind.is_floating_point and op.supports_autograd:
                for x in smooth:
                    x.requires_grad_()
            ends = [x for x in flat(op.op(*args, **copied(kwargs))) if getattr(x, "requires_grad", False)]
            if ends:
                torch.autograd.backward(ends, [torch.ones_like(x) for x in ends])
        except (RuntimeError, TypeError, AssertionError):
            pass  # no gradient, or one that PyTorch lacks: the calls until here are there
    return recorder.calls


def fitted(overload, args, kwargs):
    """Return the arguments by name, each as its type wants it; None if the overload does not take them."""
    declared = overload._schema.arguments
    if len(args) > len(declared):
        return None
    arguments = {}
    for place, argument in enumerate(declared):
        if place < len(args) and not argument.kwarg_only:
            value = args[place]
        elif argument.name in kwargs:
            value = kwargs[argument.name]
        elif argument.has_default_value():
            value = argument.default_value
        else:
            return None
        arguments[argument.name] = _as(str(argument.type), argument.N, value)
    return arguments


def _as(kind, size, value):
    """Return a value as a type of PyTorch's schemas: a number for an array, or a list for a number."""
    is_number = re.fullmatch(r"(Optional\[)?(number|int|float|SymInt|bool)\]?", kind)
    if is_number and isinstance(value, torch.Tensor) and value.numel():
        return value.flatten()[0].item()
    if kind == "Tensor" and isinstance(value, (bool, int, float, complex)):
        return torch.tensor(value)
    if re.match(r"(Optional\[)?List\[(int|SymInt|float)\]", kind):
        value = value.tolist() if isinstance(value, torch.Tensor) else value
        return [value] * (size or 1) if isinstance(value, (int, float)) else value
    return value
