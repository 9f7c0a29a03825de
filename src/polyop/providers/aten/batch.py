"""``vmap`` of operators of PyTorch, and ``torch.vmap`` of operators of other packages.

An operator of PyTorch has PyTorch's batching rules. One of another package without a rule is called once for
each sample. PyTorch does that too, and prints a line in each call; here there is one warning. The rule is
registered when ``torch.vmap`` comes first: until then the author may register one.
"""

# ruff: noqa: SLF001 - PyTorch has no public names for these

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import torch

from ...call import registry
from ...core import locks
from ...core.derived_names import derived_from
from ...core.schema import MISSING, Schema
from ...hosts.torch.batch import register_rule
from ...hosts.torch.transforms import depth
from .function import TorchFunction
from .overloads import derived_namespace
from .registered import has_kernel

_KEYS = ("FuncTorchBatched", "FuncTorchBatchedDecomposition")
_rules: dict[str, tuple[Any, Any]] = {}
"""The overload that has a rule of polyop's, and what holds its registration, by the operator's name."""
_together: dict[str, tuple[str, ...]] = {}
"""The operators of the library that an operator belongs to: the gradient of one may call another."""


def keep_together(operators: Iterable[Any]) -> None:
    """Note the operators of one library: those of them that need a rule get it at the same time."""
    names = tuple(bound.name for bound in operators)
    _together.update(dict.fromkeys(names, names))


def give_rules(name: str) -> None:
    """Give an operator, and those of its library, a rule for ``torch.vmap`` where PyTorch has none."""
    with locks.define:
        for one in _together.get(name, (name,)):
            give_rule(registry.named(one))


def give_rule(bound: Any) -> None:
    """Give an operator a rule for ``torch.vmap``, that of its ``dims=`` or a loop, unless it has one."""
    overload = bound.torch
    name = overload.name()
    registered, library = _rules.get(name, (None, None))
    if registered is overload or bound.function.result_kinds:  # PyTorch's error says that these have none
        return
    if library is not None:  # of an operator that was registered again
        library._destroy()
    if not any(has_kernel(name, key) for key in _KEYS):
        _rules[name] = overload, torch.library.Library(overload.namespace, "IMPL")
        register_rule(bound, overload, _rules[name][1], name.partition("::")[2])


def in_vmap(name: str) -> bool:
    """Give the rules of :func:`give_rules` if this is called inside ``torch.vmap``; return True."""
    if depth("Vmap"):
        give_rules(name)
    return True


# torch.compile runs the function while it traces, and treats the result as a constant
in_vmap._dynamo_marked_constant = True  # type: ignore[attr-defined]


Dims = tuple[Any, ...]
"""The batch dimension of each argument, or None; a tuple of these for a list of tensors."""


def batched(one: TorchFunction, dims: Dims) -> TorchFunction:
    """Return the function of whole batches. Its outputs have the batch first."""
    schema = one.schema
    positions = schema.tensor_positions
    in_dims = tuple(list(dims[i]) if isinstance(dims[i], tuple) else dims[i] for i in positions)

    def call(*args: Any, **kwargs: Any) -> Any:
        values = [*args, *(kwargs[argument.name] for argument in schema.arguments[len(args) :])]

        def sample(*tensors: Any) -> Any:
            for position, tensor in zip(positions, tensors, strict=True):
                values[position] = tensor
            positional, keywords = schema.split(values)
            return one.function(*positional, **keywords)

        tensors = [list(v) if isinstance(v, tuple) else v for v in (values[i] for i in positions)]
        if one.registered:
            give_rules(one.registered)
        return torch.vmap(sample, in_dims, randomness="different")(*tensors)

    return dataclasses.replace(one, schema=_schema(schema), function=call)


def _schema(schema: Schema) -> Schema:
    namespace = derived_namespace(schema)
    whole = dataclasses.replace(
        schema,
        namespace=namespace,
        name=registry.unique(namespace, f"{schema.name}_batched"),
        arguments=tuple(dataclasses.replace(argument, default=MISSING) for argument in schema.arguments),
    )
    return derived_from(schema, "batched", whole)
