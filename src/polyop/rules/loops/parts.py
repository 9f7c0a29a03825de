"""Parts: operators that polyop makes for a loop operator, such as ``<name>__backward``."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...call import registry
from ...call.bound import BoundOperator
from ...call.host import host_of
from ...call.library_infer import library_halves
from ...call.operator import Operator
from ...call.prepare import AttributeValues
from ...call.uses import Uses
from ...core.derived_names import derived_from
from ...core.infer import ShapeAndDtype
from ...core.schema import MISSING, Argument, Return, Schema, Type
from ...core.spec import Spec
from ...kernels.base import LoopKernelBase

if TYPE_CHECKING:
    from ...kernels.loop.derived import DerivedKernel  # late: sharding reads this file without the compiler

Complete = Callable[[Operator], Operator]
"""Derives the gradient, the tangent and the batch that an operator lacks: ``with_derived``."""

_OPTIONAL, _NEW = Type("Tensor", ("?",)), Return(Type("Tensor"))


def make_part(
    operator: Operator,
    suffix: str,
    kernels: Sequence[DerivedKernel],
    complete: Complete,
    gradient: Any = None,
) -> BoundOperator:
    """Return the operator ``<name>__<suffix>`` with these kernels, which is derived further like any other.

    ``complete`` derives what it lacks; ``gradient`` is its rule, where that is not to be derived.
    """
    schema = derived_from(operator.schema, suffix, _part_schema(operator.schema, suffix, kernels[0]))
    values = AttributeValues(operator.attributes, operator.attribute_names)
    halves = library_halves(schema, kernels, values)
    assert halves is not None
    whole = Operator(
        schema=schema,
        infer=ShapeAndDtype(*halves, len(schema.returns), schema.qualified_name),
        kernels=tuple(kernels),
        gradient=gradient,
        attributes=operator.attributes,
        attribute_names=operator.attribute_names,
        returns_tuple=True,
        part_of=operator.name,
        origin=operator.origin,
    )
    bound = BoundOperator(complete(whole), register=False)
    registry.add_generated(bound)
    return bound


def _part_schema(schema: Schema, suffix: str, kernel: DerivedKernel) -> Schema:
    """Return the schema of the part with this kernel, for the schema of its operator.

    A part takes the operator's tensors, each or None, those that its form adds, the attributes of its own and
    the operator's, all by position, as native calls do. It returns new tensors.
    """
    name, returns = f"{schema.name}__{suffix}", (_NEW,) * kernel.results
    if not kernel.form.key:  # it is called in place of the operator
        return dataclasses.replace(schema, name=name, returns=returns)
    tensors, taken = schema.tensor_arguments, {a.name for a in schema.arguments}
    added = kernel.form.added_tensors([a.name for a in tensors], len(schema.returns))
    arguments = [
        *(dataclasses.replace(a, type=_OPTIONAL, keyword_only=False, default=MISSING) for a in tensors),
        *(Argument(_unused(name, taken), _OPTIONAL) for name in added),
        Argument(kernel.key_attribute, Type("str")),
        *(Argument(number, Type("SymInt")) for number in kernel.number_attributes),
        *(dataclasses.replace(a, keyword_only=False) for _, a in schema.attributes()),
    ]
    return Schema(schema.namespace, name, tuple(arguments), returns)


def loop_kernels(operator: Operator) -> list[Any]:
    """Return the loop kernels of an operator."""
    return [k for k in operator.kernels if isinstance(k, LoopKernelBase)]


def _unused(name: str, taken: set[str]) -> str:
    """Return the name, with a number if it is in ``taken``, and add it there."""
    unused, count = name, 1
    while unused in taken:
        count += 1
        unused = f"{name}_{count}"
    taken.add(unused)
    return unused


def all_attributes(operator: Operator, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of a call by the author's names: those of the definition, and ``attributes``.

    ``attributes`` has the schema's names, as ``Schema.tensors_and_attributes`` gives them.
    """
    names = operator.attribute_names
    return {**operator.attributes, **{names.get(name, name): value for name, value in attributes.items()}}


def uses_of(schema: Schema, read: Iterable[bool]) -> Uses:
    """Return what is kept of a call: all attributes, and of its tensors and then its outputs what is read."""
    flags = iter(read)
    arguments = tuple(next(flags) if a.type.is_tensor else True for a in schema.arguments)
    return Uses(arguments, tuple(flags))


def joined(result: Any) -> tuple[Any, ...]:
    """Return the result of an operator as a tuple."""
    return tuple(result) if isinstance(result, (tuple, list)) else (result,)


def specs(values: Iterable[Any]) -> list[Any]:
    """Return the specs of tensors; None stays None."""
    return [spec(value) for value in values]


def spec(value: Any) -> Any:
    """Return the spec of a tensor, also of a placeholder for a tensor that was not kept."""
    if isinstance(value, Spec):
        return value
    host = host_of(value)
    return None if value is None else host.spec(value) if host is not None else value.spec


def is_real(value: Any) -> bool:
    """Whether a tensor holds floating-point numbers."""
    return value is not None and bool(spec(value).dtype.is_floating)
