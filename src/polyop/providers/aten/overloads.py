"""Find the overload of PyTorch for a name, and the one that fits a call; list all names.

As in PyTorch, a number may stand for a tensor, and an array for a number.
"""

# ruff: noqa: SLF001 - PyTorch has no public names for these

from __future__ import annotations

import difflib
import functools
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from ...call import registry
from ...call.host import Host
from ...core.dtypes import dtype
from ...core.errors import ArgumentTypeError, ArgumentValueError, UnsupportedError
from ...core.schema import Argument, Schema
from ...core.spec import Spec
from ...core.texts import first_line
from ...hosts.torch import tensors
from .schema import signature

_NAME = re.compile(r"(?:(?P<namespace>\w+)::)?(?P<name>\w+)(?:\.(?P<overload>\w+))?", re.ASCII)


def overload_of(name: Any) -> Any:
    """Return the overload that ``name`` stands for; raises as :func:`polyop.providers.aten.aten` does."""
    if isinstance(name, torch._ops.OpOverload):
        return name
    if isinstance(name, torch._ops.OpOverloadPacket):
        return _default_overload(name)
    if not isinstance(name, str):
        rule = "must be the name of an operator, or an operator of torch.ops"
        raise ArgumentTypeError(f"aten({name!r})", rule, type(name).__name__)
    match = _NAME.fullmatch(name)
    if match is None:
        rule = "must be of the form name, name.overload or namespace::name.overload"
        meant = _meant(name)
        raise ArgumentValueError(f"aten({name!r})", rule, hint=meant and f"write aten({meant!r})")
    namespace = getattr(torch.ops, match["namespace"] or "aten")
    packet = getattr(namespace, match["name"], None)
    if not isinstance(packet, torch._ops.OpOverloadPacket) or not _overloads(packet):
        raise _unknown(name, match["namespace"] or "aten", match["name"])
    if match["overload"] is None:
        return _default_overload(packet)
    if match["overload"] not in _overloads(packet):
        rule = f"has no overload {match['overload']!r}"
        raise ArgumentValueError(f"aten({name!r})", rule, hint=_listed(packet))
    return getattr(packet, match["overload"])


def qualified(overload: Any) -> str:
    """Return ``namespace::name``, with the overload unless it is the default one."""
    return str(overload._schema.name) + (f".{overload._schema.overload_name}".rstrip("."))


@functools.cache
def by_letters() -> dict[str, str]:
    """Return PyTorch's names by their letters: ``logaddexp`` of that one, ``maxdim`` of ``max.dim``.

    The letters of a name without its overload mean the default one, else that of tensors.
    """
    found: dict[str, str] = {}
    for full in sorted(_names()):
        base, _, overload = full.removeprefix("aten::").partition(".")
        if not full.startswith("aten::") or base.startswith("_") or base.endswith("_"):
            continue
        if not overload:
            found[letters(base)] = base
            continue
        found.setdefault(letters(base + overload), f"{base}.{overload}")
        if overload == "Tensor":
            found.setdefault(letters(base), f"{base}.{overload}")
    return found


def letters(name: str) -> str:
    """Return the letters of a name, all small.

    >>> letters("log_add_exp"), letters("LogAddExp")
    ('logaddexp', 'logaddexp')
    """
    return name.replace("_", "").lower()


def derived_namespace(schema: Schema) -> str:
    """Return the namespace of the operators that are derived from one of PyTorch's."""
    return schema.namespace if schema.namespace.startswith("polyop_") else f"polyop_{schema.namespace}"


def matching(word: str) -> list[tuple[str, str]]:
    """Return the list of :func:`polyop.providers.aten.listing`."""
    names = [name for name in _names_with(word) if word or name.startswith("aten::")]
    return [(str(schema), _problem(schema)) for _, schema in _schemas(names)]


def names_with(word: str) -> list[str]:
    """Return the names that hold ``word`` and are taken, without the gradients that polyop makes of them."""
    names = [name for name in _names_with(word) if not name.startswith("polyop_") and not _is_part(name)]
    return [name for name, schema in _schemas(names) if not _problem(schema)]


def _is_part(name: str) -> bool:
    """Whether a name is that of a part of an operator that polyop has defined, such as its gradient."""
    words = name.partition(".")[0].split("__")
    return any(registry.named("__".join(words[:k])) is not None for k in range(1, len(words)))


def _names_with(word: str) -> list[str]:
    return sorted(name for name in _names() if word.lower() in name.lower())


def _schemas(names: list[str]) -> Iterator[tuple[str, Any]]:
    """Yield ``names``, each with its schema; a name with only an implementation has none, and is left out."""
    for name in names:
        base, _, overload = name.partition(".")
        try:
            yield name, torch._C._get_schema(base, overload)
        except RuntimeError:
            continue


def nearest(name: str) -> list[str]:
    """Return the most similar names, of all namespaces."""
    plain = {full.partition(".")[0] for full in _names()}
    short = {full.removeprefix("aten::"): full for full in plain}
    return difflib.get_close_matches(name.removeprefix("aten::"), short, n=5, cutoff=0.6)


def _names() -> list[str]:
    names: list[str] = torch._C._dispatch_get_all_op_names()
    return names


def _problem(schema: Any) -> str:
    try:
        signature(schema)
    except UnsupportedError as problem:
        return first_line(problem).split(": ", 1)[1]
    return ""


def _overloads(packet: Any) -> list[str]:
    # TorchScript adds overloads for numbers and strings under the same names, which take no tensors
    return [name for name in packet.overloads() if _dispatched(getattr(packet, name)._schema)]


def _dispatched(schema: Any) -> bool:
    try:
        torch._C._dispatch_find_schema_or_throw(schema.name, schema.overload_name)
    except RuntimeError:
        return False
    return True


def _default_overload(packet: Any) -> Any:
    names = _overloads(packet)
    plain = [name for name in names if not re.search(r"(^|_)out($|_)", name)]
    for name in ("default", "Tensor", *(plain if len(plain) == 1 else ())):
        if name in names:
            return getattr(packet, name)
    subject = f"aten({packet._qualified_op_name.removeprefix('aten::')!r})"
    raise ArgumentValueError(subject, "has several overloads, and one must be named", hint=_listed(packet))


def _listed(packet: Any) -> str:
    def lines() -> Iterator[str]:
        for name in _overloads(packet):
            yield str(getattr(packet, name)._schema).split("::", 1)[1]

    return "the overloads are\n    " + "\n    ".join(lines())


def _meant(name: str) -> str:
    """Return the name for the path of a Python function or of ``torch.ops``, "" for none."""
    parts = re.sub(r"^(torch\.)?(ops\.|nn\.functional\.|Tensor\.|F\.)?", "", name).split(".")
    namespaces = {full.partition("::")[0] for full in _names()}
    namespace = parts.pop(0) if len(parts) > 1 and parts[0] in namespaces else "aten"
    short, overload = parts[0], ".".join(parts[1:]).removesuffix("default")
    packet = getattr(getattr(torch.ops, namespace), short, None) if short else None
    overloads = _overloads(packet) if isinstance(packet, torch._ops.OpOverloadPacket) else []
    if overload not in overloads if overload else not overloads:
        return ""
    prefix = "" if namespace == "aten" else f"{namespace}::"
    return f"{prefix}{short}{'.' if overload else ''}{overload}"


def _unknown(name: str, namespace: str, short: str) -> ArgumentValueError:
    meant = _meant(name)
    if meant:
        rule = "PyTorch has no operator of this name"
        return ArgumentValueError(f"aten({name!r})", rule, hint=f"write aten({meant!r})")
    near = nearest(f"{namespace}::{short}")
    hint = f"the nearest names are {', '.join(near)}" if near else "polyop inspect aten WORD lists the names"
    if not any(other.startswith(f"{namespace}::") for other in _names()):
        hint = f"nothing is registered under {namespace}:: (import the package that does it first); {hint}"
    return ArgumentValueError(f"aten({name!r})", "PyTorch has no operator of this name", hint=hint)


_NUMBERS = (bool, int, float, complex)


def numbers_for_tensors(schema: Schema, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[int]:
    """Return the positions of Python's numbers in the places of tensors, but for what the operator writes."""
    positions = []
    for i in schema.tensor_positions:
        argument = schema.arguments[i]
        value = args[i] if i < len(args) else kwargs.get(argument.name)
        if isinstance(value, _NUMBERS) and not (argument.type.is_list or argument.type.writes):
            positions.append(i)
    return positions


def scalar_overload(overload: Any, positions: Sequence[int]) -> Any:
    """Return the overload that has numbers at these positions and is else the same, or None."""
    packet = overload.overloadpacket
    arguments = overload._schema.arguments
    wanted = [(a.name, "number" if i in positions else _kind(a.type)) for i, a in enumerate(arguments)]
    for name in packet.overloads():
        other = getattr(packet, name)
        if [(a.name, _kind(a.type)) for a in other._schema.arguments] == wanted:
            return other
    return None


def _kind(torch_type: Any) -> str:
    text = str(torch_type)
    return "number" if text in ("number", "Scalar") else text


def as_array(host: Host, value: complex, beside: Sequence[Spec]) -> Any:
    """Return a number as an array without dimensions, whose dtype leaves PyTorch's result as it is.

    ``beside`` are the specs of the call's tensors. In PyTorch a number does not widen their dtype.
    """
    kind = _number_dtype(value, beside)
    exact = torch.from_numpy(np.array(value))  # a double, if it is no integer
    return host.namespace().asarray(tensors.to_numpy(exact.to(kind)))


def _number_dtype(value: complex, beside: Sequence[Spec]) -> torch.dtype:
    """Return the dtype for a number: that of PyTorch's result, but int64 where that changes nothing.

    An integer may be an index, and operators take no index of another dtype.
    """
    own = torch.tensor(value).dtype
    # masks widen nothing, and PyTorch promotes them with few of the smallest dtypes
    others = [spec for spec in beside if spec.dtype.name != "bool"] or beside
    try:
        result = torch.result_type(_promoted(others), value)
    except RuntimeError:  # of float8 beside float16, for example
        return own
    if own.is_complex:
        return own if result == torch.complex32 else result  # no array has complex32
    if own.is_floating_point:
        return result.to_real()
    try:
        kept = _promoted([*others, Spec((), dtype(own))]).dtype
    except RuntimeError:  # of int64 beside uint64 without dimensions
        return result
    return own if kept == result else result


def _promoted(specs: Sequence[Spec]) -> torch.Tensor:
    """Return a tensor that stands for all in PyTorch's rule for dtypes.

    Those without dimensions come first: together they count as one beside those that have dimensions.
    Raises ``RuntimeError`` where PyTorch has no rule.
    """
    metas = [
        torch.empty((1,) * bool(spec.shape), dtype=tensors.TORCH_DTYPES.get(spec.dtype.name), device="meta")
        for spec in sorted(specs, key=lambda spec: len(spec.shape))
    ]
    return functools.reduce(lambda a, b: (b if b.ndim else a).to(torch.result_type(a, b)), metas)


def constant(argument: Argument, value: Any) -> Any:
    """Return an attribute that is given as an array as Python's numbers, if it holds data; else unchanged."""
    if not hasattr(value, "shape") or not hasattr(value, "dtype") or isinstance(value, np.generic):
        return value
    jax = sys.modules.get("jax")
    if jax is not None and isinstance(value, jax.core.Tracer):
        return value
    array = np.asarray(value)
    return array.tolist() if array.ndim == int(argument.type.is_list) else value
