"""``torch.vmap`` of operators of other packages: one call for each sample, with a single warning.

PyTorch does that too for an operator without a batching rule, and prints a line in each call. The rule here
is registered when ``torch.vmap`` comes first: until then the author may register one.
"""

# ruff: noqa: SLF001 - PyTorch has no public names for these

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from ...call import registry
from ...core import locks
from ...hosts.torch.batch import register_rule
from ...hosts.torch.transforms import depth
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
