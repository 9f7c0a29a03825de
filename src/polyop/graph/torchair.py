"""Converters, by which torchair puts an operator into a GE graph.

A converter is called with the arguments of the call and with ``meta_outputs``, which have the dtypes and
shapes of the results. Tensors are torchair's. It adds nodes to the graph and returns their outputs.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, TypeVar

from ..call.operator import Operator
from ..core.errors import ArgumentTypeError, ArgumentValueError, HostError, UnsupportedError
from ..core.schema import Argument
from .from_operator import prototype_of
from .generate import function_name, generate, parameters, skip_reason
from .parse import read
from .prototype import AttributeItem, Prototype, TensorItem
from .torchair_without_cann import rehearse

__all__ = ["dtype_promote", "load_header", "register", "register_fx_node_ge_converter", "rehearse"]

_F = TypeVar("_F", bound=Callable[..., Any])


def torchair() -> ModuleType:
    """Return torchair; raises ``HostError`` where it cannot be imported."""
    loaded = sys.modules.get("torchair")
    if loaded is not None and "torchair.ge" in sys.modules:
        return loaded
    try:
        importlib.import_module("torch_npu")
        importlib.import_module("torchair.ge")  # importing a submodule makes torch-npu load torchair itself
        return sys.modules["torchair"]
    except (ImportError, OSError) as problem:
        hint = "without CANN, for tests: polyop.graph.torchair.rehearse() before"
        raise HostError("torchair", f"could not be imported: {problem}", hint=hint) from problem


def overload_of(operator: Any) -> Any:
    """Return the operator's overload in ``torch.ops``; an overload is returned unchanged.

    Raises ``ArgumentTypeError`` for anything else, ``HostError`` where PyTorch is not installed.
    """
    if hasattr(operator, "_schema") and hasattr(operator, "overloadpacket"):
        return operator
    if not isinstance(getattr(operator, "operator", None), Operator):
        rule = "must be an operator, or an overload such as torch.ops.myops.my_op.default"
        raise ArgumentTypeError("register_fx_node_ge_converter", rule, repr(operator))
    from ..call.host import torch_host

    host = torch_host()
    if host is None:
        importlib.import_module("torch")
        host = torch_host()
    if host is None:
        raise HostError(operator.name, "a converter needs PyTorch, which is not imported")
    return host.overload(operator)


def register_fx_node_ge_converter(operator: Any) -> Callable[[_F], _F]:
    """Return a decorator that registers a converter with torchair and returns it unchanged.

    ``operator`` is an operator of polyop or an overload in ``torch.ops``. ::

        @register_fx_node_ge_converter(my_add)
        def convert(x, y, meta_outputs=None):
            x, y = dtype_promote(x, y, target_dtype=meta_outputs.dtype)
            return AddCustom(x, y)

    Raises ``HostError`` without torchair, ``ArgumentTypeError`` for what is no operator.
    """
    overload = overload_of(operator)
    table = torchair()

    def decorate(converter: _F) -> _F:
        table.register_fx_node_ge_converter(overload)(converter)
        return converter

    return decorate


def dtype_promote(*tensors: Any, target_dtype: Any) -> Any:
    """Return the tensors cast to the dtype, numbers as constants, by torchair's own function."""
    torchair()
    utils = importlib.import_module("torchair._ge_concrete_graph.utils")
    return utils.dtype_promote(*tensors, target_dtype=target_dtype)


def register(operator: Any, name: str | None = None, *, promote: Sequence[str] = ()) -> Callable[..., Any]:
    """Register a converter made from the operator's schema, and return it.

    The type of the node is ``name``, by default the schema's name in CamelCase. Its inputs,
    attributes and outputs are those of :func:`prototype_of`. The inputs named in ``promote`` are
    cast to the dtype of the first result.

    Raises ``UnsupportedError`` for what GE or torchair cannot hold and for operators that write
    in place, ``ArgumentValueError`` for a name in ``promote`` that is no input, ``HostError``.
    """
    value: Operator = operator.operator
    prototype = prototype_of(operator, name)
    reason = skip_reason(prototype)
    if reason:
        raise UnsupportedError(value.name, f"cannot be put into a GE graph: {reason}", where=value.origin)
    if value.schema.mutates:
        rule = "writes in place, which a graph of values cannot express"
        raise UnsupportedError(value.name, rule, where=value.origin, hint="return a new tensor instead")
    inputs = [item.name for item in prototype.inputs]
    for each in promote:
        if each not in inputs:
            raise ArgumentValueError(
                f"{value.name}: promote", f"must name inputs: {', '.join(inputs)}", repr(each)
            )
    overload = overload_of(operator)
    convert = _converter(value, prototype, frozenset(promote))
    register_fx_node_ge_converter(overload)(convert)
    return convert


def load_header(path: str) -> dict[str, Callable[..., Any]]:
    """Return the functions generated from a REG_OP header, by name, without writing a file.

    Raises ``SchemaError`` for a malformed header, and ``UnsupportedError`` for an operator that
    torchair cannot hold: none is left out silently.
    """
    prototypes = read(path)
    for prototype in prototypes:
        reason = skip_reason(prototype)
        if reason:
            rule = f"cannot be put into a GE graph: {reason}"
            raise UnsupportedError(prototype.name, rule, where=prototype.origin)
    return _functions(prototypes, path)


def _functions(prototypes: Sequence[Prototype], source: str) -> dict[str, Callable[..., Any]]:
    torchair()
    scope: dict[str, Any] = {"__name__": "polyop.graph.generated"}
    exec(compile(generate(prototypes, source).text, f"<{source}>", "exec"), scope)  # noqa: S102 - our own text
    return {name: scope[name] for name in map(function_name, prototypes)}


def _converter(operator: Operator, prototype: Prototype, promote: frozenset[str]) -> Callable[..., Any]:
    schema = operator.schema
    build = _functions((prototype,), operator.name)[function_name(prototype)]
    names = parameters(prototype)
    items: tuple[TensorItem | AttributeItem, ...] = (*prototype.inputs, *prototype.attributes)
    parameter_of = {(isinstance(item, TensorItem), item.name): names[item] for item in items}
    by_argument = {
        a.name: parameter_of[a.type.is_tensor, operator.attribute_names.get(a.name, a.name)]
        for a in schema.arguments
    }

    def convert(*args: Any, meta_outputs: Any = None, **kwargs: Any) -> Any:
        """Add the node and return its outputs."""
        values = {a.name: value for a, value in zip(schema.arguments, args)} | kwargs  # noqa: B905 - defaults
        first = meta_outputs[0] if isinstance(meta_outputs, (list, tuple)) else meta_outputs
        for each in promote & values.keys():
            if values[each] is not None:
                values[each] = _promoted(values[each], first.dtype)
        call = {
            by_argument[a.name]: _as_ge(a, values[a.name], operator)
            for a in schema.arguments
            if a.name in values
        }
        if schema.returns_list:
            call[names[prototype.outputs[0]]] = len(meta_outputs)
        return build(**call)

    convert.__name__ = f"convert_{schema.name}"
    return convert


def _promoted(value: Any, dtype: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_promoted(item, dtype) for item in value]
    return dtype_promote(value, target_dtype=dtype)


def _as_ge(argument: Argument, value: Any, operator: Operator) -> Any:
    """Return a value of the call in the form that the generated function takes."""
    if argument.type.is_tensor:
        return value
    if isinstance(value, (list, tuple)):
        return [_as_ge(argument, item, operator) for item in value]
    graph = importlib.import_module("torchair.ge._ge_graph")
    if isinstance(value, graph.Tensor) or type(value).__name__.startswith("Sym"):
        rule = f"argument {argument.name} is a symbolic number, and an attribute of GE is a constant"
        hint = "compile with dynamic=False, or pass it as a tensor"
        raise UnsupportedError(operator.name, rule, where=operator.origin, hint=hint)
    return graph.torch_type_to_ge_type(value) if argument.type.base == "ScalarType" else value
