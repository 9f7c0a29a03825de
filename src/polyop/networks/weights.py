"""Carry the weights of a PyTorch network to JAX or to MindSpore, by names and layouts.

Weights are NumPy arrays here: no framework is imported, and :func:`save` and :func:`load` take them to an
environment that cannot hold both frameworks.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, TypeAlias

import numpy as np

from ..core.dtypes import dtype
from ..core.errors import ArgumentTypeError, ArgumentValueError, UnsupportedError, about
from .weights_check import epsilons, flat, matched, nested
from .weights_file import load, save
from .weights_flax import FLAX
from .weights_mindspore import MINDSPORE
from .weights_rules import Array, Convert, Rule, as_they_are, named

__all__ = ["as_they_are", "load", "save", "to_jax", "to_mindspore"]

Rules: TypeAlias = Mapping[type, Mapping[str, str] | Convert]

_NOT_CARRIED = "num_batches_tracked"  # PyTorch's count of steps, which the others do not keep


def to_jax(
    module: Any,
    *,
    layout: str = "flax",
    rules: Rules | None = None,
    names: Mapping[str, str] | None = None,
    leave_out: Collection[str] = (),
    like: Any = None,
) -> dict[str, Any]:
    """Return the weights of a PyTorch module for JAX: nested dictionaries of NumPy arrays.

    The dictionary ``"params"`` has what is trained, and ``"batch_stats"`` the statistics of norms, if there
    are any. Below them is a dictionary for each path of attributes. ``layout="flax"`` gives names and layouts
    of Flax: ``kernel`` is (in, out) for linear layers and (height, width, in, out) for convolutions,
    norms have a ``scale``. ``layout="torch"`` keeps PyTorch's; it knows every layer, and statistics are
    in ``"buffers"``.

    * ``rules`` are for layers of your own, by type: a dictionary from names to names, or a function that
      takes the layer and its own tensors by name and returns others, such as :func:`as_they_are`.
    * ``names`` renames paths: ``{"layers.0": "Dense_0"}``.
    * ``leave_out`` has names of the state dictionary that are not carried.
    * ``like`` has the same structure, with arrays or ``jax.ShapeDtypeStruct`` as leaves.

    Settings are not carried: a ``LayerNorm`` of Flax has another ``epsilon`` than PyTorch's. A recurrent
    layer of Flax has the sum of PyTorch's two biases, so it computes the same, and trains its bias at
    half the rate.

    >>> import torch
    >>> weights = to_jax(torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.LayerNorm(3)))
    >>> weights["params"]["0"]["kernel"].shape, list(weights["params"]["1"])
    ((4, 3), ['scale', 'bias'])

    Raises ``UnsupportedError`` for a layer without a rule and for a tensor that has two names, and
    ``ArgumentValueError`` where the result differs from ``like``; the text has all differences.
    """
    if layout not in ("flax", "torch"):
        raise ArgumentValueError("weights.to_jax: layout", 'must be "flax" or "torch"', repr(layout))
    table = FLAX if layout == "flax" else None
    book = _Book(table, rules or {}, "Flax")
    found = {"params": nested(_carried(module, book, names or {}, leave_out, buffers=False))}
    if statistics := _carried(module, book, names or {}, leave_out, buffers=True):
        found["batch_stats" if table else "buffers"] = nested(statistics)
    if like is not None:
        matched(flat(found), flat(like))
    return found


def to_mindspore(
    module: Any,
    *,
    rules: Rules | None = None,
    names: Mapping[str, str] | None = None,
    leave_out: Collection[str] = (),
    like: Any = None,
) -> dict[str, Array]:
    """Return the weights of a PyTorch module by the names of MindSpore's parameters, as NumPy arrays.

    Layouts are those of ``mindspore.nn``: a norm has ``gamma``, ``beta``, ``moving_mean``, and the
    weight of ``Conv1d`` four dimensions. ``rules``, ``names`` and ``leave_out`` are as in :func:`to_jax`.
    ``like`` is a cell, of which the epsilons of norms are compared, too, or a dictionary of parameters.

    >>> import torch
    >>> sorted(to_mindspore(torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.LayerNorm(3))))
    ['0.bias', '0.weight', '1.beta', '1.gamma']

    ``for name, p in cell.parameters_and_names(): p.set_data(mindspore.Tensor(weights[name]))`` gives them to
    a cell. No other setting is compared, and none is carried.

    Raises the errors of :func:`to_jax`.
    """
    book = _Book(MINDSPORE, rules or {}, "MindSpore")
    weights = _carried(module, book, names or {}, leave_out, buffers=None)
    if like is not None:
        layers = {_renamed(path, names or {}): layer for path, layer in module.named_modules()}
        matched(weights, flat(like), epsilons(layers, like))
    return weights


class _Book:
    """The rules by type: those of the caller, then those of the table. No table: all stays as it is."""

    def __init__(self, table: Mapping[str, Rule] | None, rules: Rules, target: str) -> None:
        self.table, self.rules, self.target = table, rules, target

    def find(self, layer: Any) -> Rule | None:
        """Return the rule of a layer, if there is one."""
        kinds = type(layer).__mro__
        given = next((self.rules[kind] for kind in kinds if kind in self.rules), None)
        if given is not None:
            return Rule(given) if callable(given) else named(**given)
        if self.table is None:
            return Rule(as_they_are)
        theirs = [self.table.get(k.__name__) for k in kinds if k.__module__.startswith("torch.nn.")]
        return next((rule for rule in theirs if rule), None)

    def of(self, path: str, layer: Any) -> Rule:
        """Return the rule of a layer that has tensors; raises ``UnsupportedError``."""
        rule = self.find(layer)
        if rule is None:
            raise UnsupportedError(
                _shown(path, layer),
                f"no rule says what its own tensors are called in {self.target}",
                hint=f"pass rules={{{type(layer).__name__}: weights.as_they_are}} to keep names and layouts, "
                "or a dictionary of names, or a function",
            )
        return rule


def _carried(
    module: Any, book: _Book, names: Mapping[str, str], leave_out: Collection[str], buffers: bool | None
) -> dict[str, Array]:
    """Return the tensors by their new names: parameters, buffers, or without ``buffers`` both."""
    if not hasattr(module, "state_dict") or not hasattr(module, "named_modules"):
        raise ArgumentTypeError("weights", "the network must be a torch.nn.Module", type(module).__name__)
    layers = dict(module.named_modules(remove_duplicate=False))
    _known(names, layers, "names: there is no layer")
    trained = {name for name, _ in module.named_parameters(remove_duplicate=False)}
    found: dict[str, Array] = {}
    for path, (rule, tensors) in _parts(module, layers, book, leave_out).items():
        if buffers is None:
            part = tensors
        else:
            part = {n: v for n, v in tensors.items() if (_joined(path, n) not in trained) == buffers}
        if not part and not rule.fills:
            continue
        try:
            converted = rule.convert(layers[path], part)
        except UnsupportedError as error:
            raise about(f"{_shown(path, layers[path])}: {error.subject}", error) from None
        except KeyError as error:
            rule_text = f"its rule needs the tensor {error}, which is not carried"
            raise UnsupportedError(_shown(path, layers[path]), rule_text) from None
        for name, value in converted.items():
            full = _joined(_renamed(path, names), name)
            if full in found:
                raise ArgumentValueError(full, "two tensors would have this name")
            found[full] = np.asarray(value, order="C")
    return found


def _parts(
    module: Any, layers: Mapping[str, Any], book: _Book, leave_out: Collection[str]
) -> dict[str, tuple[Rule, dict[str, Array]]]:
    """Return for each layer that has tensors, by its path, its rule and its tensors by name."""
    state = module.state_dict()
    _known(leave_out, state, "leave_out: the state dictionary has no")
    found: dict[str, tuple[Rule, dict[str, Array]]] = {}
    for path, layer in layers.items():
        rule = book.find(layer)
        if rule and rule.fills:
            found[path] = rule, {}
    first: dict[tuple[Any, ...], str] = {}
    for name, tensor in state.items():
        path, _, last = name.rpartition(".")
        if name in leave_out or last == _NOT_CARRIED:
            continue
        if not hasattr(tensor, "data_ptr"):
            hint = f'pass leave_out=["{name}"]'
            raise UnsupportedError(name, "it is no tensor, but an extra state", hint=hint)
        owner, rule = _owner(path, layers, book)
        place = (tensor.data_ptr(), tuple(tensor.shape), tensor.stride())
        if tensor.numel() and first.setdefault(place, name) != name:
            raise UnsupportedError(
                name,
                f"it is the same tensor as {first[place]}, and would be trained as another one",
                hint=f'pass leave_out=["{name}"] and use the other one in the new network, or clone it',
            )
        found.setdefault(owner, (rule, {}))[1][name[len(owner) :].lstrip(".")] = _array(tensor)
    return found


def _owner(path: str, layers: Mapping[str, Any], book: _Book) -> tuple[str, Rule]:
    """Return the layer whose rule carries a tensor: its own, or one around it whose rule takes all of it."""
    parts = path.split(".") if path else []
    for count in range(len(parts)):
        outer = ".".join(parts[:count])
        rule = book.find(layers[outer])
        if rule and rule.whole:
            return outer, rule
    if path not in layers:
        raise UnsupportedError(path, "the state dictionary has a tensor of a layer that the module lacks")
    return path, book.of(path, layers[path])


def _array(tensor: Any) -> Array:
    """Return a copy of a tensor of PyTorch."""
    row = dtype(tensor.dtype)
    tensor = tensor.detach().cpu()
    if row.numpy.isbuiltin == 1:
        return np.array(tensor.numpy())
    return np.asarray(tensor.float().numpy()).astype(row.numpy)  # float32 holds each of them exactly


def _shown(path: str, layer: Any) -> str:
    return f"{path or 'the module'} ({type(layer).__name__})"


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _renamed(path: str, names: Mapping[str, str]) -> str:
    """Return the path with its longest beginning that has a new name replaced."""
    parts = path.split(".")
    for count in range(len(parts), 0, -1):
        start = ".".join(parts[:count])
        if start in names:
            return ".".join([part for part in (names[start], *parts[count:]) if part])
    return path


def _known(given: Collection[str], there: Collection[str], rule: str) -> None:
    for name in given:
        if name not in there:
            raise ArgumentValueError("weights", rule, repr(name))
